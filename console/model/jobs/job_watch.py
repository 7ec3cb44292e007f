"""Jobs while somebody watches: how they are, with what was seen of them before.

Asked of the jobs folder of an appliance of this host; of another one by its topic of states, where
nothing can be changed and no log read. Needs neither Spark nor Java.
"""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.jobs.jobs import Broke, Status, broke, failing, statuses
from console.model.local.tail import Line, Tail
from spark_local.folder import Folder
from spark_local.mistakes import JobFileError

REMEMBERED: Final = 300
"""How many looks at a job are remembered."""
LINES_MOST: Final = 2000
JOBS: Final = "jobs"


@dataclass(slots=True, frozen=True)
class Sample:
    """One look at a job: records per second in and out, records left, ms of its last batch."""

    rows_per_s: float
    rows_out_per_s: float
    lag_records: int
    batch_ms: int


@dataclass(slots=True, frozen=True)
class Jobs:
    """folder: "" when they are told by the topic of states. runner: its process id, None when no
    runner works there. past: job → what was seen of it, the oldest look first."""

    folder: str
    runner: int | None
    jobs: dict[str, Status]
    past: Mapping[str, tuple[Sample, ...]]

    @property
    def sick(self) -> list[Status]:
        """Those that should run and do not."""
        return [one for one in self.jobs.values() if one.sick]


@dataclass(slots=True, frozen=True)
class JobSeen:
    """Facts of a job's folder beside its state. derives: its SQL, or `file: function`. broke: its
    last failure. log, spark_log: their last lines. problem: the fault of its file.
    """

    description: str
    derives: str
    trigger_ms: int | None
    broke: Broke | None
    log: tuple[Line, ...]
    spark_log: tuple[Line, ...]
    problem: str


class Watch:
    """Watches the jobs beside the appliance of a Link. One thread at a time."""

    def __init__(self, link: Link, named: str | None) -> None:
        """named: the jobs folder that somebody chose."""
        self._link = link
        self._named = named
        self._past: dict[str, deque[Sample]] = {}

    def folder(self, data_dir: str) -> Folder | None:
        """Where they are; None where that is not known. data_dir: of the appliance when it is one
        of this host, else ""."""
        if self._named:
            return Folder(self._named, read_only=self._link.read_only)
        path = Path(data_dir) / JOBS
        return Folder(path, read_only=self._link.read_only) if data_dir and path.is_dir() else None

    def read_jobs(self, data_dir: str, *, has_topic: bool) -> Jobs:
        """has_topic: the topic of states is there. Who looked for it with a consumer would make the
        broker create a topic: that of consumers' offsets. Raises Failure."""
        folder = self.folder(data_dir)
        asked = folder or Folder("/nonexistent")
        found: dict[str, Status] = {}
        if folder is not None or has_topic:
            with failing(asked):
                found = {one.job: one for one in statuses(asked, self._link)}
        for name in self._past.keys() - found.keys():
            del self._past[name]
        for name, one in found.items():
            self._past.setdefault(name, deque(maxlen=REMEMBERED)).append(_sample(one))
        return Jobs(
            str(folder.path) if folder is not None else "",
            folder.runner_pid() if folder is not None else None,
            found,
            {name: tuple(past) for name, past in self._past.items()},
        )


def _sample(one: Status) -> Sample:
    return Sample(
        one.rows_per_s or 0.0, one.rows_out_per_s or 0.0, one.lag_records or 0, one.batch_ms or 0
    )


class Detail:
    """Watches one job of a folder. One thread at a time."""

    def __init__(self, folder: Folder, name: str) -> None:
        """Raises Failure when there is none of that name."""
        with failing(folder):
            known = {one.name: one for one in folder.jobs()}
            if name not in known:
                raise no_job(name, known)
        self._folder = folder
        self._place = known[name]
        self._log = Tail(self._place.log_file, LINES_MOST)
        self._spark_log = Tail(folder.runner / "spark.log", LINES_MOST)

    def read_job(self) -> JobSeen:
        """Raises Failure."""
        with failing(self._folder):
            self._log.read_lines()
            self._spark_log.read_lines()
            description = derives = problem = ""
            trigger_ms = None
            try:
                job = self._place.job()
            except (JobFileError, OSError) as wrong:
                problem = str(wrong)
            else:
                description, trigger_ms = job.description, job.trigger_ms
                derives = job.sql or ": ".join(job.python or ())
            return JobSeen(
                description, derives, trigger_ms, broke(self._place), self._log.lines,
                self._spark_log.lines, problem,
            )  # fmt: skip


def no_job(name: str, known: Mapping[str, object]) -> Failure:
    """There is no such job."""
    told = ", ".join(known) or "none yet"
    return Failure(
        f"there is no job {name!r}", f"penstock job add FILE makes one; known: {told}", name="JOB"
    )


def age_s(at_ms: object) -> float | None:
    """Seconds since a moment of the wall clock, None when there is none."""
    return max(0.0, time.time() - at_ms / 1000) if isinstance(at_ms, int) else None
