"""Requests on a partition that change no record: reads, offsets, epochs, the log start.

A read that finds too little is parked until the high watermark rises, or, of another replica,
until the log grows; who asks where the log ends
waits until what was acknowledged before can be seen. Invariant: each question is answered once, or
waits in its partition (`parked`, `asking`), or in a checkpoint of log starts. Called by
`dispatch.py` and by the core.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from appliance.base import errors
from appliance.base.errors import DiskFull, PeerError, StorageFailed
from appliance.config.bounds import WATCHES, setting_of
from appliance.ioproc.netproc_peer import Completion, NetprocPeer, refusal
from appliance.ioproc.partition_failures import ANSWERS, Failures
from appliance.ioproc.partitions import read_rules
from appliance.ioproc.partitions.fetch_watches import FetchWatch, rows_of, unmoved
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.purgatory import ParkedRead
from appliance.ioproc.replication.replicas import Replicas
from appliance.ioproc.requests.appends import Appends
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ring.messages import (
    ABORTED,
    ANY_REPLICA,
    DELETE_RECORDS,
    DESCRIBE_PRODUCERS,
    EPOCH_END,
    FOUND,
    LIST_OFFSET,
    NEWS,
    PRODUCERS,
    PRODUCERS_TOLD,
    READ,
    READ_COMMITTED,
    READ_NEAREST,
    READ_REPLICA,
    READ_WAIT,
    WATCH_WRITTEN,
    Message,
)
from appliance.wire import aborted, producers

_READS: Final = frozenset((READ, LIST_OFFSET, EPOCH_END))
"""What changes nothing: a file that cannot be read costs who wanted it an error, and nobody else
anything."""

_OF_THE_END: Final = frozenset((LIST_OFFSET, DELETE_RECORDS))
"""What asks where the log ends waits until what was acknowledged before can be seen."""

_LENGTH: Final = 12
"""Where a completion has `e`."""

Checkpoint = Callable[[Partition, Callable[[StorageFailed | None], None]], None]
"""(partition, whom to tell what became of it): begins to make its log start offset durable."""


class PartitionReads:
    """checkpoint: how a log start that DeleteRecords moved is made durable. replicas: who hears
    where other replicas fetch."""

    __slots__ = ("_appends", "_failures", "_served", "checkpoint", "replicas")

    def __init__(
        self,
        served: ServedPartitions,
        appends: Appends,
        failures: Failures,
        checkpoint: Checkpoint,
        replicas: Replicas,
    ) -> None:
        self._served = served
        self._appends = appends
        self._failures = failures
        self.checkpoint = checkpoint
        self.replicas = replicas

    def ask_partition(
        self, asker: NetprocPeer, partition: Partition | None, message: Message
    ) -> None:
        """Answer it, or let it wait. partition: of its handle, None when there is none here."""
        op, _, handle, token, *_ = message
        if partition is None:
            code = self._served.absent(handle)
            asker.out.append(refusal(ANSWERS[op], code, handle, token))
            return
        if op == DELETE_RECORDS and partition.staged:
            self._appends.write_staged(
                partition
            )  # the log start may move up to what came just before
        if partition.broken is not None:
            asker.out.append(refusal(ANSWERS[op], errors.KAFKA_STORAGE_ERROR, handle, token))
            return
        if not partition.leads:
            if message.flags & ANY_REPLICA and op in _READS:
                self._reply(asker, partition, message)
            else:
                code = errors.NOT_LEADER_OR_FOLLOWER
                asker.out.append(refusal(ANSWERS[op], code, handle, token))
            return
        if op in _OF_THE_END and partition.unseen:
            partition.asking.append((asker, message, partition.progress.log_end))
            self._served.syncing.request_sync(partition)
            return
        self._reply(asker, partition, message)

    def answer_visible(self, partition: Partition, end: int) -> None:
        """Everything below `end` is visible: answer who waits for that."""
        asking = partition.asking
        while asking and asking[0][2] <= end:
            asker, message, _ = asking.popleft()
            self._reply(asker, partition, message)

    def _reply(self, asker: NetprocPeer, partition: Partition, message: Message) -> None:
        op, _, handle, token, *_ = message
        try:
            answer = self._answer(asker, partition, message)
        except DiskFull:
            answer = refusal(ANSWERS[op], errors.KAFKA_STORAGE_ERROR, handle, token)
        except StorageFailed as failure:
            if op in _READS:
                self._failures.unreadable(partition, failure)
            else:
                self._failures.fail(partition, failure)
            answer = refusal(ANSWERS[op], errors.KAFKA_STORAGE_ERROR, handle, token)
        except PeerError as error:  # a stored batch that cannot be opened
            answer = refusal(ANSWERS[op], error.code, handle, token)
        if answer is not None:
            asker.out.append(answer)

    def _answer(
        self, asker: NetprocPeer, partition: Partition, message: Message
    ) -> Completion | None:
        op, flags, _, token, offset, epoch, _, _, _, _, _, _, most, enough, _ = message
        if op == READ:
            if flags & READ_REPLICA:
                return self._answer_replica(asker, partition, message)
            if flags & READ_NEAREST:
                nearest = self.replicas.nearest(partition, message)
                if nearest is not None:
                    return nearest
            answer = read_rules.find_bytes(partition, token, flags, offset, epoch, most, enough)
            if answer is None and self._served.isolated and self._has_all(partition, flags, offset):
                code = errors.NOT_LEADER_OR_FOLLOWER
                return refusal(FOUND, code, partition.handle, token)
            if answer is None:
                key = asker.index << 64 | token
                read = ParkedRead(
                    key, partition, asker.index, token, offset, epoch, flags, most, enough
                )
                if not self._served.purgatory.park(read):
                    once = flags & ~READ_WAIT
                    answer = read_rules.find_bytes(
                        partition, token, once, offset, epoch, most, enough
                    )
                elif partition.unseen and partition.leads:
                    self._served.syncing.request_sync(partition)
            if answer is not None and flags & READ_COMMITTED:
                self._go_with(asker, partition, offset, answer)
            return answer
        return self._answer_other(asker, partition, message)

    def _has_all(self, partition: Partition, flags: int, offset: int) -> bool:
        """True if a consumer is at the end of a partition that others seem to lead now."""
        progress = partition.progress
        end = progress.last_stable if flags & READ_COMMITTED else progress.high_watermark
        return offset >= end and self._served.deserts(partition)

    def _answer_replica(
        self, asker: NetprocPeer, partition: Partition, message: Message
    ) -> Completion | None:
        refused = self.replicas.on_follower_fetch(partition, message)
        if refused is not None:
            return refused
        _, flags, _, token, offset, epoch, _, _, _, node, visible, _, most, least, _ = message
        key = asker.index << 64 | token
        read = ParkedRead(
            key, partition, asker.index, token, offset, epoch, flags, most, least, visible, node
        )
        answer = self._for_replica(partition, read, flags)
        if answer is None and not self._served.purgatory.park(read):
            return self._for_replica(partition, read, flags & ~READ_WAIT)
        if answer is None and partition.unseen:
            self._served.syncing.request_sync(partition)
        return answer

    def _for_replica(self, partition: Partition, read: ParkedRead, flags: int) -> Completion | None:
        """Answers a replica's read, or parks it, or gives it nothing while it is throttled."""
        if 0 < read.visible <= partition.progress.high_watermark:
            flags &= ~READ_WAIT
        offset, epoch, most, least = read.offset, read.epoch, read.max_bytes, read.min_bytes
        answer = read_rules.find_bytes(partition, read.token, flags, offset, epoch, most, least)
        if answer is None or not answer[_LENGTH]:
            return answer
        if self.replicas.is_doubted(partition, read.replica, offset):
            try:
                read_rules.check(partition, answer)
            except StorageFailed as failure:
                self._failures.unreadable(partition, failure, checked=True)
                if partition.broken is not None:
                    code = errors.KAFKA_STORAGE_ERROR
                    return refusal(FOUND, code, partition.handle, read.token)
        if self.replicas.passes(partition, read.replica, answer[_LENGTH]):
            self.replicas.gave(partition, read.replica, offset)
            return answer
        return None if flags & READ_WAIT else (*answer[:_LENGTH], 0, 0)

    def _answer_other(
        self, asker: NetprocPeer, partition: Partition, message: Message
    ) -> Completion | None:
        op, flags, _, token, asked, epoch, *_ = message
        if op == LIST_OFFSET:
            return read_rules.list_offset(partition, token, flags, asked, epoch)
        if op == EPOCH_END:
            return read_rules.epoch_end(partition, token, asked, epoch)
        if op == DESCRIBE_PRODUCERS:
            slices = read_rules.describe_producers(partition)
            last = (PRODUCERS_TOLD, 1, partition.handle, token)
            asker.answer_in_slices(PRODUCERS, slices, producers.SIZE, last)
            return None
        assert op == DELETE_RECORDS
        answer, moved = read_rules.delete_records(partition, token, asked)
        if moved:
            partition.start_unsaved = True
            partition.trimmed()
            self._served.rows.changed[partition] = None
        if not partition.start_unsaved:
            return None if self.replicas.await_trim(asker, partition, answer) else answer
        self._served.stirred = True
        deleted = partial(self._deleted, asker, asker.life, partition, answer)
        self.checkpoint(partition, deleted)
        return None

    def _deleted(
        self,
        asker: NetprocPeer,
        life: int,
        partition: Partition,
        answer: Completion,
        failure: StorageFailed | None,
    ) -> None:
        """A log start is durable, or could not be made so: then it may be back after a start."""
        if asker.life == life:
            op, _, handle, token, *_ = answer
            if failure:
                answer = refusal(op, errors.KAFKA_STORAGE_ERROR, handle, token)
            elif self.replicas.await_trim(asker, partition, answer):
                return
            asker.out.append(answer)

    def _go_with(
        self, asker: NetprocPeer, partition: Partition, offset: int, answer: Completion
    ) -> None:
        """The aborted transactions of a range go before it."""
        before = partition.aborted
        transactions = read_rules.goes_with(partition, offset, answer)
        if transactions:
            asker.before(ABORTED, partition.handle, answer[3], transactions, aborted.SIZE)
        if partition.aborted is not before:  # where there are none, nobody need ask any more
            self._served.rows.changed[partition] = None

    def watch_partitions(self, asker: NetprocPeer, message: Message) -> None:
        """Somebody waits for any of many partitions; told at once when one has moved since it
        looked, or is not served here: then it asks for that one."""
        served, code = self._served, errors.NONE
        if message.flags & WATCH_WRITTEN:
            served.fetched = True
        elif served.isolated:  # each is told where it is led
            asker.out.append((NEWS, errors.THROTTLING_QUOTA_EXCEEDED + 1, 0, message.token))
            return
        rows = unmoved(rows_of(message.payload), served.partitions, served.rows.state)
        if rows is not None:
            if served.watches.add(FetchWatch(asker.index, message.token, message.flags, rows)):
                for partition in list(served.syncing.unseen):
                    if partition.handle in rows:
                        served.syncing.request_sync(partition)
                return
            code = errors.THROTTLING_QUOTA_EXCEEDED
            why = f"{served.watches.most} fetches wait: {setting_of(WATCHES)}"
            served.reach(WATCHES, why)
        asker.out.append((NEWS, code + 1, 0, message.token))

    def tell_watching(self) -> None:
        """Notifies watchers once of what moved in this turn, which is published by now."""
        for watch in self._served.watches.take_news():
            self._served.askers[watch.peer].out.append((NEWS, 1, 0, watch.token))

    def deserted(self, partition: Partition) -> None:
        """Others lead, it seems: who waits for what nobody here will see is told to look there."""
        for asker, message, _ in partition.asking:
            code = errors.NOT_LEADER_OR_FOLLOWER
            asker.out.append(refusal(ANSWERS[message.op], code, partition.handle, message.token))
        partition.asking.clear()

    def new_epoch(self, partition: Partition) -> None:
        """Another node leads, or this one in another epoch: who waits for what comes no more is
        told to look for it. Consumers that a follower may serve, and know no epoch, wait on."""
        leads, handle = partition.leads, partition.handle
        for asker, message, _ in () if leads else partition.asking:
            answer = ANSWERS[message.op]
            code = errors.NOT_LEADER_OR_FOLLOWER
            asker.out.append(refusal(answer, code, handle, message.token))
        if not leads:
            partition.asking.clear()
        for read in list(partition.parked.values()):
            if not leads and not read.flags & ANY_REPLICA:
                code = errors.NOT_LEADER_OR_FOLLOWER
            elif read.epoch in (-1, partition.leader_epoch) or read.flags & READ_REPLICA:
                continue
            else:
                code = read_rules.stale(partition, read.epoch)
            self._served.purgatory.take_read(read)
            self._served.askers[read.peer].out.append(refusal(FOUND, code, handle, read.token))

    def complete_parked(self, partition: Partition, risen: bool) -> None:
        """Answer the parked reads that have enough now. risen: the high watermark is another; else
        the log has perhaps grown, which other replicas wait for."""
        for read in list(partition.parked.values()):
            if not (risen or read.flags & READ_REPLICA):
                continue
            try:
                if read.flags & READ_REPLICA:
                    answer = self._for_replica(partition, read, read.flags)
                else:
                    answer = read_rules.find_bytes(
                        partition,
                        read.token,
                        read.flags,
                        read.offset,
                        read.epoch,
                        read.max_bytes,
                        read.min_bytes,
                    )
                if answer is not None and read.flags & READ_COMMITTED:
                    asker = self._served.askers[read.peer]
                    self._go_with(asker, partition, read.offset, answer)
            except StorageFailed as failure:
                self._failures.unreadable(partition, failure)
                code = errors.KAFKA_STORAGE_ERROR
                answer = refusal(FOUND, code, partition.handle, read.token)
            if partition.broken is not None:
                return  # whoever waits has been told
            if answer is not None:
                self._served.purgatory.take_read(read)
                self._served.askers[read.peer].out.append(answer)
