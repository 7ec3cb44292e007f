"""Exactly once, decided: which micro-batches of a job its topic has, from what three witnesses say.

A micro-batch is one transaction: its rows, and the positions that it read up to as offsets of the
group of the job's name, with a mark as their metadata: the query's id and the batch's number. So
rows and mark are there together or not at all. Spark's checkpoint says which batch is run again.
delivery.json, beside the checkpoint, says whose batches the topic has. Pure: texts in, decisions
out; engine/exactly_once.py does what is decided. Why so: docs/decisions/0040.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from spark_local.cause import JobError

_END: Final = "\0"
NONE: Final = -1
"""The number of the batch before the first."""
Position = tuple[str, str]
"""(topic, partition)"""
Noted = tuple[str, str, int, str]
"""What a group has committed: topic, partition, next offset, metadata."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The content of delivery.json. query: the one whose batches the topic gets. before: queries
    whose marks were found when it began and belong to this job. marked: the group had a mark of
    this query, so a missing one was lost.
    """

    query: str
    before: tuple[str, ...] = ()
    marked: bool = False

    @classmethod
    def of(cls, told: dict[str, Any]) -> "Kept | None":
        """From the file's content; None when there is none."""
        if not told:
            return None
        return cls(told["query"], tuple(told["before"]), told["marked"])

    def content(self) -> dict[str, Any]:
        """For the file."""
        return {"query": self.query, "before": list(self.before), "marked": self.marked}


def mark(query: str, batch: int) -> str:
    """The metadata of a batch's offsets. It ends with a NUL of its own: librdkafka hands a group's
    metadata on without one, and confluent-kafka reads until it meets one."""
    assert " " not in query
    return f"{query} {batch}{_END}"


def marks(found: Iterable[Noted]) -> dict[str, int]:
    """Query → the newest batch that committed. What is no mark is passed over."""
    newest: dict[str, int] = {}
    for *_, text in found:
        query, blank, batch = text.partition(_END)[0].partition(" ")
        if blank and batch.isdigit():
            newest[query] = max(newest.get(query, NONE), int(batch))
    return newest


def positions(plan: str, topics: Collection[str]) -> dict[Position, int]:
    """How far a batch reads: (topic, partition) → next offset. plan: what Spark's checkpoint has
    in offsets/<batch>: a version, a line about the batch, a line for each source. A topic that is
    read twice is as far as its slower reader."""
    found: dict[Position, int] = {}
    for line in plan.splitlines()[2:]:
        told = json.loads(line) if line.startswith("{") else {}
        for topic in topics:
            for partition, at in (told.get(topic) or {}).items():
                place = (topic, str(partition))
                found[place] = min(found.get(place, int(at)), int(at))
    return found


def offsets(batch: int, read: dict[Position, int], sink: str) -> dict[Position, int]:
    """The offsets that a batch's transaction commits. A job that reads no topic has no position;
    its mark lies at the first partition of the sink's topic, with the count of its batches.
    """
    return read or {(sink, "0"): batch + 1}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where Spark goes on: the query's id, None while there is none; the batch that it runs first;
    what that one's transaction commits if it is planned already, hence run again."""

    query: str | None = None
    first: int = 0
    again: dict[Position, int] | None = None


def first(planned: Iterable[str], done: Iterable[str]) -> tuple[int, bool]:
    """The batch that Spark runs first, and whether it is planned. planned, done: names of the files
    in the checkpoint's offsets and commits."""
    last, finished = (
        max((int(name) for name in names if name.isdigit()), default=NONE)
        for names in (planned, done)
    )
    return (last, True) if last > finished else (finished + 1, False)


class Ledger:
    """Which batches the topic has. Of one attempt. Raises JobError when nobody can say."""

    def __init__(
        self,
        job: str,
        checkpoint: Checkpoint,
        kept: Kept | None,
        found: Collection[Noted],
        sink: str = "topic",
    ) -> None:
        """found: what the group of the job's name has committed, or a table's snapshots say. sink:
        topic or table."""
        seen, query = marks(found), checkpoint.query
        if kept is not None:
            _check_kept(job, checkpoint, kept, seen, sink)
        if query in seen:
            newest = {query: seen[query]}
            noted = {(t, p): at for t, p, at, text in found if marks([(t, p, at, text)]) == newest}
            _check_level(job, checkpoint, seen[query], noted, sink)
        self._query = query
        self._before = tuple(sorted(seen)) if kept is None else kept.before
        self._marked = query in seen
        self.newest = seen.get(query, NONE) if query is not None else NONE

    def kept(self, query: str) -> Kept:
        """For delivery.json, before and after the first batch of that query is committed."""
        assert self._query in (None, query), "a checkpoint has one query"
        self._query = query
        return Kept(query, self._before, self._marked)

    def has(self, batch: int) -> bool:
        """True if the topic has the rows of that batch."""
        assert batch >= self.newest, "Spark begins behind what the topic has"
        return batch == self.newest

    def committed(self, batch: int) -> None:
        """Its transaction is committed."""
        assert batch > self.newest, "a batch was written twice"
        self.newest = batch
        self._marked = True


def _check_kept(
    job: str, checkpoint: Checkpoint, kept: Kept, seen: dict[str, int], sink: str
) -> None:
    """Checks that the sink's marks and the checkpoint are the remembered ones."""
    query = checkpoint.query
    if query != kept.query:
        problem = (
            f"its checkpoint was deleted or replaced, and the {sink} has rows of the former one"
        )
        raise JobError(problem, f"penstock job reset {job} starts over and writes them again")
    if strangers := sorted(set(seen) - {query, *kept.before}):
        there = f"for group {job}" if sink == "topic" else f"to the {sink}"
        problem = f"another job of the name {job} has committed {there} ({strangers[0]})"
        remedy = f"give one of the two another name, then penstock job reset {job} starts over"
        raise JobError(problem, remedy)
    if checkpoint.again is not None and kept.marked and query not in seen:
        if sink != "topic":
            problem = (
                f"batch {checkpoint.first} may be in the {sink} or not: its snapshots, which say "
                f"so, have expired, or the {sink} was replaced"
            )
            raise JobError(problem, f"penstock job reset {job} starts over; a {sink} that was "
                           "appended to is dropped first")  # fmt: skip
        problem = (
            f"batch {checkpoint.first} may be in the topic or not: the offsets of group {job}, "
            "which say so, have expired or were deleted"
        )
        remedy = (
            'add the job with delivery = "at-least-once" for one start, which writes the batch '
            f"(again), or penstock job reset {job}, which starts over"
        )
        raise JobError(problem, remedy)


def _check_level(
    job: str, checkpoint: Checkpoint, newest: int, noted: dict[Position, int], sink: str
) -> None:
    """Checks that checkpoint and sink are of the same time: a batch commits after the one before
    it, and runs again unchanged. After a power cut, or with a copy of one of them, they may differ.
    """
    if checkpoint.first == newest + 1 or (checkpoint.first == newest and checkpoint.again == noted):
        return
    problem = (
        f"its checkpoint continues with batch {checkpoint.first}, and the {sink} has what batch "
        f"{newest} read up to: one of them lost what came last, or is an older copy"
    )
    raise JobError(problem, f"penstock job reset {job} starts over and writes everything again")
