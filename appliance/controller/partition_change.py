"""The change of one partition whose replicas, ISR or live brokers change: leader, eligible leader
replicas (KIP-966), end of a reassignment (KIP-455), and the PartitionChangeRecord, as Apache Kafka
writes it.

Invariant: the leader is in the ISR, or there is none; the ISR and the ELR share nobody; unless an
unclean election was asked for, who leads had everything. Whoever changes a partition does it here.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from appliance.controller.electorate import UNASSIGNED, EligibleLeaders
from appliance.controller.placement import place_directory
from appliance.metadata.parts import PartitionImage, TopicImage
from appliance.wire import kraft_records as kraft

T = TypeVar("T")

NO_LEADER: Final = -1
LEADER_UNCHANGED: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1

ONLINE: Final = 0
PREFERRED: Final = 1
UNCLEAN: Final = 2
LAST_RESORT: Final = 3
"""How a leader is elected: the one there is as long as it can; the first replica if it can; anybody
who is alive before nobody; or even who begins anew, on another disk."""


class PartitionChange:
    """A partition as it shall be. Set what changes, then take `record` once.

    isr, replicas, adding, removing, elr: broker ids. directories: broker id → folder, of what has
    another one. recovery: the leader recovery state. lost: a broker whose end was not orderly: what
    it holds counts no more. replaced: one whose disk is another one: it holds nothing, and does not
    lead for having led last.
    """

    __slots__ = ("_electorate", "_old", "_topic", "adding", "directories", "election", "elr",
                 "isr", "lost", "recovery", "removing", "replaced", "replicas")  # fmt: skip

    def __init__(
        self, electorate: EligibleLeaders, topic: TopicImage, partition: PartitionImage
    ) -> None:
        self._electorate = electorate
        self._topic = topic
        self._old = partition
        self.isr: Sequence[int] = partition.isr
        self.replicas: Sequence[int] = partition.replicas
        self.adding: Sequence[int] = partition.adding_replicas
        self.removing: Sequence[int] = partition.removing_replicas
        self.elr: Sequence[int] = partition.eligible_leader_replicas
        self.directories: dict[int, bytes] = {}
        self.recovery = partition.leader_recovery_state
        self.election = ONLINE
        self.lost = -1
        self.replaced = -1

    def record(self) -> kraft.PartitionChangeRecord | None:
        """Returns the record of the differences, None without any."""
        old = self._old
        self._complete_reassignment()
        self._keep_eligible()
        leader, unclean = self._elect()
        changed = leader != old.leader
        if changed and leader in self.elr:
            self.isr = (leader,)
            self.elr = [one for one in self.elr if one != leader]
        if unclean and changed:
            self.isr = (leader,)
            if old.leader_recovery_state != RECOVERING:
                self.recovery = RECOVERING
        if (unclean and changed) or not self._electorate.elr:
            self.elr = ()
        if self.replicas != old.replicas and not set(old.replicas) <= set(self.replicas):
            changed = True  # who goes must not be counted in this epoch any more
        told = leader if changed else LEADER_UNCHANGED
        record = kraft.PartitionChangeRecord(
            partition_id=old.index,
            topic_id=self._topic.topic_id,
            leader=told,
            isr=self._new_isr(),
            eligible_leader_replicas=_if_new(self.elr, old.eligible_leader_replicas),
            replicas=_if_new(self.replicas, old.replicas),
            removing_replicas=_if_new(self.removing, old.removing_replicas),
            adding_replicas=_if_new(self.adding, old.adding_replicas),
            leader_recovery_state=-1
            if self.recovery == old.leader_recovery_state
            else self.recovery,
            directories=_if_new(self._directories(), old.directories),
            last_known_elr=self._last_leader(told),
        )
        nothing = kraft.PartitionChangeRecord(partition_id=old.index, topic_id=record.topic_id)
        return None if record == nothing else record

    def _complete_reassignment(self) -> None:
        """Every replica that comes is in sync, and where more go than come every one that stays:
        those that go are gone."""
        if not self.adding and not self.removing:
            return
        isr = [one for one in self.isr if one not in self.removing]
        replicas = [one for one in self.replicas if one not in self.removing]
        coming = set(self.adding) - set(self.removing)
        going = set(self.removing) - set(self.adding)
        needed = coming if len(coming) >= len(going) else replicas
        if isr and replicas and set(needed) <= set(isr):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _keep_eligible(self) -> None:
        """Below min.insync.replicas nothing is committed, so who leaves the ISR still has all that
        is: it stays eligible until the ISR is large enough again."""
        if not self._electorate.elr:
            return
        if len(self.isr) >= self._electorate.min_isr(self._topic):
            self.elr = ()
            return
        had_all = {*self.elr, *self._old.isr} - {*self.isr, self.lost}
        self.elr = sorted(had_all.intersection(self.replicas))

    def _elect(self) -> tuple[int, bool]:
        """Returns the leader, or NO_LEADER, and whether its election is unclean."""
        current = self._old.leader
        if self.election == PREFERRED and self._valid(self.replicas[0]):
            return self.replicas[0], False
        if self._valid(current):
            return current, False
        for one in self.replicas:
            if self._valid(one):
                return one, False
        last = self._old.last_known_elr
        nobody = self._electorate.elr and not self.isr and not self.elr
        if nobody and len(last) == 1 and self._may_lead(last[0]):
            return last[0], True
        if self.election in (UNCLEAN, LAST_RESORT):
            for one in self.replicas:
                if self._may_lead(one):
                    return one, True
        if self.election == LAST_RESORT:
            for one in self.replicas:
                if one in self._electorate.active:
                    self.directories[one] = UNASSIGNED  # it will say which one
                    return one, True
        return NO_LEADER, False

    def _valid(self, one: int) -> bool:
        has_all = one in self.isr or (not self.isr and one in self.elr)
        return has_all and self._may_lead(one)

    def _may_lead(self, one: int) -> bool:
        return one != self.lost and self._electorate.may_lead(self._old, one)

    def _new_isr(self) -> tuple[int, ...] | None:
        """Without eligible replicas the last of the ISR stays in it, or it would be forgotten who
        has everything."""
        if not self.isr and not self._electorate.elr:
            return None
        return _if_new(self.isr, self._old.isr)

    def _last_leader(self, leader: int) -> tuple[int, ...] | None:
        """Returns the last known leader, kept while the partition has no leader. leader: as the
        record says."""
        if not self._electorate.elr:
            return None
        known = self._old.last_known_elr
        if leader == NO_LEADER and not known and self._old.leader != self.replaced:
            return (self._old.leader,)
        over = leader >= 0 or self.replaced in known
        return () if over and known else None

    def _directories(self) -> tuple[bytes, ...]:
        """The folder of each replica, in their order."""
        old = self._old
        same = self.replicas is old.replicas and not self.directories
        if same and len(old.directories) == len(old.replicas):
            return old.directories
        known = dict.fromkeys(old.replicas, UNASSIGNED)
        known.update(zip(old.replicas, old.directories, strict=False))
        known.update(self.directories)
        situation = self._electorate.situation
        return tuple(
            known[one] if one in known else place_directory(situation, one) for one in self.replicas
        )


def _if_new(new: Sequence[T], old: Sequence[T]) -> tuple[T, ...] | None:
    return None if tuple(new) == tuple(old) else tuple(new)
