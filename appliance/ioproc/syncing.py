"""Which log is synced when: group commit for those who wait, background syncs for the others.

Who waits is a producer with acks=all, a reader that is parked at the end, and who asks where that
is. Records that nobody waits for are synced soon all the same, since nobody sees them before.

Invariant: a log has at most one sync under way; what is appended meanwhile waits for the next one,
which covers all of it. One sync in the background at a time, so that it does not hold up those who
wait. Called by the core at the end of each turn.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from appliance.base.errors import StorageFailed
from appliance.ioproc.partition import Partition
from appliance.shell.flusher import Done, Tag, run

QUICK_SYNC_NS: Final = 1_000_000
"""Syncs that take less on average are done on the loop when one partition waits and nothing else is
to be done: the hop to a thread and back costs 40 µs."""

BACKGROUND_NS: Final = 2_000_000_000
"""How long an append may stay unsynced: it bounds what recovery has to check."""

VISIBLE_MS: Final = 50
"""How long records may stay unseen that nobody waits for. A sync holds up the writes behind it for
about two milliseconds: every 5 ms, it cost a producer with acks=1 a third of its requests."""

LOOK_EVERY_NS: Final = 50_000_000
"""How often the dirty logs are looked through when none was due."""

BACKGROUND_BYTES: Final = 64 << 20
"""How many bytes of one log may stay unsynced."""

EPOCHS_A_TURN: Final = 32
"""Of so many logs the leader epochs are written before their syncs begin, which takes the loop
0.14 ms each: after DeleteRecords on a large topic that is all of them."""


class Threads(Protocol):
    """Runs jobs that block: `flusher.Flusher`, or a test that decides when they end."""

    def submit(self, tag: Tag, job: Callable[[], None]) -> None:
        """Run `job` somewhere else."""
        ...

    def take(self) -> list[Done]:
        """Jobs that ended since the last call."""
        ...

    def outstanding(self) -> int:
        """Jobs submitted and not taken."""
        ...

    def wait(self) -> None:
        """Return when there is something to take."""
        ...


class Synced(NamedTuple):
    """A sync ended. end: everything below it is on the disk. failure: why it did not happen."""

    partition: Partition
    end: int
    failure: Exception | None


class Syncing:
    """The syncs of one ioproc. quiet: whether the rings are empty at this moment."""

    __slots__ = (
        "_background",
        "_look_ns",
        "_quiet",
        "_threads",
        "_wanted",
        "average_ns",
        "dirty",
        "moved",
        "unseen",
    )

    def __init__(self, threads: Threads, quiet: Callable[[], bool]) -> None:
        self._threads = threads
        self._quiet = quiet
        self._wanted: list[Partition] = []
        self._background = False
        self._look_ns = 0
        self.dirty: dict[Partition, int] = {}  # → when it became dirty (monotonic ns), oldest first
        self.unseen: dict[Partition, int] = {}  # → since when (monotonic ns), oldest first
        self.moved: dict[Partition, None] = {}  # whose recovery point moved since a checkpoint
        self.average_ns = 200_000

    def want(self, partition: Partition) -> None:
        """Somebody waits for this partition to be synced."""
        if not partition.syncing:
            partition.syncing = True
            self._wanted.append(partition)
            self.unseen.pop(partition, None)

    def wrote(self, partition: Partition, now_ns: int) -> None:
        """The partition has bytes that are not on the disk yet, and perhaps somebody who waits."""
        assert partition.broken is None, "what failed is never synced again"
        unseen = partition.unseen
        if partition.waiting or (unseen and (partition.parked or partition.asking)):
            self.want(partition)
        elif unseen and partition not in self.unseen:
            self.unseen[partition] = now_ns
        if partition not in self.dirty:
            self.dirty[partition] = now_ns

    def forget(self, partition: Partition) -> None:
        """The partition is closed or broken."""
        self.dirty.pop(partition, None)
        self.unseen.pop(partition, None)
        self.moved.pop(partition, None)
        if partition in self._wanted:
            self._wanted.remove(partition)
            partition.syncing = False

    def busy(self) -> bool:
        """Whether a sync is under way, or wanted."""
        return self._threads.outstanding() > 0 or bool(self._wanted)

    @property
    def held_back(self) -> bool:
        """Whether `start` has more to do in the next turn."""
        return bool(self._wanted)

    def wait(self) -> None:
        """Return when a sync has ended (or soon after it did)."""
        self._threads.wait()

    def ended(self, now_ns: int) -> list[Synced]:
        """What the threads have finished."""
        done = self._threads.take()
        return [self._end(one, now_ns) for one in done] if done else []

    def start(self, now_ns: int) -> list[Synced]:
        """Begin a sync for those that want one, a few of them in the next turn if that takes long;
        what was synced at once is returned."""
        wanted = self._wanted
        if not wanted:
            return []
        self._wanted = []
        if (
            len(wanted) == 1
            and len(wanted[0].waiting) == 1
            and self.average_ns < QUICK_SYNC_NS
            and not self._threads.outstanding()
            and self._quiet()
        ):
            return [self._end(run(*_job(wanted[0], background=False)), now_ns)]
        room = EPOCHS_A_TURN
        for partition in wanted:
            if partition.log.epochs.changed:
                room -= 1
                if room < 0:
                    self._wanted.append(partition)
                    continue
            self._threads.submit(*_job(partition, background=False))
        return []

    def tick(self, now_ns: int) -> None:
        """Begin a background sync when one is due and none is under way."""
        if self._background:
            return
        for partition, since_ns in self.unseen.items():
            if now_ns - since_ns < VISIBLE_MS * 1_000_000:
                break
            if not partition.syncing:
                self._begin(partition)
                return
        if now_ns < self._look_ns:
            return
        for partition, since_ns in self.dirty.items():
            age_ns = now_ns - since_ns
            if partition.syncing:
                continue
            if (
                age_ns >= BACKGROUND_NS
                or age_ns >= partition.rules.flush_ms * 1_000_000
                or partition.log.unsynced_bytes >= BACKGROUND_BYTES
            ):
                self._begin(partition)
                return
        self._look_ns = now_ns + LOOK_EVERY_NS

    def _begin(self, partition: Partition) -> None:
        self._background = partition.syncing = True
        self.unseen.pop(partition, None)
        self._threads.submit(*_job(partition, background=True))

    def _end(self, done: Done, now_ns: int) -> Synced:
        partition, job, background = done.tag
        log = partition.log
        partition.syncing = False
        if background:
            self._background = False
            self._look_ns = 0
        if done.failure is None:
            self.average_ns += (done.took_ns - self.average_ns) // 8
            if job is not None:
                log.flushed(job)
                self.moved[partition] = None
            self.dirty.pop(partition, None)
        return Synced(partition, log.recovery_point, done.failure)


def _job(partition: Partition, *, background: bool) -> tuple[Tag, Callable[[], None]]:
    """A sync as a job. What cannot even be prepared fails where every sync fails: in `_end`."""
    try:
        job = partition.log.flush_job()
    except StorageFailed as failure:
        return (partition, None, background), partial(_refuse, failure)
    return (partition, job, background), _nothing if job is None else job.run


def _nothing() -> None:
    """All of the log is on the disk already."""


def _refuse(failure: StorageFailed) -> None:
    raise failure
