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
from appliance.ioproc.partition_failures import ANSWERS, PartitionFailures
from appliance.ioproc.partitions import read_rules
from appliance.ioproc.partitions.fetch_watches import FetchWatch, rows_of, unmoved
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.purgatory import ParkedRead
from appliance.ioproc.remote_reads.remote_files import FileOnItsWay
from appliance.ioproc.remote_reads.remote_read_rules import RemoteReads
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
    LISTED,
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
from appliance.ring.slots import unpack_read, unpack_replica_read
from appliance.wire import aborted, producers

_READS: Final = frozenset((READ, LIST_OFFSET, EPOCH_END))
"""What changes nothing: a file that cannot be read costs who wanted it an error, and nobody else
anything."""

_OF_THE_END: Final = frozenset((LIST_OFFSET, DELETE_RECORDS))
"""What asks where the log ends waits until what was acknowledged before can be seen."""

_LAYOUT: Final = 10
_LENGTH: Final = 12
"""Where a completion has `i` and `e`."""

_Listing = tuple[NetprocPeer, int, Message, int]
"""Who asked for an offset, in which life, for what, and until when (ms) it waits."""

Checkpoint = Callable[[Partition, Callable[[StorageFailed | None], None]], None]
"""(partition, whom to tell what became of it): begins to make its log start offset durable."""


class PartitionReads:
    """checkpoint: how a log start that DeleteRecords moved is made durable. replicas: who hears
    where other replicas fetch. remote: reads what lies before the local log, None: there is no
    remote store."""

    __slots__ = ("_appends", "_failures", "_listing", "_served", "checkpoint", "remote", "replicas")

    def __init__(
        self,
        served: ServedPartitions,
        appends: Appends,
        failures: PartitionFailures,
        checkpoint: Checkpoint,
        replicas: Replicas,
        remote: RemoteReads | None = None,
    ) -> None:
        self._served = served
        self.remote = remote
        self._listing: list[_Listing] = []
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
        if message.op == READ:
            flags, token, offset, epoch, most, enough = unpack_read(message)
            if flags & READ_REPLICA:
                return self._answer_replica(asker, partition, message)
            if flags & READ_NEAREST:
                nearest = self.replicas.nearest(partition, message)
                if nearest is not None:
                    return nearest
            if offset < partition.log.order.all[0].base and self.remote is not None:
                return self._answer_remotely(self.remote, asker, partition, message)
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

    def _answer_remotely(
        self, remote: RemoteReads, asker: NetprocPeer, partition: Partition, message: Message
    ) -> Completion | None:
        """A consumer reads before the local log. It is answered with what is there, however little:
        to wait for more would be to wait for the store again."""
        flags, token, offset, epoch, most, enough = unpack_read(message)
        answer = remote.find_bytes(partition, token, flags, offset, epoch, most)
        if answer is None:
            key = asker.index << 64 | token
            read = ParkedRead(
                key, partition, asker.index, token, offset, epoch, flags, most, enough
            )
            if not self._served.purgatory.park(read):
                once = flags & ~READ_WAIT
                answer = remote.find_bytes(partition, token, once, offset, epoch, most)
        if answer is not None and flags & READ_COMMITTED:
            self._go_with(asker, partition, offset, answer)
        return answer

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
        flags, token, offset, epoch, node, visible, most, least = unpack_replica_read(message)
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
        if offset < partition.log.order.all[0].base and self.remote is not None:
            return self.remote.find_bytes(partition, read.token, flags, offset, epoch, most)
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
            if self.remote is not None and self.remote.has_part(partition, asked):
                return self._list_remotely(self.remote, asker, partition, message)
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
        if answer[_LAYOUT] < 0 and self.remote is not None:
            transactions = aborted.encode(self.remote.transactions_of(partition, offset, answer))
        else:
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

    # The remote store -----------------------------------------------------------------------------

    def _list_remotely(
        self, remote: RemoteReads, asker: NetprocPeer, partition: Partition, message: Message
    ) -> Completion | None:
        _, flags, _, token, asked, epoch, *_ = message
        try:
            return remote.list_offset(partition, token, flags, asked, epoch)
        except FileOnItsWay:
            due_ms = self._served.now_ms + remote.list_wait_ms()
            self._listing.append((asker, asker.life, message, due_ms))
            return None

    def complete_remote_reads(self, now_ms: int) -> None:
        """Answer those for whom a file of the remote store has come, or who have waited too
        long. Raises the first exception that one of them met, behind all others."""
        if self.remote is not None:
            bugs: list[Exception] = []
            for handle in self.remote.files.take_arrivals():
                partition = self._served.partitions.get(handle)
                if partition is not None:
                    bugs += self.complete_remote(partition)
            if self._listing:
                self._expire_listing(now_ms)
            bugs += self.remote.files.take_bugs()
            if bugs:
                raise bugs[0]

    def complete_remote(self, partition: Partition) -> list[Exception]:
        """Answer whoever waits for remote segments of a partition and need not any more. Returns
        what nobody expected: it costs one of them an error."""
        bugs: list[Exception] = []
        remote, base = self.remote, partition.log.segments[0].base
        assert remote is not None
        for read in list(partition.parked.values()):
            if read.offset < base and not read.flags & READ_REPLICA:
                flags, offset = read.flags, read.offset
                asker = self._served.askers[read.peer]
                try:
                    answer = remote.find_bytes(
                        partition, read.token, flags, offset, read.epoch, read.max_bytes
                    )
                    if answer is None:
                        continue
                    if flags & READ_COMMITTED:
                        self._go_with(asker, partition, offset, answer)
                except Exception as bug:
                    bugs.append(bug)
                    code = errors.UNKNOWN_SERVER_ERROR
                    answer = refusal(FOUND, code, partition.handle, read.token)
                self._served.purgatory.take_read(read)
                asker.out.append(answer)
        waiting, self._listing = self._listing, []
        for listing in waiting:
            asker, life, message, due_ms = listing
            if message.handle != partition.handle:
                self._listing.append(listing)
            elif asker.life == life:
                try:
                    self._ask_again(asker, message, due_ms)
                except Exception as bug:
                    bugs.append(bug)
                    code = errors.UNKNOWN_SERVER_ERROR
                    asker.out.append(
                        refusal(ANSWERS[message.op], code, message.handle, message.token)
                    )
        return bugs

    def _ask_again(self, asker: NetprocPeer, message: Message, due_ms: int) -> None:
        """A search that goes on in other files waits no longer than it might from its beginning."""
        before = len(self._listing)
        self.ask_partition(asker, self._served.partitions.get(message.handle), message)
        for number in range(before, len(self._listing)):
            self._listing[number] = (*self._listing[number][:3], due_ms)

    def _expire_listing(self, now_ms: int) -> None:
        """Answer as Kafka does where an offset was waited for too long."""
        waiting, self._listing = self._listing, []
        for listing in waiting:
            asker, life, message, due_ms = listing
            code = errors.REQUEST_TIMED_OUT
            if message.handle not in self._served.partitions:
                code = self._served.absent(message.handle)
            elif now_ms < due_ms:
                self._listing.append(listing)
                continue
            if asker.life == life:
                asker.out.append(refusal(LISTED, code, message.handle, message.token))

    # Parked reads ---------------------------------------------------------------------------------

    def complete_parked(self, partition: Partition, risen: bool) -> None:
        """Answer the parked reads that have enough now. risen: the high watermark is another; else
        the log has perhaps grown, which other replicas wait for."""
        for read in list(partition.parked.values()):
            if not (risen or read.flags & READ_REPLICA):
                continue
            if read.offset < partition.log.order.all[0].base and self.remote is not None:
                continue  # it waits for the remote store
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
