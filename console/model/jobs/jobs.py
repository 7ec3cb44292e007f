"""Jobs: how they are, and what they are to do. They are asked by their folder, where the runner
writes everything down; without the folder, by the topic of states. No Spark is needed.
"""

import errno
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from console.model.asking.failure import UNREACHABLE, Failure, usage
from console.model.asking.link import Link, reach
from console.model.asking.profiles import properties_of
from spark_local.cause import NEEDS_TLS, JobError
from spark_local.client_settings import ClientSettings, java_properties
from spark_local.folder import REMOVED, RUNNING, STOPPED, Folder, JobFolder, Wish
from spark_local.job import Job
from spark_local.mistakes import JobFileError

REMEMBERED: Final = {
    "checkpoint": "its position, and its state (windows, counts, joins)",
    "schemas.json": "the columns that were inferred",
    "dead.json": "the count of dead letters",
    "delivery.json": "whose rows the topic has, so that none is written twice",
    "topics.json": "the ids of its topics, by which it knows one that was created again",
}
"""What a job remembers, by the names of its files: what it loses by a reset."""
ENDED: Final = ("stopped", "finished", "failed")
NOT_YET: Final = "it never ran"
SETTLED: Final = (*ENDED, "running", "waiting", "failing")
_WELL: Final = ("running", "starting", "finished")
_NEARLY_ALL: Final = 0.9
_KINDS: Final[dict[Any, Any]] = {
    str: str, str | None: str, int | None: int, float | None: (int, float),
}  # fmt: skip
_LOOK_S: Final = 0.1
_UNWRITABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOSPC)


@dataclass(slots=True, frozen=True)
class Settled:
    """The desired state of a job, and the reached one; state, cause and remedy are None when the
    command did not wait for it.
    """

    job: str
    wanted: str
    state: str | None = None
    cause: str | None = None
    remedy: str | None = None


@dataclass(slots=True, frozen=True)
class Status:
    """How a job is, as its runner wrote it down; None is what it did not say. rows_per_s: read;
    rows_out_per_s: derived; lag_s: age of the oldest unread record; attempt: of those since it was
    well; restarts: after failures, since the last reset. lost_records: deleted before they were
    read; lost_unknown: how often nobody knows how many. checkpoint: a path, None where the folder
    is not of this host."""

    job: str
    wanted: str | None
    state: str | None
    kind: str | None
    reads: Any
    writes: Any
    delivery: Any
    master: str | None
    rows_in: int | None
    rows_out: int | None
    rows_per_s: float | None
    processed_per_s: float | None
    rows_out_per_s: float | None
    batch: int | None
    batch_ms: int | None
    phases_ms: Any
    lag_records: int | None
    lag_s: float | None
    watermark: Any
    state_rows: int | None
    state_bytes: int | None
    late_rows: int | None
    dead_letters: int | None
    tombstones: int | None
    lost_records: int | None
    lost_unknown: int | None
    since: Any
    updated: Any
    attempt: int | None
    restarts: int | None
    next_attempt: Any
    cause: str | None
    remedy: str | None
    note: str | None
    checkpoint: str | None

    @property
    def sick(self) -> bool:
        """True if the job should run and does not."""
        return self.wanted == RUNNING and self.state not in _WELL

    @property
    def drops_all(self) -> bool:
        """True if nearly all that it read came later than its watermark."""
        late, read = self.late_rows, self.rows_in
        return bool(late and read and late >= read * _NEARLY_ALL)


@dataclass(slots=True, frozen=True)
class Broke:
    """The last failure of a job: cause is the innermost one; at_ms: wall clock."""

    at_ms: int
    cause: str
    remedy: str | None
    trace: str


@dataclass(slots=True, frozen=True)
class Listed:
    """A job of the folder by its file; description says what is wrong with a file that cannot be
    read."""

    job: str
    wanted: str
    state: str | None
    kind: str | None
    reads: list[str] | None
    writes: str | None
    description: str | None


@contextmanager
def failing(folder: Folder) -> Iterator[None]:
    """Turns errors that jobs raise within into a Failure."""
    try:
        yield
    except JobFileError as wrong:
        raise usage(str(wrong), "docs/jobs.md describes job files") from None
    except JobError as problem:
        raise Failure(problem.problem, problem.remedy, where=str(folder.path), name="JOB") from None
    except OSError as problem:
        if problem.errno not in _UNWRITABLE:
            raise
        raise Failure(
            f"{problem.filename or folder.path}: {problem.strerror or problem}",
            f"{folder.path} must be a folder that this user may write to; choose another one "
            "with --jobs",
            where=str(folder.path),
            name="JOB",
        ) from None


def listed(folder: Folder) -> list[Listed]:
    """The jobs of the folder, by name."""
    return [_listed(folder, place) for place in folder.jobs()]


def _listed(folder: Folder, place: JobFolder) -> Listed:
    begin = place.name, place.read_wish().state, _now(folder, place.state())["state"]
    try:
        job = place.job()
    except JobFileError as wrong:
        return Listed(*begin, None, None, None, str(wrong))
    return Listed(
        *begin,
        "batch" if job.batch else "once" if job.once else "stream",
        [one.place.text for one in job.inputs],
        job.sink.place.text,
        job.description or None,
    )


def statuses(folder: Folder, link: Link, names: tuple[str, ...] = ()) -> list[Status]:
    """How jobs are, all of them without names; of an appliance elsewhere where there is no folder.
    Raises Failure, JobError."""
    told = _here(folder) if folder.path.is_dir() else _from_topic(link)
    if missing := [name for name in names if name not in told]:
        known = ", ".join(told) or "none yet"
        raise JobError(f"there is no job {missing[0]!r}", f"known: {known}")
    return [_status(name, told[name]) for name in names or sorted(told)]


def _here(folder: Folder) -> dict[str, dict[str, Any]]:
    return {
        place.name: _now(folder, place.state())
        | {"wanted": place.read_wish().state, "checkpoint": str(place.checkpoint)}
        for place in folder.jobs()
    }


def settings_of(link: Link, job: Job | None = None) -> ClientSettings:
    """Settings of a job's clients: those of its own client_config and bootstrap, else the link's.
    None: of no job. Raises Failure for a client file that cannot be used."""
    if job is not None and job.client_config is not None:
        said = properties_of(str(job.client_config))
        return ClientSettings.of(
            job.bootstrap or said.get("bootstrap.servers") or link.bootstrap, said
        )
    if job is not None and job.bootstrap not in (None, link.bootstrap):
        return ClientSettings(job.bootstrap or "")
    return ClientSettings.of(link.bootstrap, link.properties)


def settings_in_runner(link: Link, job: Job) -> ClientSettings:
    """The same for the runner. Raises JobError."""
    try:
        return settings_of(link, job)
    except Failure as wrong:
        raise JobError(wrong.message, wrong.hint) from None


def reached(kafka: ClientSettings) -> ClientSettings:
    """These settings, when a job's clients can use them. Raises Failure: none of the servers is
    there, they speak another protocol, or they refuse the login."""
    from penstock.reach import LIMIT_S

    reach(kafka.bootstrap, LIMIT_S)
    check_usable(kafka)
    return kafka


def check_usable(kafka: ClientSettings) -> None:
    """Raises Failure when clients with these settings will be refused; not when nobody is there."""
    from penstock.door import Door, NotUsable
    from penstock.reach import SPEAKS_TLS, barred

    said = dict(kafka.properties)
    if kafka.is_secured:
        java_properties(said)  # what Java cannot use is told before Spark starts
    door = Door(said)
    if not door.can_ask:
        return
    try:
        trouble = barred(kafka.bootstrap, door)
    except NotUsable as wrong:
        raise usage(str(wrong), "see --command-config, and client_config of the job") from None
    if trouble is not None and (trouble.options or trouble.login):
        remedy = NEEDS_TLS if SPEAKS_TLS in trouble.options else ", ".join(trouble.options)
        raise usage(trouble.what, remedy)


def _from_topic(link: Link) -> dict[str, dict[str, Any]]:
    from spark_local import states

    found = states.read(reached(settings_of(link)), link.timeout_s)
    # What a job is to do is not told there: a job that somebody has stopped does so itself.
    return {
        name: one | {"wanted": STOPPED if one.get("state") == STOPPED else RUNNING}
        for name, one in found.items()
    }


def _now(folder: Folder, told: dict[str, Any]) -> dict[str, Any]:
    """A published state as of now: "down" when the runner is gone."""
    found = {"state": None} | told
    if found["state"] is None:
        found["note"] = NOT_YET
    if found["state"] not in (None, *ENDED) and folder.runner_pid() is None:
        found |= {"state": "down", "cause": "no runner is running"}
        found |= {"remedy": "penstock job serve starts one"}
    return found


def state_of(folder: Folder, place: JobFolder) -> str | None:
    """How it is, None before it has begun."""
    state = _now(folder, place.state())["state"]
    return None if state is None else str(state)


def _status(name: str, told: dict[str, Any]) -> Status:
    known = told | (told.get("progress") or {}) | {"job": name}
    return Status(**{one.name: _typed(one.type, known.get(one.name)) for one in fields(Status)})


def _typed(kind: Any, value: Any) -> Any:
    """A value that is what its field says, else None: a topic holds whatever was written to it."""
    wanted = _KINDS.get(kind, object)
    return value if isinstance(value, wanted) and not isinstance(value, bool) else None


def broke(place: JobFolder) -> Broke | None:
    """The last failure of a job, None when there was none."""
    told = place.error()
    if not told:
        return None
    return Broke(int(told["at"]), str(told["cause"]), told.get("remedy"), str(told["trace"]))


def await_states(
    folder: Folder,
    wishes: Iterable[tuple[JobFolder, Wish]],
    timeout_s: float,
    *,
    until: tuple[str, ...] = SETTLED,
    wait: bool = True,
) -> list[Settled]:
    """Waits until the runner has reached the desired states; returns each job's. Raises Failure
    when it does not in time. Without a runner it does not wait.
    """
    pairs = list(wishes)
    wait = wait and has_runner(folder)
    end = time.monotonic() + timeout_s
    for place, wish in pairs if wait else ():
        while not _done(place, wish, until):
            if time.monotonic() > end:
                raise _late(folder, f"get to job {place.name}")
            if not has_runner(folder):
                raise Failure("the runner ended", "penstock job serve starts one", name="JOB")
            time.sleep(_LOOK_S)
    return [_settled(place, wish, waited=wait) for place, wish in pairs]


def start_job(place: JobFolder) -> Wish:
    """One that runs is left alone; one that failed or has ended begins again."""
    wish = place.read_wish()
    ended = place.state().get("state") in ("failed", "finished")
    return wish if wish.state == RUNNING and not ended else place.wish_for(RUNNING)


def stop(place: JobFolder) -> Wish:
    """After its batch."""
    wish = place.read_wish()
    return wish if wish.state == STOPPED else place.wish_for(STOPPED)


def restart(place: JobFolder) -> Wish:
    """End it after its batch, and start it again."""
    return place.wish_for(RUNNING)


def reset(folder: Folder, place: JobFolder, timeout_s: float) -> None:
    """Let a job forget how far it came; one that runs is stopped before and started after. Raises
    Failure, JobError."""
    runs = place.read_wish().state == RUNNING
    if runs:
        await_states(folder, [(place, place.wish_for(STOPPED))], timeout_s, until=ENDED)
    place.delete_positions()
    if runs:
        await_states(folder, [(place, place.wish_for(RUNNING))], timeout_s)


def has_runner(folder: Folder) -> bool:
    """True if a runner keeps the folder's jobs running."""
    return folder.runner_pid() is not None


def _late(folder: Folder, what: str) -> Failure:
    return Failure(
        f"the runner did not {what} in time",
        "penstock job status shows its state; --timeout SECONDS waits longer",
        where=str(folder.path),
        code=UNREACHABLE,
        name="TIMED_OUT",
    )


def _done(place: JobFolder, wish: Wish, until: tuple[str, ...]) -> bool:
    told = place.state()
    return int(told.get("wish", -1)) >= wish.number and told.get("state") in until


def _settled(place: JobFolder, wish: Wish, *, waited: bool) -> Settled:
    told = place.state() if waited else {}
    return Settled(place.name, wish.state, told.get("state"), told.get("cause"), told.get("remedy"))


def remove(folder: Folder, places: list[JobFolder], timeout_s: float) -> None:
    """End jobs and delete all that is known of them. Raises Failure when the runner does not end
    one in time."""
    for place in places:
        place.wish_for(REMOVED)
    end = time.monotonic() + timeout_s
    for place in places:
        while has_runner(folder) and place.path.exists():
            if time.monotonic() > end:
                raise _late(folder, f"end job {place.name}")
            time.sleep(_LOOK_S)
        if place.path.exists():
            folder.drop(place.name)


def job_of(folder: Folder, text: str) -> Job:
    """The job of a file, or of the folder, by its name. Raises JobError, JobFileError."""
    from spark_local.jobfile import load

    if text.endswith(".toml") or Path(text).exists():
        return load(text)
    return folder.find_job(text).job()
