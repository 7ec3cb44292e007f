"""Batches on their way into logs: staged as they come, written once per turn and partition.

Invariant: what was staged in a turn is written, held or refused when `write` returns; a log that
found no room is in `unwritten` until it did. Called by `dispatch.py`, the coordinators and the
core.
"""

from appliance.base import errors
from appliance.base.errors import DiskFull, PeerError, StorageFailed
from appliance.config.bounds import BATCH_BYTES
from appliance.ioproc.netproc_peer import NetprocPeer, Nobody, refusal
from appliance.ioproc.partition_failures import HELD, LOST, PartitionFailures
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.requests.postponed import PostponedMessages
from appliance.ioproc.requests.producer_limit import ProducerLimit
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ring.messages import APPENDED, MARK_COMMIT, OLD_SET, UNVERIFIED, Message
from appliance.ring.slots import unpack_append, unpack_mark
from appliance.wire.batch import LongWalk, Walk
from appliance.wire.markers import Marker
from appliance.wire.up_conversion import SetUpConversion, is_old_set


class Appends:
    """touched: the partitions that something was staged for in this turn. count: of batches that
    were staged so far. postponed: has batches whose records are walked over in several turns.
    producers: whether there is room for more of them."""

    __slots__ = (
        "_failures",
        "_nobody",
        "_served",
        "_walks",
        "count",
        "postponed",
        "producers",
        "touched",
        "unwritten",
    )

    def __init__(
        self,
        served: ServedPartitions,
        failures: PartitionFailures,
        producers: ProducerLimit | None = None,
    ) -> None:
        """producers: without it, any number of them is remembered."""
        self.producers = producers or ProducerLimit(served)
        self._served = served
        self._failures = failures
        self._nobody = Nobody()
        self.postponed = PostponedMessages()
        self._walks = self.postponed.walks
        self.count = 0
        self.touched: dict[Partition, None] = {}
        self.unwritten: dict[Partition, None] = {}  # whose logs hold what found no room

    def append(
        self, asker: NetprocPeer, partition: Partition | None, message: Message, now_ms: int
    ) -> None:
        """Stage what a netproc asked for (APPEND), or refuse it."""
        flags, handle, token, position, guard, length, acks = unpack_append(message)
        if partition is None:
            code = self._served.absent(handle)
        elif partition.broken is not None or partition.space.low:
            code = errors.KAFKA_STORAGE_ERROR
        elif not partition.progress.leads or (self._served.isolated and self.deserts(partition)):
            code = errors.NOT_LEADER_OR_FOLLOWER
        elif partition.short and acks == -1:
            code = errors.NOT_ENOUGH_REPLICAS
        else:
            try:
                batch = asker.arena[position : position + length]
                if self.producers.is_full:
                    self.producers.check_batch(batch, partition.log.producers, now_ms)
                if flags & OLD_SET:
                    self._append_set(asker, partition, message, now_ms)
                elif flags and (guard := partition.unverified(batch, flags, guard, now_ms)):
                    self.producers.count_producers(partition.log.producers)
                    code = errors.INVALID_TXN_STATE
                    asker.out.append((UNVERIFIED, code + 1, handle, token, guard))
                    return
                else:
                    walk = self._walked(asker, token) if self._walks else None
                    partition.append(asker, token, batch, acks, now_ms, bool(flags), walk)
            except PeerError as error:
                self._refuse_batch(asker, partition, message, error)
                return
            except DiskFull:
                code = self._refuse_on_full_disk(partition)
            except StorageFailed as failure:
                code = errors.KAFKA_STORAGE_ERROR
                self._failures.fail(partition, failure)
            else:
                self.count += 1
                self.touched[partition] = None
                served = self._served
                served.stirred = partition.space.wrote(length) or served.stirred
                return
        self._refuse_for_now(asker, partition, message, code, now_ms)

    def _refuse_for_now(
        self,
        asker: NetprocPeer,
        partition: Partition | None,
        message: Message,
        code: int,
        now_ms: int,
    ) -> None:
        flags, handle, token, position, guard, length, _ = unpack_append(message)
        if flags & ~OLD_SET and partition is not None and partition.progress.leads:
            # no later one of an unknown producer passes what is refused and will be tried again
            batch = asker.arena[position : position + length]
            partition.unverified(batch, flags, guard, now_ms)
            self.producers.count_producers(partition.log.producers)
        self._walks.pop((asker.index, token), None)
        asker.out.append(refusal(APPENDED, code, handle, token))

    def _append_set(
        self, asker: NetprocPeer, partition: Partition, message: Message, now_ms: int
    ) -> None:
        """Append what may be a message set of format 0 or 1, as one batch. Raises PeerError,
        StorageFailed."""
        _, _, token, position, _, length, acks = unpack_append(message)
        batch = asker.arena[position : position + length]
        if not is_old_set(batch, 0, len(batch)):
            walk = self._walked(asker, token)
            partition.append(asker, token, batch, acks, now_ms, walk=walk)
            return
        made = self._walks.pop((asker.index, token), None)
        if made is None:
            made = SetUpConversion(batch, partition.rules, partition.codec)
        assert isinstance(made, SetUpConversion)
        if not made.advance():
            raise LongWalk(made)
        assert made.batch is not None, "it is at its end"
        try:
            partition.append(asker, token, made.batch, acks, now_ms, walk=made.next_walk)
        except LongWalk as longer:
            made.next_walk = longer.walk
            raise LongWalk(made) from None

    def _walked(self, asker: NetprocPeer, token: int) -> Walk | None:
        """The walk of this batch, at its end; None: none was begun. Raises LongWalk when it is not
        at its end after another step."""
        walk = self._walks.pop((asker.index, token), None)
        if walk is not None and not walk.advance():
            raise LongWalk(walk)
        return walk

    def _refuse_batch(
        self, asker: NetprocPeer, partition: Partition, message: Message, error: PeerError
    ) -> None:
        if isinstance(error, LongWalk):
            self.postponed.put_back(asker, message, error.walk)
            return
        self._walks.pop((asker.index, message.token), None)
        if error.code == errors.MESSAGE_TOO_LARGE:
            self._served.reach(BATCH_BYTES, f"{partition}: {error}")
        start, handle, token = partition.log.log_start_offset, message.handle, message.token
        asker.out.append((APPENDED, error.code + 1, handle, token, -1, -1, start, -1))

    def mark(
        self, asker: NetprocPeer, partition: Partition | None, message: Message, now_ms: int
    ) -> None:
        """Stage the marker that ends a transaction (MARK), or refuse it. What is held is not added
        to: who sends a marker again finds it written when there is room."""
        flags, handle, token, producer_id, of, epoch, version = unpack_mark(message)
        if partition is None:
            code = self._served.absent(handle)
        elif partition.broken is not None or (
            partition.log.has_unwritten and partition in self.unwritten
        ):
            code = errors.KAFKA_STORAGE_ERROR
        elif not partition.progress.leads:
            code = errors.NOT_LEADER_OR_FOLLOWER
        elif partition.short:
            code = errors.NOT_ENOUGH_REPLICAS
        else:
            marker = Marker(flags & MARK_COMMIT != 0, of)
            try:
                partition.mark(asker, token, (producer_id, epoch), marker, version, now_ms)
            except PeerError as error:
                code = error.code
            except DiskFull:
                code = self._refuse_on_full_disk(partition)
            except StorageFailed as failure:
                code = errors.KAFKA_STORAGE_ERROR
                self._failures.fail(partition, failure)
            else:
                self.touched[partition] = None
                return
        asker.out.append(refusal(APPENDED, code, handle, token))

    def deserts(self, partition: Partition) -> bool:
        """See `ServedPartitions.deserts`."""
        return self._served.deserts(partition)

    def expect(self, handle: int, producer_id: int, epoch: int) -> None:
        """A partition that is served here belongs to the open transaction of this producer."""
        partition = self._served.partitions.get(handle)
        if partition is not None:
            partition.log.producers.verified[producer_id] = epoch

    def append_own(
        self, partition: Partition, batch: memoryview, now_ms: int, awaited: bool = True
    ) -> bool:
        """Append what the appliance itself has to say; whether that was staged. If not, the
        observers of the partition are told why in this turn. awaited: somebody waits until it is
        visible; else it becomes that soon, as what is produced with acks=1."""
        if partition.broken is not None:
            return False
        if partition.short and awaited:
            self._failures.news.append((partition, LOST))
            return False
        try:
            partition.append_own(self._nobody, 0, batch, now_ms, -1 if awaited else 1)
        except DiskFull:
            self.touched[partition] = None
            self._no_room(partition, LOST)
            return False
        except StorageFailed as failure:
            self._failures.fail(partition, failure)
            return False
        self.count += 1
        self.touched[partition] = None
        if partition.space.wrote(len(batch)):
            self._served.stirred = True
        return True

    def hasten(self, partition: Partition) -> None:
        """Somebody waits now until everything is visible that is there."""
        partition.await_end(self._nobody, 0)
        self.touched[partition] = None

    def write_staged(self, partition: Partition) -> None:
        """Write what was staged; the first failure takes the partition offline."""
        log = partition.log
        if not partition.staged and log.active.end_offset == partition.progress.log_end:
            return  # else it is held, or the end of its segment has written what was
        try:
            served = self._served
            partition.commit(served.now_ms, served.began_ns, served.now_ns)
        except DiskFull:
            self._no_room(partition, HELD)
        except StorageFailed as failure:
            self._failures.fail(partition, failure)
        else:
            self._served.rows.changed[partition] = None
            states = log.producers
            if len(states.producers) + len(states.unverified) != states.counted:
                self.producers.count_producers(states)

    def _refuse_on_full_disk(self, partition: Partition) -> int:
        partition.space.exhausted()
        self._served.stirred = True
        self.touched[partition] = None
        return errors.KAFKA_STORAGE_ERROR

    def _no_room(self, partition: Partition, what: int) -> None:
        partition.space.exhausted()
        self._served.stirred = True
        partition.no_room()
        if partition.log.has_unwritten:
            self.unwritten[partition] = None
        self._failures.news.append((partition, what))

    def has_room(self, number: int) -> None:
        """There is room in this log folder again: what was held is written, and soon synced."""
        for partition in [p for p in self.unwritten if p.directory == number]:
            del self.unwritten[partition]
            if partition.broken is None:
                self.write_staged(partition)
            if partition.broken is None and not partition.log.has_unwritten:
                self._served.syncing.request_sync(partition)

    def forget_partition(self, partition: Partition) -> None:
        """It is served no more."""
        self.touched.pop(partition, None)
        self.unwritten.pop(partition, None)
