"""Moving partitions of this ioproc from one log folder to another while they are in use (KIP-113).

A copy is made beside, in `<topic>-<partition>.<unique>-future`, as Apache Kafka calls it, until it
is nearly level; then control writes down the new place, and in one turn the rest is copied, synced,
and the copy takes the partition's name before the old folder loses it. Invariant: at every moment
what was acknowledged is in a folder with the partition's name, which is the one that is served; an
end in the middle of it all leaves the old one, and the next start begins the copy again. A copy
never takes the room that produces need: it asks the guard of its folder, and one for which there is
none any more is removed and begun again when there is.
"""

import errno
from collections.abc import Callable
from dataclasses import field
from functools import partial
from time import monotonic_ns
from typing import Final

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.disk import write_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.ioproc.log_folders import file_copy, folder_names
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore import files
from appliance.logstore.log import PartitionLog
from appliance.logstore.partition_metadata import write_metadata
from appliance.logstore.removal import Removal
from appliance.logstore.segment import Segment
from appliance.shell.flusher import Done, Threads
from appliance.shell.log import ERROR, NOTICE, WARNING

NEAR: Final = 1 << 20
"""Bytes that may be missing when control is asked to let the copy take over."""
NEAR_ENOUGH: Final = 8 * NEAR
"""And when it does: they are copied and synced in one turn."""

_ASK_AGAIN_NS: Final = 1_000_000_000

Assign = Callable[[int, int], None]
"""(row, number of the log folder): control is to write down that the partition lies there."""
Assigned = Callable[[Partition], int]
"""Number of the log folder that the metadata names for the partition."""


@dataclass(slots=True, eq=False)
class LogDirMove:
    """One partition on its way to log folder `number`; `folder` is the copy.

    copied: base offset → bytes. closed: base offset → size and time of a segment that takes no
    more batches, as it is copied. sealed: those of them that were copied whole, and synced. synced:
    base offset of the active segment whose copy was synced.
    """

    partition: Partition
    number: int
    folder: str
    copied: dict[int, int] = field(default_factory=dict)
    closed: dict[int, tuple[int, int]] = field(default_factory=dict)
    sealed: set[int] = field(default_factory=set)
    synced: int = -1
    ask_ns: int = 0

    def have(self, segment: Segment) -> int:
        """Bytes of a segment that were copied."""
        return self.copied.get(segment.base, 0)


class LogDirMoves:
    """The moves of one ioproc, one after the other. threads: one thread for copying.

    limit: bytes per second of copying, now. movers: how many ioprocs share that, this one with
    them. unique: hex digits that no other copy has.
    """

    def __init__(
        self,
        ground: JobContext,
        housekeeping: Housekeeping,
        threads: Threads,
        assign: Assign,
        assigned: Assigned,
        limit: Callable[[], int],
        movers: Callable[[], int],
        unique: Callable[[], str],
    ) -> None:
        self._disk, self._dirs, self._core, self._events = ground
        self._housekeeping = housekeeping
        self._threads = threads
        self._assign = assign
        self._assigned = assigned
        self._limit = limit
        self._movers = movers
        self._unique = unique
        self._moves: dict[Partition, LogDirMove] = {}
        self._waiting: dict[Partition, int] = {}  # for room in this log folder
        self._look_ns = 0
        self._next_ns = 0
        self._finished: list[Done] = []

    @property
    def under_way(self) -> bool:
        """True if there is any move."""
        return bool(self._moves)

    # What is asked --------------------------------------------------------------------------------

    def begin_move(self, partition: Partition, number: int, now_ms: int) -> int:
        """Move the partition to this log folder: Kafka's error code. To the one that it lies in
        means that a move that is under way is given up."""
        if not 0 <= number < len(self._dirs.paths):
            return errors.LOG_DIR_NOT_FOUND
        if self._dirs.ids[number] is None or partition.broken is not None:
            return errors.KAFKA_STORAGE_ERROR
        known = self._moves.get(partition)
        if known is not None and known.number == number:
            return errors.NONE
        self.give_up(partition, now_ms)
        if number == partition.directory:
            return errors.NONE
        lacks = self._core.served.spaces[number].lacks(partition.log.size)
        if lacks:
            self._say_lacks(partition, number, lacks)
            return errors.KAFKA_STORAGE_ERROR
        tail = f"-{partition.index}.{self._unique()}{folder_names.FUTURE_FOLDER}"
        folder = f"{self._dirs.paths[number]}/{partition.topic[: 255 - len(tail)]}{tail}"
        try:
            self._disk.mkdir(folder)
            write_metadata(self._disk, folder, partition.topic_id, sync=False)
        except StorageFailed as failure:
            self._events.event(ERROR, "move-failed", partition=partition, cause=failure)
            return errors.KAFKA_STORAGE_ERROR
        self._moves[partition] = move = LogDirMove(partition, number, folder)
        self._show(move)
        return errors.NONE

    def resume(self, now_ms: int) -> None:
        """After a start: begin again what was under way, remove what is left of the rest."""
        known = {(p.topic_id, p.index): p for p in self._core.partitions.values()}
        for path in folder_names.all_futures(self._disk, self._dirs):
            partition = known.get(folder_names.of_future(self._disk, path))
            if partition is None:
                continue  # of another ioproc, or of a partition that is offline
            self._remove(path, now_ms)
            number = self._dirs.number_of(path.rpartition("/")[0])
            if self._assigned(partition) in (number, partition.directory):
                self._begin_or_wait(partition, number, now_ms)
        for partition in known.values():
            number = self._assigned(partition)
            if number >= 0 and number != partition.directory:
                self._begin_or_wait(partition, number, now_ms)

    def _begin_or_wait(self, partition: Partition, number: int, now_ms: int) -> None:
        if self.begin_move(partition, number, now_ms) == errors.KAFKA_STORAGE_ERROR:
            self._waiting[partition] = number

    def _say_lacks(self, partition: Partition, number: int, lacks: int) -> None:
        where = self._dirs.paths[number]
        self._events.event(
            WARNING, "move-lacks-room", partition=partition, folder=where, missing=lacks
        )

    def give_up(self, partition: Partition, now_ms: int) -> None:
        """Forget a move; nothing works on the copy when this returns."""
        self._waiting.pop(partition, None)
        move = self._moves.pop(partition, None)
        if move is None:
            return
        while self._threads.outstanding():
            self._threads.wait()
            self._finished += self._threads.take_ended()
        partition.future = (0, 0, 0)
        self._core.publish(partition)
        self._remove(move.folder, now_ms)

    def begin_again(self, partition: Partition, now_ms: int) -> None:
        """The log is about to go back: what was copied of it is not like it any more."""
        move = self._moves.get(partition)
        if move is not None:
            self.give_up(partition, now_ms)
            self._waiting[partition] = move.number

    def _remove(self, folder: str, now_ms: int) -> None:
        try:
            gone = files.deleted_folder(
                folder.removesuffix(folder_names.FUTURE_FOLDER), self._unique()
            )
            self._disk.rename(folder, gone)
        except StorageFailed as failure:
            self._events.event(ERROR, "not-deleted", folder=folder, cause=failure)
        else:
            self._housekeeping.remove_later(Removal(now_ms, (), gone))

    # The clock ------------------------------------------------------------------------------------

    def tick(self, now_ns: int, now_ms: int) -> bool:
        """Go on with the oldest move; False when the next turn should come soon."""
        finished, self._finished = self._finished + self._threads.take_ended(), []
        for done in finished:
            move: LogDirMove = done.tag[0]
            if done.failure is not None and self._moves.get(move.partition) is move:
                if isinstance(done.failure, StorageFailed):
                    self._failed(move, done.failure, now_ms)
                else:
                    self._confine(move, done.failure, now_ms)
            rate = max(self._limit() // max(self._movers(), 1), 1)
            self._next_ns = now_ns + done.tag[1] * 1_000_000_000 // rate
        if self._waiting and now_ns >= self._look_ns:
            self._look_ns = now_ns + _ASK_AGAIN_NS
            self._begin_what_waits(now_ms)
        if not self._moves or self._threads.outstanding() or now_ns < self._next_ns:
            return True
        move = next(iter(self._moves.values()))
        if move.partition.broken is not None:
            self.give_up(move.partition, now_ms)
            return False
        try:
            return self._go_on(move, now_ns, now_ms)
        except StorageFailed as failure:
            self._failed(move, failure, now_ms)
            return False
        except Exception as bug:
            self._confine(move, bug, now_ms)
            return False

    def _confine(self, move: LogDirMove, bug: Exception, now_ms: int) -> None:
        """An exception costs the move. Once the copy has the partition's name it costs the
        partition: what the other folder has is behind, and the next start opens the right one."""
        partition, barrier = move.partition, self._core.barrier
        if self._moves.get(partition) is move and self._disk.exists(move.folder):
            barrier.report_bug("a move", bug, partition=partition)
            self.give_up(partition, now_ms)
        else:
            self._moves.pop(partition, None)
            barrier.confine_bug("a move", partition, bug)
            self._core.tell_observers()

    def _begin_what_waits(self, now_ms: int) -> None:
        for partition, number in list(self._waiting.items()):
            if self._core.partitions.get(partition.handle) is not partition:
                del self._waiting[partition]
            elif not self._core.served.spaces[number].lacks(partition.log.size):
                self._begin_or_wait(partition, number, now_ms)

    def _wait_for_room(self, move: LogDirMove, now_ms: int) -> None:
        """Remove the copy, which takes room itself, and begin again when there is enough."""
        partition, number = move.partition, move.number
        self._say_lacks(
            partition, number, self._core.served.spaces[number].lacks(partition.log.size)
        )
        self.give_up(partition, now_ms)
        self._waiting[partition] = number

    def _failed(self, move: LogDirMove, failure: StorageFailed, now_ms: int) -> None:
        if isinstance(failure, DiskFull):
            self._wait_for_room(move, now_ms)
            return
        self._events.event(ERROR, "move-failed", partition=move.partition, cause=failure)
        self.give_up(move.partition, now_ms)

    def _go_on(self, move: LogDirMove, now_ns: int, now_ms: int) -> bool:
        """The next step of a move: a piece on the thread, a question to control, or the change."""
        log = move.partition.log
        for segment in log.segments:
            if segment is log.active:
                break
            if not self._is_sealed(move, segment):
                self._next_piece(move, segment, segment.size)
                return True
        if log.active_size - move.have(log.active) > NEAR or not move.have(log.active):
            if log.active_size:
                self._next_piece(move, log.active, log.active_size)
                return True
        elif move.synced != log.active_base:
            move.synced = log.active_base
            path = f"{move.folder}/{log.active_base:020d}{files.LOG}"
            self._submit(move, 0, partial(file_copy.sync_file, self._disk, path))
            return True
        if self._assigned(move.partition) != move.number:
            if now_ns >= move.ask_ns:
                move.ask_ns = now_ns + _ASK_AGAIN_NS
                self._assign(move.partition.handle, move.number)
            return True
        self._change(move, now_ns, now_ms)
        return False

    def _is_sealed(self, move: LogDirMove, segment: Segment) -> bool:
        """True if a full segment was copied in its present form; compaction may have replaced
        it.
        """
        now = segment.size, self._disk.modified_ms(segment.path)
        known = move.closed.get(segment.base)
        if known != now:
            move.closed[segment.base] = now
            move.sealed.discard(segment.base)
            if known is not None or move.partition.rules.compact:
                move.copied[segment.base] = 0
        return segment.base in move.sealed

    def _next_piece(self, move: LogDirMove, segment: Segment, size: int) -> None:
        have = move.have(segment)
        target = f"{move.folder}/{segment.base:020d}"
        if have > size or not have:
            have = 0
        length = min(size - have, file_copy.PIECE)
        if self._core.served.spaces[move.number].lacks(length):
            raise DiskFull(move.folder, errno.ENOSPC, "no room for the copy")
        if length:
            move.copied[segment.base] = have + length
            job = partial(
                file_copy.copy_piece, self._disk, segment.path, target + files.LOG, have, length
            )
        else:
            move.sealed.add(segment.base)
            job = partial(file_copy.seal, self._disk, segment.stem, target)
        self._submit(move, length, job)
        self._show(move)

    def _submit(self, move: LogDirMove, length: int, job: Callable[[], None]) -> None:
        self._threads.submit((move, length), job)

    def _show(self, move: LogDirMove) -> None:
        """How far the copy is: for DescribeLogDirs. Of a segment that is half there the batches
        are not counted."""
        log = move.partition.log
        end = log.log_start_offset
        for segment in log.segments:
            whole = move.have(segment) >= segment.size and segment is not log.active
            if not whole:
                end = max(end, segment.base)
                break
        size = sum(move.copied.values())
        move.partition.future = (move.number + 1, end, size)
        self._core.publish(move.partition)

    # The change -----------------------------------------------------------------------------------

    def _change(self, move: LogDirMove, now_ns: int, now_ms: int) -> None:
        """Copy the rest, and let the copy be the partition. Raises StorageFailed while the old
        folder still is; what fails later takes the partition offline."""
        began_ns = monotonic_ns()
        partition = move.partition
        self._core.quiesce(partition, now_ns)
        log = partition.log
        if partition.broken is not None or log.has_unwritten:
            return
        if log.active_size - move.have(log.active) > NEAR_ENOUGH:
            return
        if not all(self._is_sealed(move, one) for one in log.segments if one is not log.active):
            return
        self._copy_rest(move)
        old = partition.log
        new_path = f"{self._dirs.paths[move.number]}/{partition}"
        folder_names.make_way(self._disk, new_path, partition.topic_id, self._unique())
        self._housekeeping.write_down(partition, move.number)
        self._disk.rename(move.folder, new_path)
        del self._moves[partition]
        try:
            self._disk.sync_dir(self._dirs.paths[move.number])
            self._open(partition, move.number, new_path, now_ms)
            removal = old.delete(self._unique(), now_ms)
        except StorageFailed as failure:
            self._core.fail(partition, failure)
            return
        self._housekeeping.remove_later(removal)
        where = self._dirs.paths[move.number]
        held_ms = (monotonic_ns() - began_ns) // 1_000_000
        self._events.event(
            NOTICE, "partition-moved", partition=partition, folder=where, held_up_ms=held_ms
        )

    def _copy_rest(self, move: LogDirMove) -> None:
        disk, log = self._disk, move.partition.log
        active = log.active
        have = move.have(active)
        target = f"{move.folder}/{active.base:020d}{files.LOG}"
        if have < log.active_size or not have:
            file_copy.copy_piece(disk, active.path, target, have, log.active_size - have)
            move.copied[active.base] = log.active_size
        file_copy.sync_file(disk, target)
        active.write_indexes(disk)
        log.snapshots.write_snapshot(log.end_offset, log.producers)
        file_copy.copy_small(disk, log.path, move.folder, f"{active.base:020d}")
        # Their file may be behind, and all of the copy is to lie below its recovery point.
        write_file(disk, f"{move.folder}/{files.LEADER_EPOCHS}", log.epochs.encode())
        file_copy.drop_others(disk, move.folder, [segment.base for segment in log.segments])
        file_copy.sync_file(disk, f"{move.folder}/{files.PARTITION_METADATA}")
        disk.sync_dir(move.folder)

    def _open(self, partition: Partition, number: int, path: str, now_ms: int) -> None:
        """Serve the log that lies at `path` now, and no longer the old one."""
        old = partition.log
        new = PartitionLog.open_folder(
            self._disk,
            path,
            old.config,
            recovery_point=old.end_offset,
            log_start_offset=old.log_start_offset,
            clean=False,
            machine_lived=True,
            now_ms=now_ms,
        )
        assert new.end_offset == old.end_offset, (path, new.end_offset, old.end_offset)
        self._housekeeping.forget_deleted([partition])  # in the old folder's checkpoints
        self._core.replace(partition, new, number)
