"""Which log is made durable when: group commit for those who wait, background syncs for the others.

Who waits is a producer with acks=all, a reader that is parked at the end, and who asks where that
is. Records that nobody waits for are synced soon all the same, since nobody sees them before.

Invariant: a log has at most one sync under way; what is appended meanwhile waits for the next one,
which covers all of it. One sync in the background at a time, so that it does not hold up those who
wait. Called by the core at the end of each turn.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from appliance.ioproc.durability.journals import Journals
from appliance.ioproc.partitions.fetch_watches import FetchWatches
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore import fast_sync
from appliance.shell.flusher import Done, Tag, Threads, run

QUICK_SYNC_NS: Final = 1_000_000
"""Syncs that take less on average are done on the loop when one partition waits and nothing else is
to be done: the hop to a thread and back costs 40 µs."""

BACKGROUND_NS: Final = 2_000_000_000
"""How long an append may stay unsynced: it bounds what recovery has to check."""

VISIBLE_MS: Final = 50
"""How long records may stay unseen that nobody waits for. A sync holds up the writes behind it for
about two milliseconds: every 5 ms, it cost a producer with acks=1 a third of its requests."""

_VISIBLE_NS: Final = VISIBLE_MS * 1_000_000
NEVER: Final = 1 << 62

LOOK_EVERY_NS: Final = 100_000_000
"""How often the dirty logs are looked through when none was due."""

BACKGROUND_BYTES: Final = 64 << 20
"""How many bytes of one log may stay unsynced."""

EPOCHS_A_TURN: Final = 32
"""Of so many logs the leader epochs are written before their syncs begin: after DeleteRecords on a
large topic that is all of them."""
EPOCHS_NS: Final = 140_000
"""What that takes the loop, each."""


class Synced(NamedTuple):
    """A sync ended. end: everything below it is on the disk. failure: why it did not happen."""

    partition: Partition
    end: int
    failure: Exception | None


class GroupCommit:
    """The syncs of one ioproc. pending: whether there is something in the rings at this moment.
    under_way: syncs and groups on threads. wanted: those to begin with `start`. due_ns: when `tick`
    has something to do. watches: who waits for any of many partitions. count_flush: receives the ns
    of each sync that reached the disk."""

    __slots__ = (
        "_background",
        "_count_flush",
        "_journals",
        "_look_ns",
        "_pending",
        "_syncs",
        "_threads",
        "average_ns",
        "dirty",
        "due_ns",
        "moved",
        "under_way",
        "unseen",
        "wanted",
        "watches",
    )

    def __init__(
        self,
        threads: Threads,
        journals: Journals,
        pending: Callable[[], bool],
        count_flush: Callable[[int], None] | None = None,
    ) -> None:
        self._threads = threads
        self._count_flush = count_flush
        self._journals = journals
        self._pending = pending
        self.wanted: list[Partition] = []
        self.under_way = 0
        self._syncs = 0  # of those, syncs of files
        self.due_ns = NEVER
        self._background = False
        self._look_ns = 0
        self.dirty: dict[Partition, int] = {}  # → when it became dirty (monotonic ns), oldest first
        self.unseen: dict[Partition, int] = {}  # → since when (monotonic ns), oldest first
        self.moved: dict[Partition, None] = {}  # whose recovery point moved since a checkpoint
        self.watches = FetchWatches()
        self.average_ns = 200_000

    def request_sync(self, partition: Partition) -> None:
        """Somebody waits for this partition to be synced."""
        if not partition.syncing:
            partition.syncing = True
            self.wanted.append(partition)
            self.unseen.pop(partition, None)

    def wrote(self, partition: Partition, now_ns: int) -> None:
        """The partition has bytes that are not on the disk yet, and perhaps somebody who waits."""
        assert partition.broken is None, "what failed is never synced again"
        progress = partition.progress
        unseen = progress.held < progress.log_end  # nobody sees it before a sync covers it
        waits = (
            bool(partition.waiting) and not partition.shared
        )  # else perhaps for other nodes alone
        if not waits and unseen:
            waits = bool(partition.waiting or partition.parked or partition.asking)
            if self.watches.waits and not waits:
                waits = self.watches.has(partition.handle)
        if waits:
            self.request_sync(partition)
        elif unseen and partition not in self.unseen:
            self.unseen[partition] = now_ns
            self.due_ns = min(self.due_ns, now_ns + _VISIBLE_NS)
        if partition not in self.dirty:
            self.dirty[partition] = now_ns
            self.due_ns = min(self.due_ns, now_ns + LOOK_EVERY_NS)

    def forget_partition(self, partition: Partition) -> None:
        """The partition is closed or broken."""
        self.dirty.pop(partition, None)
        self.unseen.pop(partition, None)
        self.moved.pop(partition, None)
        self._journals.forget_partition(partition)
        if partition in self.wanted:
            self.wanted.remove(partition)
            partition.syncing = False

    def busy(self) -> bool:
        """True while a sync is under way, or wanted."""
        return self.under_way > 0 or bool(self.wanted)

    def wait(self) -> None:
        """Return when a sync has ended (or soon after it did)."""
        if self._journals.under_way:
            self._journals.wait()
        else:
            self._threads.wait()

    def ended(self) -> list[Synced]:
        """Takes the results of the threads."""
        done = self._threads.take_ended()
        self._syncs -= len(done)
        ended = []
        for one in done:
            try:
                ended.append(self._end(one))
            except Exception as bug:
                ended.append(self._failed(one, bug))
        journals = self._journals
        if journals.under_way:
            durable, refused = journals.ended()
            for partition, end in durable:
                try:
                    ended.append(self._shown(partition, end))
                except Exception as bug:
                    ended.append(_failed(partition, bug))
            self.wanted += refused
            if journals.pending:
                self.wanted += journals.begin_groups()
            self._look_at_overdue()
        self._count()
        return ended

    def begin_syncs(self) -> list[Synced]:
        """Make those durable that want it: all short ends of a folder by one write of its journal,
        the others by a sync of their files, some of them in the next turn if that takes long. What
        was done at once is returned."""
        wanted = self.wanted
        if not wanted:
            return []
        self.wanted = []
        if (
            len(wanted) == 1
            and len(wanted[0].waiting) == 1
            and self.average_ns < QUICK_SYNC_NS
            and not self.under_way
            and not self._pending()
        ):
            partition = wanted[0]
            if fast_sync.is_all(partition.log):
                done = run((partition, None, False), partial(fast_sync.sync, partition.log))
            else:
                done = run(*_job(partition, background=False))
            try:
                return [self._end(done)]
            except Exception as bug:
                return [self._failed(done, bug)]
        journals = self._journals
        own, failed = [], []
        for partition in wanted:
            try:
                if not journals.offer(partition):
                    own.append(partition)
            except Exception as bug:
                failed.append(_failed(partition, bug))
        if journals.pending:
            own += journals.begin_groups()
            self._look_at_overdue()
        self._sync(own, failed)
        self._count()
        return failed

    def _sync(self, wanted: list[Partition], failed: list[Synced]) -> None:
        room = EPOCHS_A_TURN
        for partition in wanted:
            if partition.log.epochs.changed:
                room -= 1
                if room < 0:
                    self.wanted.append(partition)
                    continue
            try:
                self._submit(partition, background=False)
            except Exception as bug:
                failed.append(_failed(partition, bug))

    def _shown(self, partition: Partition, end: int) -> Synced:
        """By a group: its own file is still to be synced."""
        partition.syncing = False
        if self.unseen:
            self.due_ns = 0
        return Synced(partition, end, None)

    def _look_at_overdue(self) -> None:
        if self._journals.overdue:
            self.due_ns = 0

    def _count(self) -> None:
        self.under_way = self._syncs + self._journals.under_way
        assert self._syncs >= 0 <= self._journals.under_way

    def tick(self, now_ns: int) -> None:
        """Begin a background sync when one is due and none is under way."""
        self.due_ns = NEVER
        if self._background:
            return  # its end makes the next one due
        if self.unseen and self._show(now_ns):
            return
        for partition in self._journals.overdue:
            if not partition.syncing:  # or its end makes the next one due
                self._begin(partition)
                return
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + LOOK_EVERY_NS
            for partition, since_ns in self.dirty.items():
                if not partition.syncing and _is_old(partition, now_ns - since_ns):
                    self._begin(partition)
                    return
        if self.dirty:
            self.due_ns = min(self.due_ns, self._look_ns)

    def _show(self, now_ns: int) -> bool:
        """See to those that have been unseen for long: a group takes all that it can, of the
        others one is synced at a time; whether that began."""
        due = []
        for partition, since_ns in self.unseen.items():
            if now_ns - since_ns < _VISIBLE_NS:
                self.due_ns = since_ns + _VISIBLE_NS
                break
            if not partition.syncing:  # or its end makes the next one due
                due.append(partition)
        for partition in due:
            if not self._journals.takes(partition):
                self._begin(partition)
                return True
            self.request_sync(partition)
        return False

    def _begin(self, partition: Partition) -> None:
        self._submit(partition, background=True)
        self._background = partition.syncing = True
        self.unseen.pop(partition, None)

    def _submit(self, partition: Partition, *, background: bool) -> None:
        self._threads.submit(*_job(partition, background=background))
        self._syncs += 1
        self._count()

    def _failed(self, done: Done, bug: Exception) -> Synced:
        """An exception is this partition's: the core takes it offline."""
        if done.tag[2]:
            self._background = False
        return _failed(done.tag[0], bug)

    def _end(self, done: Done) -> Synced:
        partition, job, background = done.tag
        log = partition.log
        partition.syncing = False
        if background:
            self._background = False
            self._look_ns = 0
        if background or self.unseen or self._journals.overdue:
            self.due_ns = 0
        if done.failure is None:
            self.average_ns += (done.took_ns - self.average_ns) // 8
            if job is not None:
                log.flushed(job)
            if self._count_flush is not None:
                self._count_flush(done.took_ns)
            self.moved[partition] = None
            self.dirty.pop(partition, None)
            if self._journals.made:
                self._journals.settled(partition)
        return Synced(partition, log.recovery_point, done.failure)


def _failed(partition: Partition, bug: Exception) -> Synced:
    partition.syncing = False
    return Synced(partition, partition.log.recovery_point, bug)


def _is_old(partition: Partition, age_ns: int) -> bool:
    """True if a log has been dirty for long, or has many unsynced bytes."""
    return (
        age_ns >= BACKGROUND_NS
        or age_ns >= partition.rules.flush_ms * 1_000_000
        or partition.log.unsynced_bytes >= BACKGROUND_BYTES
    )


def _job(partition: Partition, *, background: bool) -> tuple[Tag, Callable[[], None]]:
    """A sync as a job. What cannot even be prepared fails where every sync fails: in `_end`."""
    try:
        job = partition.log.flush_job()
    except Exception as failure:
        return (partition, None, background), partial(_refuse, failure)
    return (partition, job, background), _nothing if job is None else job.run


def _nothing() -> None:
    """All of the log is on the disk already."""


def _refuse(failure: Exception) -> None:
    raise failure
