"""The topics of a job's sources: whether they are the ones of its checkpoint, and which records are
gone before they were read. What is decided comes from spark_local/losses.py.

Spark's checkpoint knows offsets alone. topics.json, beside it, has the topics' ids, and the batch
that was planned and refused, of which nothing was written.
"""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from spark_local import losses
from spark_local.board import Board
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import checkpoint_files
from spark_local.engine.clients import CLIENTS, ClientError
from spark_local.engine.deadletters import DeadLetters
from spark_local.engine.progress import Totals
from spark_local.folder import JobFolder, cut, read_json, write_json
from spark_local.job import EXACTLY_ONCE, Job
from spark_local.losses import Known, Loss, TopicState

_STOP: Final = "stop"
_ANYWHERE: Final = {"": 0}
"""A position of which only the topic's id counts."""


class SourceTopics:
    """The source topics of one attempt. `check_batch` belongs to the thread that writes batches,
    everything else to the job's."""

    def __init__(
        self, job: Job, kafka: ClientSettings, place: JobFolder, board: Board, totals: Totals
    ) -> None:
        self._job = job
        self._kafka = kafka
        self._checkpoint: Path = place.checkpoint
        self._file = place.path / "topics.json"
        self._board = board
        self._totals = totals
        self._names = sorted({one.place.topic for one in job.sources if one.place.topic})
        kept = read_json(self._file)
        self._known = {t: Known.of(told) for t, told in kept.get("topics", {}).items()}
        self._refused: int | None = kept.get("refused")
        self._doubtful: int | None = None
        self._found: list[Loss] = []
        self._lock = threading.Lock()
        self.replaced: JobError | None = None
        """Why the attempt ends: a topic was created again while it ran."""

    def resume(self, letters: DeadLetters) -> None:
        """Before the query starts: moves its checkpoint where `on_loss` lets it go on. Raises
        JobError where it does not; ClientError."""
        if file := checkpoint_files.find_cut(self._checkpoint):
            raise cut(self._job.name, f"checkpoint/{file}")
        told = self._describe("first", "end")
        batch = checkpoint_files.unfinished(self._checkpoint)
        if batch is not None and batch == self._refused:
            checkpoint_files.unplan(self._checkpoint, batch)
        self._doubtful = checkpoint_files.unfinished(self._checkpoint)
        for topic, state in told.items():
            known = self._known.get(topic, Known())
            position = checkpoint_files.position(self._checkpoint, topic)
            found = losses.losses(topic, known, state, position)
            if found and self._stops(topic):
                raise losses.stopped(self._job.name, found[0])
            self._move(topic, found, letters)
            self._found += found
            self._known[topic] = losses.after(known, state, found)
        self._refused = None
        self._keep()
        self.publish_losses()

    def check_batch(self, batch: int) -> None:
        """Before a batch is written: whether its topics are still the same ones, and what the
        batch will not find. Raises JobError, also as `replaced`."""
        for topic, state in self._asked().items():
            try:
                self._check_same(topic, state)
            except JobError:
                if batch != self._doubtful:  # then a former attempt may have written it
                    self._refused = batch
                    self._keep()
                raise
            if not self._stops(topic):
                self._count(topic, state, batch)

    def explained(self, problem: Exception) -> Exception:
        """Returns why the attempt ended: a topic was created again, else `problem`."""
        if self.replaced is None and not isinstance(problem, JobError):
            with suppress(JobError):
                for topic, state in self._asked().items():
                    self._check_same(topic, state)
        return self.replaced or problem

    def publish_losses(self) -> None:
        """Counts and logs what was found to be lost."""
        with self._lock:
            found, self._found = self._found, []
        for one in found:
            self._board.log(losses.continued(one))
            self._totals.lost_records += one.records or 0
            self._totals.lost_unknown += one.records is None
        if found:
            kept = self._board.content.get("progress") or {}
            self._board.progress(kept | self._totals.lost())

    def _asked(self) -> dict[str, TopicState]:
        asked = [] if all(map(self._stops, self._names)) else ["first"]
        try:
            return self._describe(*asked)
        except ClientError:  # the batch itself fails, or does not need the answer
            return {}

    def _check_same(self, topic: str, state: TopicState) -> None:
        known = self._known.get(topic, Known())
        found = losses.losses(topic, known, state, _ANYWHERE)
        for one in found:
            if one.kind == losses.RECREATED:
                goes_on = JobError(one.text, "the job continues at its start", final=False)
                stops = self._stops(topic)
                self.replaced = losses.stopped(self._job.name, one) if stops else goes_on
                raise self.replaced

    def _count(self, topic: str, state: TopicState, batch: int) -> None:
        known = self._known.get(topic, Known(state.id))
        begin = checkpoint_files.begin_of(self._checkpoint, batch, topic)
        if found := losses.losses(topic, known, state, begin):
            with self._lock:
                self._found += found
            self._known[topic] = losses.after(known, state, found)
            self._keep()

    def _move(self, topic: str, found: list[Loss], letters: DeadLetters) -> None:
        moved = [one for one in found if one.kind != losses.DELETED]
        batch = self._doubtful
        if moved and batch is not None and self._job.sink.delivery == EXACTLY_ONCE:
            raise JobError(
                f"{moved[0].text}, and its batch {batch}, which was not done, cannot be read again",
                f"penstock job reset {self._job.name} starts over with the records that exist",
            )
        for one in moved:
            whole = one.kind == losses.RECREATED
            checkpoint_files.move_position(self._checkpoint, topic, one.begin, whole=whole)
        for source in self._job.sources if moved else ():
            if source.place.topic == topic:
                letters.forget_source(source)

    def _stops(self, topic: str) -> bool:
        return any(one.on_loss == _STOP for one in self._job.sources if one.place.topic == topic)

    def _describe(self, *asked: str) -> dict[str, TopicState]:
        if not self._names:
            return {}
        found: dict[str, TopicState] = CLIENTS.call("describe", self._kafka, self._names, *asked)
        return found

    def _keep(self) -> None:
        topics = {topic: one.content() for topic, one in sorted(self._known.items())}
        content = {"topics": topics, "refused": self._refused}
        if topics and content != read_json(self._file):
            write_json(self._file, content, sync=True)
