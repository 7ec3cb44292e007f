"""One I/O process without its process: partitions, what arrives for them, what goes back.

A turn is `handle` for each netproc's messages, then `finish`: one write per touched partition, the
syncs that somebody waits for, rows of the partition table, parked reads, completions. Invariant:
after `finish` nothing refers to an arena. `main.py` owns the loop, the clock and the links and
calls this; tests drive it over bytearrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from appliance.base import errors
from appliance.base.errors import DiskFull, PeerError, StorageFailed
from appliance.base.space import SpaceGuard
from appliance.ioproc import reading
from appliance.ioproc.asker import Asker, Completion, Nobody, refusal
from appliance.ioproc.groups import Groups
from appliance.ioproc.partition import Partition
from appliance.ioproc.purgatory import ParkedRead, Purgatory
from appliance.ioproc.rows import Rows
from appliance.ioproc.syncing import Synced, Syncing
from appliance.logstore.log import Log
from appliance.ring.messages import (
    APPEND,
    APPENDED,
    CANCEL,
    COORDINATE,
    DELETE_RECORDS,
    DELETED,
    EPOCH_END,
    EPOCH_ENDED,
    FOUND,
    LIST_OFFSET,
    LISTED,
    MOVE,
    MOVED,
    READ,
    Message,
)

PARKED_READS: Final = 1 << 16
"""How many reads one netproc may have parked; each takes 300 bytes."""

_ANSWERS: Final = {
    READ: FOUND,
    LIST_OFFSET: LISTED,
    EPOCH_END: EPOCH_ENDED,
    DELETE_RECORDS: DELETED,
    MOVE: MOVED,
}

_READS: Final = frozenset((READ, LIST_OFFSET, EPOCH_END))
"""What changes nothing: a file that cannot be read costs who wanted it an error, and nobody else
anything."""

_OF_THE_END: Final = frozenset((LIST_OFFSET, DELETE_RECORDS))
"""What asks where the log ends waits until what was acknowledged before can be seen."""

Report = Callable[[Partition, StorageFailed], None]
"""Told once about each partition that goes offline (its log has failed then), and about each file
of it that cannot be read."""

Fetcher = Callable[[int], Partition | None]
"""Opens the partition of a row at once if it is still to be opened; None: there is none here."""

Mover = Callable[[Partition, int, int], int]
"""(partition, number of a log folder, now in ms): begins to move it there; Kafka's error code."""

Checkpoint = Callable[[Partition, Callable[[StorageFailed | None], None]], None]
"""(partition, whom to tell what became of it): begins to make its log start offset durable."""


def _stays(partition: Partition, number: int, now_ms: int) -> int:
    return errors.NONE if number == partition.directory else errors.LOG_DIR_NOT_FOUND


class Core:
    """The partitions of one ioproc and everything that is asked of them."""

    __slots__ = (
        "_changed",
        "_checkpoint",
        "_nobody",
        "_report",
        "_risen",
        "_rows",
        "_touched",
        "_unwritten",
        "askers",
        "fetch",
        "groups",
        "mover",
        "partitions",
        "purgatory",
        "refused",
        "space",
        "spaces",
        "syncing",
    )

    def __init__(
        self,
        rows: Rows,
        syncing: Syncing,
        space: SpaceGuard,
        checkpoint: Checkpoint,
        report: Report,
    ) -> None:
        self.partitions: dict[int, Partition] = {}
        self.askers: dict[int, Asker] = {}
        self.refused: dict[int, None] = {}  # rows of partitions that could not be opened
        self.purgatory = Purgatory(PARKED_READS)
        self.syncing = syncing
        self.space = space
        self.spaces = [space]  # by number of the log folder
        self.groups: Groups | None = None  # group coordinators; tests of other things have none
        self.fetch: Fetcher = self.partitions.get
        self.mover: Mover = _stays
        self._rows = rows
        self._checkpoint = checkpoint
        self._report = report
        self._nobody = Nobody()
        self._touched: dict[Partition, None] = {}
        self._unwritten: dict[Partition, None] = {}  # whose logs hold what found no room
        self._changed: dict[Partition, bool] = {}  # → whether its high watermark rose

    # What arrives ---------------------------------------------------------------------------------

    def handle(self, asker: Asker, messages: list[Message], now_ms: int) -> None:
        """Decide on a netproc's messages in order; appends are answered by `finish` or by a later
        sync."""
        for message in messages:
            op = message[0]
            if op == APPEND:
                self._append(asker, message, now_ms)
            elif op == CANCEL:
                self.purgatory.cancel(asker.index, message[3])
            elif op == COORDINATE:
                if self.groups is not None:
                    self.fetch(message[2])
                    self.groups.take(asker, message, now_ms)
            elif op in _ANSWERS:
                self._ask(asker, op, message, now_ms)

    def _append(self, asker: Asker, message: Message, now_ms: int) -> None:
        _, _, handle, token, position, _, _, _, _, _, _, _, length, acks, _ = message
        partition = self.partitions.get(handle) or self.fetch(handle)
        if partition is None:
            code = self._absent(handle)
        elif partition.broken is not None or partition.space.low:
            code = errors.KAFKA_STORAGE_ERROR
        else:
            try:
                batch = asker.arena[position : position + length]
                partition.append(asker, token, batch, acks, now_ms)
            except PeerError as error:
                start = partition.log.log_start_offset
                asker.out.append((APPENDED, error.code + 1, handle, token, -1, -1, start, -1))
                return
            except DiskFull:
                code = errors.KAFKA_STORAGE_ERROR
                partition.space.exhausted()
                self._touched[partition] = None
            except StorageFailed as failure:
                code = errors.KAFKA_STORAGE_ERROR
                self.fail(partition, failure)
            else:
                self._touched[partition] = None
                partition.space.wrote(length)
                return
        asker.out.append(refusal(APPENDED, code, handle, token))

    def _ask(self, asker: Asker, op: int, message: Message, now_ms: int) -> None:
        _, _, handle, token, *_ = message
        partition = self.partitions.get(handle) or self.fetch(handle)
        if partition is None:
            asker.out.append(refusal(_ANSWERS[op], self._absent(handle), handle, token))
            return
        if op == DELETE_RECORDS and partition.staged:
            self._commit(partition)  # the log start may move up to what was appended just before
        if partition.broken is not None:
            asker.out.append(refusal(_ANSWERS[op], errors.KAFKA_STORAGE_ERROR, handle, token))
            return
        if op in _OF_THE_END and partition.unseen:
            partition.asking.append((asker, message, partition.log.written_end))
            self.syncing.want(partition)
            return
        self._reply(asker, partition, message, now_ms)

    def _reply(self, asker: Asker, partition: Partition, message: Message, now_ms: int) -> None:
        op, _, handle, token, *_ = message
        try:
            answer = self._answer(asker, partition, message, now_ms)
        except DiskFull:
            answer = refusal(_ANSWERS[op], errors.KAFKA_STORAGE_ERROR, handle, token)
        except StorageFailed as failure:
            if op in _READS:
                self._unreadable(partition, failure)
            else:
                self.fail(partition, failure)
            answer = refusal(_ANSWERS[op], errors.KAFKA_STORAGE_ERROR, handle, token)
        except PeerError as error:  # a stored batch that cannot be opened
            answer = refusal(_ANSWERS[op], error.code, handle, token)
        if answer is not None:
            asker.out.append(answer)

    def _absent(self, handle: int) -> int:
        """The error for a partition that is not served here."""
        if handle in self.refused:
            return errors.KAFKA_STORAGE_ERROR
        return errors.UNKNOWN_TOPIC_OR_PARTITION

    def _answer(
        self, asker: Asker, partition: Partition, message: Message, now_ms: int
    ) -> Completion | None:
        op, flags, _, token, a, b, _, _, _, _, _, _, e, f, _ = message
        if op == READ:
            answer = reading.find(partition, token, flags, a, b, e, f)
            if answer is None:
                key = asker.index << 64 | token
                read = ParkedRead(key, partition, asker.index, token, a, b, flags, e, f)
                if not self.purgatory.park(read):
                    answer = reading.find(partition, token, 0, a, b, e, f)
                elif partition.unseen:
                    self.syncing.want(partition)
            return answer
        if op == LIST_OFFSET:
            return reading.list_offset(partition, token, a, b)
        if op == EPOCH_END:
            return reading.epoch_end(partition, token, a, b)
        if op == MOVE:
            return refusal(MOVED, self.mover(partition, a, now_ms), partition.handle, token)
        answer, moved = reading.delete_records(partition, token, a)
        if moved:
            partition.start_unsaved = True
            self._changed.setdefault(partition, False)
        if not partition.start_unsaved:
            return answer
        self._checkpoint(partition, partial(self._deleted, asker, asker.life, answer))
        return None

    def _deleted(
        self, asker: Asker, life: int, answer: Completion, failure: StorageFailed | None
    ) -> None:
        """A log start is durable, or could not be made so: then it may be back after a start."""
        if asker.life == life:
            op, _, handle, token, *_ = answer
            refused = refusal(op, errors.KAFKA_STORAGE_ERROR, handle, token)
            asker.out.append(refused if failure else answer)

    # The end of a turn ----------------------------------------------------------------------------

    def finish(self, now_ns: int) -> bool:
        """Write, sync, publish, wake, answer. False when completions wait for room in a ring."""
        syncing = self.syncing
        groups = self.groups
        if groups is not None and groups.decided:
            groups.stage()
        if self._touched:
            for partition in self._touched:
                self._commit(partition)
                if partition.broken is None:
                    syncing.wrote(partition, now_ns)
            self._touched.clear()
        for synced in syncing.ended(now_ns):
            self._conclude(synced, now_ns)
        for synced in syncing.start(now_ns):
            self._conclude(synced, now_ns)
        syncing.tick(now_ns)
        if self._changed:
            for partition, risen in self._changed.items():
                self._rows.publish(partition)
                if risen and partition.parked:
                    self._wake(partition)
            self._changed.clear()
        sent = groups is None or not groups.waiting or groups.release()
        for asker in self.askers.values():
            if asker.out and not asker.push():
                sent = False
        return sent

    def _commit(self, partition: Partition) -> None:
        """Write what was staged; the first failure takes the partition offline."""
        if not partition.staged and not partition.log.held:
            return
        try:
            risen = partition.commit()
        except DiskFull:
            self._no_room(partition, lost=False)
            return
        except StorageFailed as failure:
            self.fail(partition, failure)
            return
        self._changed[partition] = risen or self._changed.get(partition, False)

    def _no_room(self, partition: Partition, *, lost: bool) -> None:
        partition.space.exhausted()
        partition.no_room()
        if partition.log.held:
            self._unwritten[partition] = None
        if self.groups is not None:
            self.groups.no_room(partition, lost=lost)

    def has_room(self, number: int) -> None:
        """There is room in this log folder again: what was held is written, and soon synced."""
        for partition in [p for p in self._unwritten if p.directory == number]:
            del self._unwritten[partition]
            self._commit(partition)
            if partition.broken is None and not partition.log.held:
                self.syncing.want(partition)

    def _conclude(self, synced: Synced, now_ns: int) -> None:
        """A sync ended: answer those it covers; begin the next one for those it does not."""
        partition, end, failure = synced
        if partition.broken is not None:
            return
        if failure is not None:
            if not isinstance(failure, StorageFailed):
                raise failure
            self.fail(partition, failure)
            return
        risen = partition.on_synced(end)
        self._changed[partition] = risen or self._changed.get(partition, False)
        if end < partition.log.written_end:
            self.syncing.wrote(partition, now_ns)
        asking = partition.asking
        while asking and asking[0][2] <= end:
            asker, message, _ = asking.popleft()
            self._reply(asker, partition, message, 0)  # the clock is for moves

    def _wake(self, partition: Partition) -> None:
        """Answer the parked reads that have enough now."""
        for read in list(partition.parked.values()):
            try:
                answer = reading.find(
                    partition,
                    read.token,
                    read.flags,
                    read.offset,
                    read.epoch,
                    read.max_bytes,
                    read.min_bytes,
                )
            except StorageFailed as failure:
                self._unreadable(partition, failure)
                code = errors.KAFKA_STORAGE_ERROR
                answer = refusal(FOUND, code, partition.handle, read.token)
            if answer is not None:
                self.purgatory.take(read)
                self.askers[read.peer].out.append(answer)

    def fail(self, partition: Partition, failure: StorageFailed) -> None:
        """Take the partition offline: what waits is told now, what comes is refused."""
        partition.log.fail(failure)
        partition.fail(failure)
        self._unwritten.pop(partition, None)
        self.syncing.forget(partition)
        self._rows.offline(partition.handle)
        self._refuse_reads(partition, errors.KAFKA_STORAGE_ERROR)
        if self.groups is not None:
            self.groups.close(partition)
        self._report(partition, failure)

    def _unreadable(self, partition: Partition, failure: StorageFailed) -> None:
        """A read failed. Said once about each file: consumers ask again and again."""
        if failure.path not in partition.unreadable:
            partition.unreadable.add(failure.path)
            self._report(partition, failure)

    def _refuse_reads(self, partition: Partition, code: int) -> None:
        """Whoever waits for the high watermark to rise is told that it will not."""
        for asker, message, _ in partition.asking:
            answer = _ANSWERS[message[0]]
            asker.out.append(refusal(answer, code, partition.handle, message[3]))
        partition.asking.clear()
        for read in list(partition.parked.values()):
            self.purgatory.take(read)
            out = self.askers[read.peer].out
            out.append(refusal(FOUND, code, partition.handle, read.token))

    # Partitions and askers come and go ------------------------------------------------------------

    def add(self, partition: Partition, now_ns: int) -> None:
        """Serve a partition from now on."""
        assert partition.handle not in self.partitions
        partition.space = self.spaces[partition.directory]
        self.partitions[partition.handle] = partition
        self.refused.pop(partition.handle, None)
        self._rows.take_over(partition)
        self._rows.publish(partition)
        self._rows.online(partition)
        if self.groups is not None:
            self.groups.open(partition)

    def remove(self, handle: int, now_ns: int) -> Partition:
        """Serve a partition no longer; who waits for it is told that it does not exist.

        Returns once no thread works on its files, so that its log can be closed or deleted.
        """
        partition = self.partitions.pop(handle)
        self._let_syncs_end(partition, now_ns)
        self._touched.pop(partition, None)
        self._changed.pop(partition, None)
        self._unwritten.pop(partition, None)
        self.syncing.forget(partition)
        partition.refuse_all(errors.UNKNOWN_TOPIC_OR_PARTITION)
        self._refuse_reads(partition, errors.UNKNOWN_TOPIC_OR_PARTITION)
        self._rows.closed(partition)
        if self.groups is not None:
            self.groups.close(partition)
        return partition

    def quiesce(self, partition: Partition, now_ns: int) -> None:
        """Commit and sync all that the partition has; no thread works on its files at return."""
        self._commit(partition)
        self._touched.pop(partition, None)
        if partition.waiting or partition.unseen:
            self.syncing.want(partition)
        self._let_syncs_end(partition, now_ns)

    def _let_syncs_end(self, partition: Partition, now_ns: int) -> None:
        """Those that are wanted too: one that ends may want another for what came meanwhile."""
        while partition.syncing:
            for synced in self.syncing.start(now_ns):
                self._conclude(synced, now_ns)
            if partition.syncing:
                self.syncing.wait()
            for synced in self.syncing.ended(now_ns):
                self._conclude(synced, now_ns)

    def replace(self, partition: Partition, log: Log, directory: int) -> None:
        """The partition lies in another log folder now; `quiesce` came before."""
        assert not (partition.syncing or partition.waiting or partition.staged or partition.asking)
        self.syncing.forget(partition)
        partition.log = log
        partition.synced = log.recovery_point
        partition.directory = directory
        partition.future = (0, 0, 0)
        partition.space = self.spaces[directory]
        partition.set_rules(partition.rules)
        self._rows.take_over(partition)
        self._rows.publish(partition)
        if self.groups is not None:
            self.groups.close(partition)
            self.groups.open(partition)

    def settle(self, now_ns: int) -> None:
        """Finish all that is under way: every record is visible, everybody is answered."""
        self.finish(now_ns)
        for partition in list(self.syncing.unseen):
            self.syncing.want(partition)
        self.finish(now_ns)
        while self.syncing.busy():
            self.syncing.wait()
            self.finish(now_ns)

    def drop(self, asker: Asker) -> None:
        """The netproc died: forget what it waits for."""
        asker.forget()
        if self.groups is not None:
            self.groups.drop(asker.index)
        self.purgatory.drop_peer(asker.index)
        for partition in self.partitions.values():
            partition.forget_asker(asker)

    def append_own(self, partition: Partition, batch: memoryview, now_ms: int) -> bool:
        """Append what the appliance itself has to say; whether that was staged. A failure takes
        the partition offline; of no room the groups are told."""
        try:
            partition.append_own(self._nobody, batch, now_ms)
        except DiskFull:
            self._touched[partition] = None
            self._no_room(partition, lost=True)
            return False
        except StorageFailed as failure:
            self.fail(partition, failure)
            return False
        self._touched[partition] = None
        partition.space.wrote(len(batch))
        return True

    def publish(self, partition: Partition) -> None:
        """Something about the partition changed outside a turn's messages."""
        self._changed.setdefault(partition, False)

    def new_layout(self, partition: Partition) -> None:
        """Full segments are about to be replaced: readers are told first."""
        partition.log.layout += 1
        self._rows.publish(partition)

    def cleaned(self, partition: Partition, cleaned_to: int, failures: int) -> None:
        """Say how compaction goes."""
        self._rows.cleaned(partition, cleaned_to, failures)

    def refuse_row(self, handle: int) -> None:
        """The partition of this row could not be opened."""
        self.refused[handle] = None
        self._rows.offline(handle)
