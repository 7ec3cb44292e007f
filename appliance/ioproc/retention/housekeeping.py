"""Timed work of an ioproc: retention, delayed removal of files, checkpoint files, a check of the
disk's space.

Invariant: a checkpoint never says more than what is true on the disk at that moment: recovery
points are those of syncs that ended. Unlinking and checkpoint writing run on threads of their own.
Called by the shell once per turn.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import monotonic_ns
from typing import Final, Protocol

from appliance.base import reserve
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.retention_clock import RetentionClock
from appliance.config.broker import BrokerConfig
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.checkpoints import Offsets
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore.removal import Removal
from appliance.shell.flusher import Flusher
from appliance.shell.log import ERROR, NOTICE, WARNING

_RECOVERY_MS: Final = "log.flush.offset.checkpoint.interval.ms"
_WATERMARK_MS: Final = "replica.high.watermark.checkpoint.interval.ms"
_FILES: Final = (
    checkpoints.LOG_START,
    checkpoints.RECOVERY_POINT,
    checkpoints.HIGH_WATERMARK,
    checkpoints.CLEANER,
)
RELIEVE_NS: Final = 1_000_000_000
RETAIN_NS: Final = 2_000_000
"""Of one turn at most for a round over all partitions. A single step may take longer: a log that
rolls makes four files."""
_REMOVALS: Final = 64  # handed to the thread in one turn at most: a large topic is over at once


class RemovalFilter(Protocol):
    """Removals that must wait for something else: `remote.removing.RemoteRemovals`."""

    def take_removal(self, removal: Removal) -> bool:
        """True if it waits."""
        ...

    def take_ready(self) -> list[Removal]:
        """Those that wait no more."""
        ...


class Housekeeping:
    """The chores of one ioproc. chores: its thread for what blocks. trims: log starts that are to
    be durable. time: by which things are old; others of this process may ask it too. remote: keeps
    folders until a remote store has nothing of them."""

    def __init__(
        self,
        config: BrokerConfig,
        ground: JobContext,
        chores: Flusher,
        trims: LogStartCheckpoint,
        time: RetentionClock,
        remote: RemovalFilter | None = None,
    ) -> None:
        self._disk, self._dirs, self._core, self._events = ground
        self._chores = chores
        self._remote = remote
        self._time = time
        self._doubts = False  # of the clock, and it is said
        self.trims = trims
        self._removals: list[tuple[int, int, Removal]] = []  # due (wall ms), number, what
        self._fresh = 0  # number of the first removal that came since a full disk was last relieved
        self._relieve_ns = 0
        self._round: Iterator[None] | None = None  # over partitions: one at a time
        self._number = 0
        # File, number of the log folder → of which partitions.
        self._writing: dict[tuple[str, int], list[Partition]] = {}
        self._watermarks: dict[Partition, int] = {}  # as written last
        self._next_recovery_ns = 0
        self._next_watermark_ns = 0
        self._next_retention_ns = 0
        self._recovery_every_ns = config.int(_RECOVERY_MS) * 1_000_000
        self._watermark_every_ns = config.int(_WATERMARK_MS) * 1_000_000
        self._retention_every_ns = config.int("log.retention.check.interval.ms") * 1_000_000
        self._producer_expiration_ms = config.int("producer.id.expiration.ms")

    def configure(self, config: BrokerConfig) -> None:
        """Settings of the broker were changed while it runs."""
        self._producer_expiration_ms = config.int("producer.id.expiration.ms")
        for space in self._core.served.spaces:
            space.keep_free(config.int("penstock.disk.free.min.bytes"))

    def tick(self, now_ns: int, now_ms: int) -> bool:
        """Do what is due; False when there is more of it for the next turn."""
        believed_ms = self._believe(now_ns, now_ms)
        self._run("checkpoints that were written", self._take)
        for number, path in self._dirs.online():
            if self._core.served.spaces[number].due(now_ns):
                self._run("a look at the room", partial(self._look, number, path, now_ns))
        if now_ns >= self._next_recovery_ns:
            self._next_recovery_ns = now_ns + self._recovery_every_ns
            self._run("checkpoint of recovery points", self._checkpoint_recovery_points)
        if now_ns >= self._next_watermark_ns:
            self._next_watermark_ns = now_ns + self._watermark_every_ns
            if not self._run("checkpoint of high watermarks", self._checkpoint_watermarks):
                self._watermarks.clear()  # nobody knows what of it is written: all is, next time
        over = self._run("removals", partial(self._remove_some, now_ms))
        self._run("a round over partitions", partial(self._go_round, now_ns, believed_ms))
        due_ns = min(self._relieve_ns, self._next_retention_ns)
        return over and self._round is None and now_ns < due_ns

    def _run(self, where: str, chore: Callable[[], bool | None]) -> bool:
        """False when the chore says so, or raised: it has its next time."""
        try:
            return chore() is not False
        except Exception as bug:
            self._core.barrier.report_bug(where, bug)
            return False

    def _go_round(self, now_ns: int, now_ms: int) -> None:
        going, self._round = self._round, None  # one that raises is over
        self._round = _go_on(self._begin_round(now_ns, now_ms) if going is None else going)

    def _believe(self, now_ns: int, wall_ms: int) -> int:
        """The time by which things are old."""
        doubted, believed = self._doubts, self._time.at(now_ns, wall_ms)
        self._doubts = self._time.jumped_ms > 0
        if self._doubts and not doubted:
            self._events.event(
                WARNING,
                "clock-jumped-ahead",
                seconds=self._time.jumped_ms // 1000,
                action="nothing-gets-old-for-an-hour",
            )
        return believed

    def _begin_round(self, now_ns: int, now_ms: int) -> Iterator[None] | None:
        """Begins the work that has been due for longest."""
        if now_ns < min(self._relieve_ns, self._next_retention_ns):
            return None
        if self._relieve_ns <= self._next_retention_ns:
            self._relieve_ns = now_ns + RELIEVE_NS
            return self._relieve(now_ns, now_ms)
        self._next_retention_ns = now_ns + self._retention_every_ns
        return self._retain_all(now_ns, now_ms)

    def look_at_space(self, now_ns: int) -> None:
        """See how much room the disks have, and say so when that decides something."""
        for number, path in self._dirs.online():
            self._look(number, path, now_ns)

    def _look(self, number: int, path: str, now_ns: int) -> None:
        space = self._core.served.spaces[number]
        try:
            total, free = self._disk.space(path)
            spare = reserve.spare(self._disk, path, total)
        except StorageFailed as failure:
            self._events.event(WARNING, "disk-space-unknown", cause=failure)
            total, free, spare = 0, space.free, 0
        if not space.read_space(now_ns, total, free, spare):
            return
        if space.low:
            self._events.event(
                ERROR,
                "disk-nearly-full",
                folder=path,
                free=free,
                missing=space.missing,
                action="refuse-produce",
            )
        else:
            self._core.has_room(number)
            self._events.event(
                NOTICE, "disk-has-room", folder=path, free=free, action="take-produce"
            )

    def remove_later(self, removal: Removal) -> None:
        """Remove files when their time has come."""
        if self._remote is None or not self._remote.take_removal(removal):
            self._push_removal(removal)

    def _push_removal(self, removal: Removal) -> None:
        self._number += 1
        heapq.heappush(self._removals, (removal.due_ms, self._number, removal))

    def _remove_some(self, now_ms: int) -> bool:
        """Remove what is due; False when there is more of it."""
        for removal in () if self._remote is None else self._remote.take_ready():
            self._push_removal(removal)
        removals = self._removals
        for _ in range(_REMOVALS):
            if not removals or removals[0][0] > now_ms:
                return True
            self._remove_now(heapq.heappop(removals)[2])
        return not removals or removals[0][0] > now_ms

    def _relieve(self, now_ns: int, now_ms: int) -> Iterator[None]:
        """Drop the segments of trimmed logs. While a disk is nearly full nothing waits for
        file.delete.delay.ms: what was there at the last look goes, who read it had a second."""
        trimmed = self.trims.trimmed
        for partition in list(trimmed):
            if partition.broken is not None or not partition.log.has_trimmed_segments:
                trimmed.pop(partition, None)
            elif partition in trimmed:  # and not deleted since the round began
                self._retain_one(partition, now_ns, now_ms)
            yield
        old: list[tuple[int, int, Removal]] = []
        if any(space.low for space in self._core.served.spaces):
            old = [one for one in self._removals if one[1] <= self._fresh]
            self._removals = [one for one in self._removals if one[1] > self._fresh]
            heapq.heapify(self._removals)
        self._fresh = self._number
        for _, _, removal in old:
            self._remove_now(removal)
            yield

    def write_down(self, partition: Partition, number: int) -> None:
        """The partition is about to lie in this log folder, all of it synced. Raises
        StorageFailed."""
        log, path = partition.log, self._dirs.paths[number]
        key = (partition.topic, partition.index)
        for name, offset in (
            (checkpoints.RECOVERY_POINT, log.end_offset),
            (checkpoints.LOG_START, log.log_start_offset),
        ):
            checkpoints.merge(self._disk, path, name, {key: offset})

    def lower(self, partition: Partition, point: int, end: int) -> None:
        """Its log is about to end at `end`, or to begin anew (-1), and may be as short as that from
        now on: nothing durable says more. point: the recovery point until the next sync. Raises
        StorageFailed."""
        assert not self.writing, "a write under way would say more"
        self._core.syncing.moved.pop(partition, None)
        path, key = self._dirs.paths[partition.directory], (partition.topic, partition.index)
        checkpoints.merge(self._disk, path, checkpoints.RECOVERY_POINT, {key: point})
        if end < partition.log.log_start_offset:
            checkpoints.merge(self._disk, path, checkpoints.LOG_START, {key: None})
        if end < partition.high_watermark:
            marks = {key: max(end, 0)}
            checkpoints.merge(self._disk, path, checkpoints.HIGH_WATERMARK, marks)
            self._watermarks.pop(partition, None)

    def forget_deleted(self, gone: Sequence[Partition]) -> None:
        """Drop what the checkpoints say of deleted partitions, before others of that name are
        created."""
        self.trims.wait()
        while self._writing:  # or a write under way would bring it back
            self._chores.wait()
            self._take()
        self.forget_job(gone)()

    @property
    def writing(self) -> bool:
        """True while a checkpoint is being written."""
        return bool(self._writing) or self.trims.busy

    def forget_job(self, gone: Sequence[Partition]) -> Callable[[], None]:
        """The job of `forget`, for any thread; while no checkpoint is being written."""
        assert not self.writing, "a write under way would bring it back"
        for partition in gone:
            self._watermarks.pop(partition, None)
        return partial(self._drop, gone)

    def _drop(self, gone: Sequence[Partition]) -> None:
        for path, those in self._by_folder(gone):
            keys = dict.fromkeys((p.topic, p.index) for p in those)
            for name in _FILES:
                checkpoints.merge(self._disk, path, name, keys)

    def _by_folder(self, partitions: Iterable[Partition]) -> Iterator[tuple[str, list[Partition]]]:
        """The partitions of each log folder."""
        for number, path in self._dirs.online():
            those = [p for p in partitions if p.directory == number]
            if those:
                yield path, those

    def close(self) -> None:
        """Write every checkpoint once more, after all logs were closed. Raises StorageFailed."""
        self.trims.finish_trims()
        self._chores.close()
        sound = [p for p in self._core.partitions.values() if p.broken is None]
        for path, those in self._by_folder(sound):
            points = {(p.topic, p.index): p.log.recovery_point for p in those}
            marks = {(p.topic, p.index): p.high_watermark for p in those}
            checkpoints.merge(self._disk, path, checkpoints.RECOVERY_POINT, points)
            checkpoints.merge(self._disk, path, checkpoints.HIGH_WATERMARK, marks)

    # Checkpoints ----------------------------------------------------------------------------------

    def _checkpoint_recovery_points(self) -> None:
        moved = self._core.syncing.moved
        for number, _ in self._dirs.online() if moved else ():
            if (checkpoints.RECOVERY_POINT, number) not in self._writing:
                those = [p for p in moved if p.directory == number]
                points = {(p.topic, p.index): p.log.recovery_point for p in those}
                for partition in those:
                    del moved[partition]
                self._write(checkpoints.RECOVERY_POINT, number, points, those)

    def _checkpoint_watermarks(self) -> None:
        written = self._watermarks
        marks: dict[int, Offsets] = {}
        those: dict[int, list[Partition]] = {}
        for partition in self._core.partitions.values():
            number = partition.directory
            if (
                written.get(partition) != partition.high_watermark
                and (checkpoints.HIGH_WATERMARK, number) not in self._writing
            ):
                written[partition] = partition.high_watermark
                key = (partition.topic, partition.index)
                marks.setdefault(number, {})[key] = partition.high_watermark
                those.setdefault(number, []).append(partition)
        for number, offsets in marks.items():
            self._write(checkpoints.HIGH_WATERMARK, number, offsets, those[number])

    def _write(self, name: str, number: int, offsets: Offsets, partitions: list[Partition]) -> None:
        if offsets:
            self._writing[name, number] = partitions
            path = self._dirs.paths[number]
            merge = partial(checkpoints.merge, self._disk, path, name, offsets)
            self._chores.submit((name, number), merge)

    def _take(self) -> None:
        for done in self._chores.take_ended():
            partitions = self._writing.pop(done.tag, [])  # a tag of two is a checkpoint's
            if done.failure is not None:
                self._write_again(done.tag, partitions)
                if not isinstance(done.failure, StorageFailed):
                    raise done.failure
                self._events.event(WARNING, "chore-failed", cause=done.failure)

    def _write_again(self, tag: tuple[object, ...], partitions: list[Partition]) -> None:
        """A checkpoint was not written: it is the next time, also of those that move no more."""
        for partition in partitions:
            if tag[0] == checkpoints.HIGH_WATERMARK:
                self._watermarks.pop(partition, None)
            elif partition.broken is None and self._serves(partition):
                self._core.syncing.moved[partition] = None

    def _serves(self, partition: Partition) -> bool:
        return self._core.partitions.get(partition.handle) is partition

    # Retention ------------------------------------------------------------------------------------

    def _retain_all(self, now_ns: int, now_ms: int) -> Iterator[None]:
        for partition in list(self._core.partitions.values()):
            served = self._core.partitions.get(partition.handle) is partition
            if served and partition.broken is None:  # the round takes many turns
                self._retain_one(partition, now_ns, now_ms)
            yield

    def _retain_one(self, partition: Partition, now_ns: int, now_ms: int) -> None:
        try:
            self._retain(partition, now_ns, now_ms)
        except DiskFull:
            pass  # the next time
        except StorageFailed as failure:
            self._core.fail(partition, failure)
        except Exception as bug:  # its segments may be half changed
            self._core.barrier.confine_bug("retention", partition, bug)
            self._core.tell_observers()

    def _retain(self, partition: Partition, now_ns: int, now_ms: int) -> None:
        log = partition.log
        before, segment = log.log_start_offset, log.active_base
        for removal in log.retain(now_ms, partition.high_watermark):
            self.remove_later(removal)
        log.producers.expire(now_ms, self._producer_expiration_ms)
        if log.active_base != segment:  # rolled, to be dropped once it is synced
            self._core.syncing.wrote(partition, now_ns)
        if log.log_start_offset != before:
            partition.trimmed()
            self._core.publish(partition)

    def _remove_now(self, removal: Removal) -> None:
        self._chores.submit(("removal",), partial(removal.run, self._disk))


def _go_on(chore: Iterator[None] | None) -> Iterator[None] | None:
    """Some steps of it; None when it is done."""
    if chore is None:
        return None
    until = monotonic_ns() + RETAIN_NS
    for _ in chore:
        if monotonic_ns() >= until:
            return chore
    return None
