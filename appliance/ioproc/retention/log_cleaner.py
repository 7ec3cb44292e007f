"""Compaction as one I/O process sees it: which log is next, what its cleaner says, and the swap.

    look → keys → (clean → decide → replace) per group → checkpoint → look

Everything that blocks or costs per record runs on a thread that talks to the cleaner's process;
here are only the choice and the swap, a few renames. Invariant: one log at a time; while its
`cleaning` is set no segment of it is dropped; readers are told of the new layout before the names
change. A log that cannot be compacted is served all the same, tried again later and later, and its
row says so. Called by the shell once per turn.
"""

import errno
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from time import monotonic_ns
from typing import Any, Final, Protocol

from appliance.base.dataclass import dataclass
from appliance.base.errors import DiskFull, StorageFailed
from appliance.config.broker import BrokerConfig
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore import cleanable, swap
from appliance.logstore.cleanable import Cleanable
from appliance.logstore.compacted_segment import Cleaned
from appliance.logstore.compaction import Work
from appliance.logstore.log import PartitionLog
from appliance.logstore.removal import Removal
from appliance.shell.flusher import Done, Threads
from appliance.shell.log import INFO, WARNING

LOOK_NS: Final = 2_000_000
"""Of one turn at most, so that many logs do not hold up the rest."""
_AFTER_BUG_NS: Final = 15_000_000_000
_LONGEST_BACKOFF_MS: Final = 3_600_000
_SMALLEST_CHUNK: Final = 64 << 10
_NO_ROOM: Final = "no room"


class CleanerChannel(Protocol):
    """The cleaner's process: `cleaner_link.CleanerLink`, or a test's."""

    def ask_cleaner(self, folder: str, question: dict[str, Any]) -> dict[str, Any]: ...
    def kill(self) -> None: ...
    def end_cleaner(self) -> str: ...


@dataclass(slots=True)
class Job:
    """One cleaning of one log. answer: what the cleaner said last. at: number of the group at
    hand."""

    partition: Partition
    log: PartitionLog
    work: Work
    began_ns: int
    groups: list[list[list[int]]] = field(default_factory=list)
    at: int = 0
    end: int = 0
    bytes_written: int = 0
    answer: dict[str, Any] = field(default_factory=dict)
    unwanted: bool = False

    @property
    def base(self) -> int:
        """Base offset of the group at hand."""
        return self.groups[self.at][0][0]

    @property
    def key(self) -> tuple[str, int]:
        return self.partition.topic, self.partition.index


@dataclass(slots=True)
class Course:
    """How compaction of one log goes. failures: in a row. again_ns: not before."""

    cleaned_to: int = 0
    failures: int = 0
    again_ns: int = 0
    said: str = ""


class LogCleaner:
    """The cleaner of one ioproc. config: the broker's settings as they are now. share: how many
    ioprocs divide the memory and the rate among them."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        ground: JobContext,
        threads: Threads,
        link: CleanerChannel,
        remove_later: Callable[[Removal], None],
        share: int,
    ) -> None:
        self._config = config
        self._disk, self._dirs, self._core, self._events = ground
        self._threads = threads
        self._link = link
        self._remove_later = remove_later
        self._share = share
        self._courses: dict[Partition, Course] = {}
        self._written: dict[int, checkpoints.Offsets] | None = None
        self._job: Job | None = None
        self._looking: Iterator[None] | None = None
        self._best: tuple[float, Partition, Cleanable] | None = None
        self._next_ns = 0
        self._running = False

    @property
    def busy(self) -> bool:
        """True while a log is examined or cleaned."""
        return self._job is not None or self._looking is not None

    def tick(self, now_ns: int, now_ms: int) -> None:
        """Take what the threads have done; look for a log that is worth it now and then. An
        exception costs the log that is being cleaned: its segments may be half changed."""
        try:
            self._go_round(now_ns, now_ms)
        except Exception as bug:
            self._next_ns = now_ns + _AFTER_BUG_NS
            self._looking = self._best = None
            job, self._job = self._job, None
            barrier = self._core.barrier
            if job is None or not self._holds(job):
                barrier.report_bug("compaction", bug)
            else:
                job.log.cleaning = False
                barrier.confine_bug("compaction", job.partition, bug)
                self._core.tell_observers()

    def _go_round(self, now_ns: int, now_ms: int) -> None:
        for done in self._threads.take_ended():
            self._ended(done, now_ns, now_ms)
        if self._job is not None or self._threads.outstanding():
            return
        if self._looking is None:
            if now_ns < self._next_ns:
                return
            self._best = None
            self._looking = self._look(now_ns, now_ms)
        until = monotonic_ns() + LOOK_NS
        for _ in self._looking:
            if monotonic_ns() >= until:
                return
        self._looking = None
        self._choose(now_ns, now_ms)

    # Which log ------------------------------------------------------------------------------------

    def _look(self, now_ns: int, now_ms: int) -> Iterator[None]:
        if not self._config().bool("log.cleaner.enable"):
            return
        self._forget_gone()
        for partition in list(self._core.partitions.values()):
            if not partition.rules.compact or partition.broken or partition.future[0]:
                continue
            course = self._course(partition)
            if now_ns < course.again_ns:
                continue
            try:
                stable = partition.last_stable_offset
                found = cleanable.measure_dirty(partition.log, course.cleaned_to, stable, now_ms)
            except StorageFailed as failure:
                self._core.fail(partition, failure)
                continue
            self._core.served.rows.cleaning_is_late(partition, found.late_ms)
            worth = found.late_ms or found.ratio > partition.rules.min_cleanable_dirty_ratio
            if found.dirty and worth and (self._best is None or found.ratio > self._best[0]):
                self._best = found.ratio, partition, found
            yield

    def _course(self, partition: Partition) -> Course:
        course = self._courses.get(partition)
        if course is None:
            if self._written is None:
                self._written = {
                    number: self._read_points(path) for number, path in self._dirs.online()
                }
            known = self._written.get(partition.directory, {})
            cleaned_to = known.pop((partition.topic, partition.index), 0)
            course = self._courses[partition] = Course(cleaned_to)
            self._core.served.rows.cleaned(partition, cleaned_to, 0)
        return course

    def _read_points(self, path: str) -> checkpoints.Offsets:
        """Up to where logs were cleaned; those of a folder that cannot be read begin anew."""
        try:
            return checkpoints.read(self._disk, path, checkpoints.CLEANER)
        except StorageFailed as failure:
            self._events.event(WARNING, "chore-failed", cause=failure)
            return {}

    def _forget_gone(self) -> None:
        serving = self._core.partitions
        for partition in [p for p in self._courses if serving.get(p.handle) is not p]:
            del self._courses[partition]

    def _choose(self, now_ns: int, now_ms: int) -> None:
        config = self._config()
        best, self._best = self._best, None
        if best is None or not self._serves(best[1]):
            self._next_ns = now_ns + config.int("log.cleaner.backoff.ms") * 1_000_000
            if self._running:
                self._running = False
                self._threads.submit(("end",), self._end)
            return
        partition, found = best[1], best[2]
        memory = config.int("log.cleaner.dedupe.buffer.size") // self._share
        load = config.float("log.cleaner.io.buffer.load.factor")
        chunk = max(config.int("log.cleaner.io.buffer.size"), _SMALLEST_CHUNK)
        work = cleanable.work(partition.log, found, now_ms, memory, load, chunk)
        job = self._job = Job(partition, partition.log, work, now_ns)
        partition.log.cleaning = self._running = True
        rate = config.float("log.cleaner.io.max.bytes.per.second") / self._share
        self._threads.submit(
            ("keys",), partial(self._keys, job, rate, partition.log.recovery_point)
        )

    def _serves(self, partition: Partition) -> bool:
        """True if the partition is still here, sound, and not moving to another folder."""
        here = self._core.partitions.get(partition.handle) is partition
        return here and partition.broken is None and not partition.future[0]

    def _holds(self, job: Job) -> bool:
        """True if the job is still about the log that the partition has."""
        return self._serves(job.partition) and job.partition.log is job.log

    # Logs that go back ----------------------------------------------------------------------------

    def cancel(self, partition: Partition) -> None:
        """Its log is to go back: the cleaning of it ends soon, without having been."""
        job = self._job
        if job is not None and job.partition is partition and not job.unwanted:
            job.unwanted = True
            self._link.kill()

    def lower(self, partition: Partition, end: int) -> None:
        """Its log is about to end at `end`: what it gets behind that was never cleaned. Raises
        StorageFailed."""
        course = self._course(partition)
        if course.cleaned_to > end:
            path, key = self._dirs.paths[partition.directory], (partition.topic, partition.index)
            checkpoints.merge(self._disk, path, checkpoints.CLEANER, {key: max(end, 0)})
            course.cleaned_to = max(end, 0)
            self._core.served.rows.cleaned(partition, course.cleaned_to, course.failures)

    # On the thread --------------------------------------------------------------------------------

    def _end(self) -> None:
        self._link.end_cleaner()

    def _keys(self, job: Job, rate: float, recovery_point: int) -> None:
        """Starts the first pass, after saving the recovery point: a compacted log has gaps, and
        recovery must not count its offsets.
        """
        points = {job.key: recovery_point}
        checkpoints.merge(self._disk, self._path(job), checkpoints.RECOVERY_POINT, points)
        question = {"op": "keys", "work": job.work._asdict(), "rate": rate}
        job.answer = self._link.ask_cleaner(job.work.folder, question)

    def _clean(self, job: Job) -> None:
        question = {"op": "clean", "group": job.groups[job.at]}
        job.answer = self._link.ask_cleaner(job.work.folder, question)
        if job.log.failure is None:
            size = Cleaned(*job.answer["cleaned"]).size
            swap.decide(self._disk, job.work.folder, job.base, size)

    def _note(self, job: Job) -> None:
        checkpoints.merge(self._disk, self._path(job), checkpoints.CLEANER, {job.key: job.end})

    def _discard(self, job: Job) -> None:
        if job.groups and self._disk.exists(job.work.folder):
            swap.discard(self._disk, job.work.folder, job.base)

    def _path(self, job: Job) -> str:
        return self._dirs.paths[job.partition.directory]

    # What came of it ------------------------------------------------------------------------------

    def _ended(self, done: Done, now_ns: int, now_ms: int) -> None:
        job, step = self._job, done.tag[0]
        failure = done.failure
        if failure is not None and not isinstance(failure, StorageFailed):
            self._core.barrier.report_bug("compaction", failure)
            why = f"{type(failure).__name__}: {failure}"
            failure = StorageFailed("" if job is None else job.work.folder, errno.EIO, why)
            if job is not None:
                self._course(job.partition).said = str(failure)  # it is told once
        if step == "end" or job is None:
            return
        if step == "discard":
            self._let_go(job, failure)
        elif job.unwanted:
            backoff = self._config().int("log.cleaner.backoff.ms")  # it has to go back first
            self._course(job.partition).again_ns = now_ns + max(backoff, 1) * 1_000_000
            self._give_up(job, None, now_ns)
        elif failure is not None or not self._holds(job):
            self._give_up(job, failure, now_ns)
        elif step == "note":
            self._cleaned(job, now_ns)
        else:
            if step == "keys":
                job.groups, job.end = job.answer["groups"], job.answer["end"]
            else:
                self._replace(job, now_ns, now_ms)
            self._go_on(job, now_ns)

    def _go_on(self, job: Job, now_ns: int) -> None:
        if job.partition.broken is not None:
            self._let_go(job, None)
        elif job.at < len(job.groups):
            size = sum(size for _, size in job.groups[job.at])
            lacks = job.partition.space.lacks(size, frees=True)
            if lacks:
                text = f"compaction takes up to {size} bytes: {lacks} more must be free"
                self._give_up(job, DiskFull(job.work.folder, errno.ENOSPC, text), now_ns)
                return
            self._threads.submit(("clean",), partial(self._clean, job))
        else:
            self._threads.submit(("note",), partial(self._note, job))

    def _replace(self, job: Job, now_ns: int, now_ms: int) -> None:
        partition = job.partition
        cleaned = Cleaned(*job.answer["cleaned"])
        bases = [base for base, _ in job.groups[job.at]]
        self._core.new_layout(partition)
        try:
            removal = swap.replace(job.log, bases, cleaned, now_ms)
        except StorageFailed as failure:
            self._core.fail(partition, failure)
            return
        self._remove_later(removal)
        self._core.publish(partition)
        self._core.syncing.wrote(partition, now_ns)  # the new names reach the disk
        job.bytes_written += cleaned.size
        job.at += 1

    def _cleaned(self, job: Job, now_ns: int) -> None:
        course = self._course(job.partition)
        course.cleaned_to, course.failures, course.said = job.end, 0, ""
        took_ms = (now_ns - job.began_ns) // 1_000_000
        self._core.served.rows.cleaned(job.partition, job.end, 0)
        self._core.served.rows.cleaning_took(job.partition, took_ms)
        before = sum(size for group in job.groups for _, size in group)
        self._events.event(
            INFO,
            "log-cleaned",
            partition=job.partition,
            to=job.end,
            bytes=before,
            left=job.bytes_written,
            records=job.answer.get("read", 0),
            kept=job.answer.get("kept", 0),
            ms=took_ms,
        )
        self._let_go(job, None)
        self._next_ns = now_ns

    def _give_up(self, job: Job, failure: Exception | None, now_ns: int) -> None:
        if isinstance(failure, DiskFull):
            self._wait_for_room(job, failure, now_ns)
        elif failure is not None and self._holds(job):
            course = self._course(job.partition)
            course.failures += 1
            backoff = self._config().int("log.cleaner.backoff.ms") << min(course.failures, 20)
            backoff = max(min(backoff, _LONGEST_BACKOFF_MS), 1)
            course.again_ns = now_ns + backoff * 1_000_000
            self._core.served.rows.cleaned(job.partition, course.cleaned_to, course.failures)
            if str(failure) != course.said:
                course.said = str(failure)
                self._events.event(
                    WARNING,
                    "cleaning-failed",
                    partition=job.partition,
                    cause=failure,
                    retry_ms=backoff,
                )
            if isinstance(failure, StorageFailed) and failure.errno == errno.EBADMSG:
                self._core.doubt(job.partition, failure)
        if job.at < len(job.groups):
            self._threads.submit(("discard",), partial(self._discard, job))
        else:
            self._let_go(job, None)

    def _wait_for_room(self, job: Job, failure: DiskFull, now_ns: int) -> None:
        """No fault of the log: it is looked at again soon, and its row does not say failed."""
        course = self._course(job.partition)
        backoff = self._config().int("log.cleaner.backoff.ms")
        course.again_ns = now_ns + max(backoff, 1) * 1_000_000
        if course.said != _NO_ROOM:
            course.said = _NO_ROOM
            self._events.event(
                WARNING, "cleaning-waits", partition=job.partition, cause=failure, retry_ms=backoff
            )

    def _let_go(self, job: Job, failure: StorageFailed | None) -> None:
        """The job is over. failure: a decided segment could not be taken back: what the log does
        next would contradict it."""
        job.log.cleaning = False
        self._job = None
        if failure is not None and self._holds(job):
            self._core.fail(job.partition, failure)

    def stop(self) -> None:
        """The cleaner ends now. What was decided and not swapped in is finished by the next
        start."""
        self._link.kill()
        while self._threads.outstanding():
            self._threads.wait()
            self._threads.take_ended()
        self._link.end_cleaner()
        if self._job is not None:
            self._job.log.cleaning = False
            self._job = None
