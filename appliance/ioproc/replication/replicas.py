"""The other replicas of the partitions that are led here: what each has, and who is in sync.

A follower fetches as any client does; where it fetches from tells how far it is (`heard`). Who has
what everybody in sync has is proposed for the ISR at once, who was late for
replica.lag.time.max.ms is proposed to leave it; control carries proposals to the controller, and
the metadata is the answer. Invariant: whoever the controller may have taken in counts as in sync
from the proposal on (KIP-497), until the metadata moves on, the controller says that it did not, or
the metadata shuts it out. Who runs alone is never in `led`, and pays nothing.

Called by `reads.py` for fetches, by the core for roles, by the chores for the clock.
"""

from collections.abc import Callable
from dataclasses import field
from functools import partial
from itertools import islice
from typing import Final, Protocol

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.ioproc.netproc_peer import Completion, NetprocPeer, refusal
from appliance.ioproc.partitions import read_rules
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.replication.isr_change import IsrChange
from appliance.replication.throttle import ReplicationThrottle
from appliance.ring.messages import DELETED, FOUND, Message

NEVER_MS: Final = 1 << 62
AGAIN_MS: Final = 500
"""A proposal that the metadata does not follow is made again after so long."""
A_LOOK: Final = 500
"""Partitions that are looked at in one turn: some milliseconds when each proposes something."""


class Cluster(Protocol):
    """The replica leader's view of the cluster. node_id: this node's."""

    node_id: int

    def broker_epoch(self, node: int) -> int:
        """The epoch of a node that may be in sync: registered, not fenced, not shutting down; else
        -1.
        """
        ...

    def holds(self, partition: Partition, node: int) -> bool:
        """True if this node can write its replica: its folder is not LOST (KIP-858)."""
        ...

    def lag_ms(self) -> int:
        """replica.lag.time.max.ms."""
        ...

    def propose(self, partition: Partition, change: IsrChange) -> bool:
        """Tell control; False when it cannot be told now."""
        ...


@dataclass(slots=True)
class LedPartition:
    """One partition. proposed_ms: when its ISR was proposed, in the partition epoch `of`; 0: it was
    not, or not to be waited for. joining: whom such proposals would take in, in that epoch.
    trims: DeleteRecords that wait until every replica begins there: (offset, whom to answer).
    given: replica → from which offset on it was given records last; -1 - offset: and that those
    are right."""

    of: int
    proposed_ms: int = 0
    joining: tuple[int, ...] = ()
    trims: list[tuple[int, Callable[[int], None]]] = field(default_factory=list)
    given: dict[int, int] = field(default_factory=dict)


class Replicas:
    """led: partitions of which other nodes have replicas. due_ms: when `tick` has something to
    do."""

    __slots__ = (
        *("_all_due_ms", "_cluster", "_held_back", "_new", "_served", "_throttle"),
        *("due_ms", "led"),
    )

    def __init__(
        self, served: ServedPartitions, cluster: Cluster, throttle: ReplicationThrottle
    ) -> None:
        """throttle: of what is sent to replicas that are not in sync."""
        self._served = served
        self._cluster = cluster
        self._throttle = throttle
        self._held_back: dict[Partition, None] = {}
        self.led: dict[Partition, LedPartition] = {}
        self._new: dict[Partition, LedPartition] = {}  # to be looked at, once their role is another
        self._all_due_ms = NEVER_MS  # when each is to be looked at
        self.due_ms = NEVER_MS

    # Partitions -----------------------------------------------------------------------------------

    def opened(self, partition: Partition) -> None:
        """Does nothing: the role follows."""

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """Followers take what is written."""

    def leads(self, partition: Partition) -> None:
        """Its role is another, and this node leads it."""
        if not partition.shared or partition.broken is not None:
            self.closed(partition)
            return
        led = self.led.get(partition)
        if led is None:
            isr, counted = partition.role.isr, partition.progress.in_sync
            joining = tuple(one for one in counted if one not in isr)  # its log is another one now
            led = LedPartition(partition.role.partition_epoch, joining=joining)
            self.led[partition] = led
        self._follow(partition, led)
        self._forget_lost(partition)
        self._trim(partition, led)
        self._new[partition] = led
        self._look_soon(0)

    def follows(self, partition: Partition) -> None:
        """Its replicas follow somebody else."""
        self.closed(partition)

    def closed(self, partition: Partition) -> None:
        """It is not led here, or served no more."""
        self._new.pop(partition, None)
        led = self.led.pop(partition, None)
        if led is not None:
            for _, told in led.trims:
                told(errors.NOT_LEADER_OR_FOLLOWER)

    def _follow(self, partition: Partition, led: LedPartition) -> None:
        """The metadata moved on: it says who is in sync."""
        if led.of != partition.role.partition_epoch:
            led.of, led.proposed_ms, led.joining = partition.role.partition_epoch, 0, ()

    def _forget_lost(self, partition: Partition) -> None:
        """A replica that is LOST may be back with an empty log, under the same broker epoch."""
        progress = partition.progress
        for one in partition.role.replicas:
            if one not in progress.in_sync and not self._cluster.holds(partition, one):
                progress.lost(one)

    # Fetches --------------------------------------------------------------------------------------

    def on_follower_fetch(self, partition: Partition, message: Message) -> Completion | None:
        """A replica fetches: what lies below its offset, it has. A completion when there is nothing
        to read for it: it is none of ours, or has what never was here."""
        handle, token, offset, epoch, last_epoch, log_start, broker_epoch, replica = message[2:10]
        self._served.fetched = True
        progress = partition.progress
        if epoch not in (-1, partition.leader_epoch):
            return refusal(FOUND, read_rules.stale(partition, epoch), handle, token)
        follower = progress.followers.get(replica)
        if follower is None:  # or its metadata is newer than ours
            unknown = errors.NOT_LEADER_OR_FOLLOWER if epoch < 0 else errors.UNKNOWN_LEADER_EPOCH
            return refusal(FOUND, unknown, handle, token)
        if last_epoch >= 0:
            diverging = read_rules.diverging(partition, token, offset, last_epoch)
            if diverging is not None:
                return diverging
        if not partition.log.log_start_offset <= offset <= progress.log_end:
            return None  # `reading.find` says so
        known = self._cluster.broker_epoch(replica)
        if known >= 0 and broker_epoch != known:  # an earlier incarnation's, or made up (KIP-903)
            newer = broker_epoch > known  # or the metadata here is older
            code = errors.UNKNOWN_LEADER_EPOCH if newer else errors.NOT_LEADER_OR_FOLLOWER
            return refusal(FOUND, code, handle, token)
        follower.broker_epoch = broker_epoch
        follower.log_start = log_start
        if replica not in progress.in_sync and not self._cluster.holds(partition, replica):
            return None  # what it had may be of a log that is gone
        self._note(partition, replica, offset, known >= 0)
        return None

    def is_doubted(self, partition: Partition, replica: int, offset: int) -> bool:
        """True if a replica fetches the same place again, as after a failed checksum. Once for each
        place: it may have other reasons.
        """
        led = self.led.get(partition)
        if led is None or led.given.get(replica) != offset:
            return False
        led.given[replica] = -1 - offset
        return True

    def gave(self, partition: Partition, replica: int, offset: int) -> None:
        """It is given what lies behind `offset`."""
        led = self.led.get(partition)
        if led is not None and led.given.get(replica) != -1 - offset:
            led.given[replica] = offset

    def passes(self, partition: Partition, replica: int, size: int) -> bool:
        """True if so many bytes may be sent to a replica now; a throttled one is checked again
        later. Replicas in sync, or catching up, hold up producers and are never throttled.
        """
        throttle, progress = self._throttle, partition.progress
        if not throttle.on or (partition.topic_id, partition.index) not in throttle.keys:
            return True
        if replica in progress.in_sync or replica in progress.near:
            return True
        now_ms = self._served.now_ms
        wait_ms = throttle.wait_ms(now_ms)
        if wait_ms:
            self._held_back[partition] = None
            self._look_soon(now_ms + wait_ms)
            return False
        throttle.spend(size, now_ms)
        return True

    def nearest(self, partition: Partition, message: Message) -> Completion | None:
        """A consumer that stands nearer to c, d, g and h: whom it should read from instead. Of
        those in sync which have what it asks for, the one that is farthest, as Apache Kafka
        chooses. None: this node."""
        _, _, handle, token, offset, epoch, *nodes = message[:10]
        progress, log = partition.progress, partition.log
        if not partition.leads or epoch not in (-1, partition.leader_epoch):
            return None
        best, chosen = (-1, -1, -1), -1
        for node in nodes:
            follower = progress.followers.get(node)
            if follower is None or node not in partition.role.isr:
                continue
            if follower.log_start <= offset <= follower.end:
                place = follower.end, follower.caught_up_ms, node
                if place > best:
                    best, chosen = place, node
        if chosen < 0:
            return None
        return (
            FOUND, 1, handle, token, progress.high_watermark, progress.last_stable,
            log.log_start_offset, 0, 0, partition.leader_epoch, log.layout, chosen + 1,
        )  # fmt: skip

    def _note(self, partition: Partition, replica: int, offset: int, eligible: bool) -> None:
        progress, now_ms = partition.progress, self._served.now_ms
        lag_ms = self._cluster.lag_ms() if eligible else -1
        if progress.replica_at(replica, offset, now_ms, lag_ms):
            self._risen(partition)
        led = self.led.get(partition)
        if led is None:
            return  # it has just failed
        if led.trims:
            self._trim(partition, led)
        if eligible and not led.proposed_ms and progress.may_join(replica):
            self._consider(partition, led, now_ms)

    def _risen(self, partition: Partition) -> None:
        partition.raise_visible()
        partition.release()
        self._served.rows.changed[partition] = None

    # Who is in sync -------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Look who is late, and propose again what was not heard, at some partitions in each turn.
        While roles change one after the other those alone are looked at, or many would be looked
        at again and again."""
        lag_ms = self._cluster.lag_ms()
        if now_ms >= self._all_due_ms:
            self._new.update(self.led)  # behind those that wait already
            self._all_due_ms = NEVER_MS
        looked = list(islice(self._new.items(), A_LOOK))
        for partition, led in looked:
            del self._new[partition]
            progress = partition.progress
            if progress.near:
                gone = [one for one in progress.near if not self._eligible(partition, one)]
                if progress.forget_late(now_ms, lag_ms, gone):
                    self._risen(partition)
            if led.trims:
                self._trim(partition, led)
            if led.proposed_ms and now_ms - led.proposed_ms < AGAIN_MS:
                self._again(now_ms)
            else:
                self._consider(partition, led, now_ms)
        if self.led:
            self._all_due_ms = min(self._all_due_ms, now_ms + max(1, lag_ms // 2))
        self.due_ms = min(self._all_due_ms, now_ms + self._let_go(now_ms))
        if self._new:
            self.due_ms = now_ms

    def _again(self, now_ms: int) -> None:
        """Somebody is to be looked at after a while."""
        self._all_due_ms = min(self._all_due_ms, now_ms + AGAIN_MS)
        self.due_ms = min(self.due_ms, self._all_due_ms)

    def _let_go(self, now_ms: int) -> int:
        """Look again at replicas that were held back, when there is room; in how many ms there
        is."""
        if not self._held_back:
            return NEVER_MS
        throttle = self._throttle
        wait_ms = throttle.wait_ms(now_ms) if throttle.on else 0
        if wait_ms:
            return wait_ms
        for partition in self._held_back:
            if partition in self.led:
                self._served.rows.changed[partition] = None  # which wakes them
        self._held_back.clear()
        return NEVER_MS

    def _consider(self, partition: Partition, led: LedPartition, now_ms: int) -> None:
        """Propose the ISR as it should be, if it is another."""
        progress, role = partition.progress, partition.role
        led.proposed_ms = 0
        gone = [one for one in led.joining if not self._eligible(partition, one)]
        if gone:  # the controller takes in nobody who is shut out
            led.joining = tuple(one for one in led.joining if one not in gone)
            self._count(partition, led, now_ms)
        late = progress.behind(now_ms, self._cluster.lag_ms())
        wanted = tuple(
            one
            for one in role.replicas
            if (one in progress.in_sync and one not in late)
            or (progress.may_join(one) and self._eligible(partition, one))
        )
        if sorted(wanted) == sorted(role.isr):
            return
        members = {self._cluster.node_id: self._cluster.broker_epoch(self._cluster.node_id)}
        members |= {one: progress.followers[one].broker_epoch for one in wanted}
        epochs = partition.leader_epoch, role.partition_epoch
        change = IsrChange(partition.topic_id, partition.index, *epochs, members)
        self._again(now_ms)
        if not self._cluster.propose(partition, change):
            return
        led.proposed_ms = now_ms
        more = [one for one in wanted if one not in role.isr and one not in led.joining]
        if more:
            led.joining += tuple(more)
            self._count(partition, led, now_ms)

    def _eligible(self, partition: Partition, replica: int) -> bool:
        known = self._cluster.broker_epoch(replica)
        is_known = known >= 0 and partition.progress.followers[replica].broker_epoch in (-1, known)
        return is_known and self._cluster.holds(partition, replica)

    def _count(self, partition: Partition, led: LedPartition, now_ms: int) -> None:
        """A record is visible when all those have it that may be in sync."""
        partition.wait_for(partition.role.isr + led.joining, partition.leader_epoch, now_ms)
        if partition.risen:
            self._served.rows.changed[partition] = None

    def refused(self, partition: Partition | None, partition_epoch: int, now_ms: int) -> None:
        """The controller did not do what was proposed in this partition epoch, and never will
        (ISR_REFUSED): propose again after a while, with who may be in sync then."""
        led = None if partition is None else self.led.get(partition)
        if partition is None or led is None or led.of != partition_epoch:
            return
        led.joining, led.proposed_ms = (), now_ms
        self._count(partition, led, now_ms)

    def brokers_changed(self) -> None:
        """Others may be shut out, or come in."""
        if self.led:
            self._all_due_ms = 0
            self._look_soon(0)

    def _look_soon(self, at_ms: int) -> None:
        """The chores are to come by then."""
        self.due_ms = min(self.due_ms, at_ms)
        self._served.stirred = True

    def control_died(self) -> None:
        """Repeats the proposals that control lost."""
        for led in self.led.values():
            led.proposed_ms = 0
        self.brokers_changed()

    # Where all replicas begin ---------------------------------------------------------------------

    def low_watermark(self, partition: Partition) -> int:
        """The lowest log start of all replicas that live; -1 while one has not told it yet."""
        starts = [
            follower.log_start
            for one, follower in partition.progress.followers.items()
            if self._cluster.broker_epoch(one) >= 0
        ]
        return min([partition.log.log_start_offset, *starts])

    def await_trim(self, asker: NetprocPeer, partition: Partition, answer: Completion) -> bool:
        """DeleteRecords moved the log start here, to answer `a`: whether the answer waits until all
        replicas that live have followed. It goes to `asker` then, with the low watermark."""
        led, target = self.led.get(partition), answer[4]
        if led is None or self.low_watermark(partition) >= target:
            return False
        led.trims.append((target, partial(self._trimmed, asker, asker.life, partition, answer)))
        return True

    def _trim(self, partition: Partition, led: LedPartition) -> None:
        if led.trims:
            low, waiting, led.trims = self.low_watermark(partition), led.trims, []
            for target, told in waiting:
                if low >= target:
                    told(errors.NONE)
                else:
                    led.trims.append((target, told))

    def _trimmed(
        self, asker: NetprocPeer, life: int, partition: Partition, answer: Completion, code: int
    ) -> None:
        if asker.life == life:
            op, flags, handle, token, *_ = answer
            assert op == DELETED
            if code:
                asker.out.append(refusal(op, code, handle, token))
            else:
                asker.out.append((op, flags, handle, token, self.low_watermark(partition), 0))
