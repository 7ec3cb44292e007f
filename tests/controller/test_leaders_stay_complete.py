"""Whatever happens to brokers, who leads a partition has all that was committed: random events
against a twin that only counts who has everything."""

import random

from brokers import SESSION_MS, Brokers

from appliance.base import errors
from appliance.controller.alter_partition import NewIsr, alter_partitions
from appliance.controller.elections import PREFERRED, UNCLEAN, balance, elect_leaders
from appliance.controller.reassignments import alter_reassignments
from tests.seeds import each_seed

BROKERS = (1, 2, 3, 4)


class Twin:
    """Who has everything that is committed, by partition, from what the partitions were."""

    def __init__(self, cluster, min_isr):
        self.cluster = cluster
        self.min_isr = min_isr
        self.seen = {}
        self.complete = {}
        self.unclean = False
        self.proposed = set()

    def loses(self, broker):
        """What the broker held is gone in part."""
        for complete in self.complete.values():
            complete.discard(broker)

    def look(self):
        """After each decision has come true."""
        for topic in self.cluster.image.topics_by_name.values():
            least = min(self.min_isr, len(topic.partitions[0].replicas))
            for partition in topic.partitions:
                self._check((topic.name, partition.index), partition, least)

    def _check(self, key, now, least):
        before = self.seen.get(key, now)
        isr, elr = set(now.isr), set(now.eligible_leader_replicas)
        assert not isr & elr and isr | elr <= set(now.replicas)
        assert len(isr) == len(now.isr) and len(set(now.replicas)) == len(now.replicas)
        assert not elr or len(isr) < least, "eligible below min.insync.replicas only"
        assert len(now.directories) == len(now.replicas)
        self._check_epochs(before, now)
        complete = self.complete.setdefault(key, set(isr))
        had_all = {*before.isr, *before.eligible_leader_replicas, *self.proposed}
        if now.leader not in (-1, before.leader) and now.leader not in had_all:
            assert self.unclean or before.last_known_elr == (now.leader,)
            assert now.leader_recovery_state == 1
            complete |= isr  # the rest is lost, and it starts over
        assert isr | elr <= complete, (before, now, complete)
        if len(isr) >= least:
            complete &= isr  # they commit without the others
        if now.leader == -1:
            active = self.cluster.active()
            assert not any(one in active for one in (isr or elr)), "somebody could lead"
        else:
            assert now.leader in isr and now.leader in self.cluster.active()
        self.seen[key] = now

    def _check_epochs(self, before, now):
        if now is before:
            return
        same = now == before
        assert same or now.partition_epoch > before.partition_epoch
        assert now.leader_epoch >= before.leader_epoch
        assert now.leader == before.leader or now.leader_epoch > before.leader_epoch
        assert (
            now.leader_epoch - before.leader_epoch <= now.partition_epoch - before.partition_epoch
        )


class World(Brokers):
    """Brokers that live and die, and propose who is in sync."""

    def __init__(self, seed):
        super().__init__(len(BROKERS))
        self.random = random.Random(seed)
        self.alive = set(BROKERS)
        self.twin = None
        self.create("t", [1, 2, 3], [2, 3, 1], [3, 1, 4], [4, 2, 1], min_insync_replicas="2")
        self.twin = Twin(self, 2)
        self.twin.look()

    def replay(self, records):
        super().replay(records)
        if getattr(self, "twin", None):
            self.twin.look()

    def active(self):
        brokers = self.image.brokers.values()
        return {
            one.broker_id for one in brokers if not one.fenced and not one.in_controlled_shutdown
        }

    def step(self):
        event = self.random.choice([
            self.dies, self.dies, self.comes, self.comes, self.comes, self.ends, self.proposes,
            self.proposes, self.proposes, self.moves, self.cancels, self.elects, self.balances,
        ])  # fmt: skip
        event()

    def dies(self):
        """One or two at once; they may have lost what they had."""
        for broker in self.random.sample(BROKERS, self.random.choice((1, 1, 1, 2))):
            self.alive.discard(broker)
        self.now += SESSION_MS // 2
        for _ in range(3):
            self.now += SESSION_MS // 2
            for broker in sorted(self.alive & self.active()):
                self.beat(broker)
        self.tick()

    def comes(self):
        broker = next((one for one in BROKERS if one not in self.alive), None)
        if broker is None:
            return
        self.now += SESSION_MS + 1
        for other in sorted(self.alive & self.active()):
            self.beat(other)
        in_order = self.random.random() < 0.5
        if not in_order:
            self.twin.loses(broker)
        self.register(broker, previous=self.epochs[broker] if in_order else -1)
        self.alive.add(broker)
        self.beat(broker)

    def ends(self):
        """In order: until it is told to end, or half of the way."""
        living = sorted(self.alive & self.active())
        if not living:
            return
        broker = self.random.choice(living)
        for _ in range(3):
            _, _, ended = self.beat(broker, want_shut_down=True)
            if ended:
                break
            for other in living:
                if other != broker:
                    self.beat(other)
        self.alive.discard(broker)
        self.heartbeats.lost(broker, self.now, 0)
        self.tick(1)

    def partition(self, name="t", index=None):
        chosen = self.random.randrange(4) if index is None else index
        return super().partition(name, chosen)

    def proposes(self):
        """Some replicas were slow, others caught up with the leader."""
        found = self.partition()
        leader = found.leader
        if leader < 0:
            return
        others = [one for one in found.replicas if one != leader and self.random.random() < 0.6]
        isr = [leader, *others]
        if found.leader_recovery_state == 1:
            isr = [leader]
        asked = NewIsr(
            self.image.topics_by_name["t"].topic_id, found.index, found.leader_epoch,
            found.partition_epoch, [(one, -1) for one in isr],
        )  # fmt: skip
        records, [result] = alter_partitions(self.situation, leader, self.epochs[leader], [asked])
        if result.code in (errors.NONE, errors.NEW_LEADER_ELECTED):
            self.twin.proposed = set(isr)
            self.twin.complete["t", found.index] |= set(isr)
        self.replay(records)
        self.twin.proposed = set()
        after = self.image.partition("t", found.index)
        if result.code == errors.NONE:
            told = (result.leader, result.leader_epoch, result.partition_epoch, result.isr)
            assert told == (after.leader, after.leader_epoch, after.partition_epoch, after.isr)

    def moves(self):
        index = self.partition().index
        # Kafka limits min.insync.replicas by the number of replicas of partition 0.
        wanted = self.random.sample(
            BROKERS, self.random.choice((2, 3) if index == 0 else (1, 2, 3))
        )
        asked = [("t", [(index, wanted)])]
        records, _ = alter_reassignments(self.situation, asked, may_change_factor=True)
        self.replay(records)

    def cancels(self):
        asked = [("t", [(index, None) for index in range(4)])]
        records, _ = alter_reassignments(self.situation, asked, may_change_factor=True)
        self.replay(records)

    def elects(self):
        kind = self.random.choice((PREFERRED, PREFERRED, UNCLEAN))
        records, _, _ = elect_leaders(self.situation, kind, None)
        self.twin.unclean = kind == UNCLEAN
        self.replay(records)
        self.twin.unclean = False

    def balances(self):
        self.replay(balance(self.situation, 100))
        for partition in self.image.topics_by_name["t"].partitions:
            first = partition.replicas[0]
            can = first in partition.isr and first in self.active()
            assert partition.leader == first or not can


@each_seed(25)
def test_who_leads_has_everything(seed):
    world = World(seed)
    for _ in range(80):
        world.step()
    for _ in BROKERS:
        world.comes()
    for partition in world.image.topics_by_name["t"].partitions:
        if partition.isr or partition.eligible_leader_replicas:
            assert partition.leader >= 0, "everybody is there: somebody leads"
