"""What a controller decides about several brokers is what Apache Kafka decides: the same answers,
and the same records in the log."""

import os
import random

import pytest

from appliance.controller.electorate import active_brokers
from benchmarks import kafka
from tests.controller.brokers import folder
from tests.differential.controllers import BROKER, FEATURES, TOPIC, controllers

pytestmark = pytest.mark.timeout(300)
PREFERRED, UNCLEAN = 0, 1
SEEDS = int(os.environ.get("SAME_DECISIONS_SEEDS", "2"))
BROKERS = (1, 2, 3, 4)
MIN_ISR, UNCLEAN_KEY = "min.insync.replicas", "unclean.leader.election.enable"


class Both:
    """Whatever is asked is asked of both, and is the same."""

    def __init__(self, theirs, ours):
        self.theirs, self.ours = theirs, ours
        self.told = []

    def __getattr__(self, name):
        def ask(*args, **kwargs):
            self.told.append((name, args, kwargs))
            theirs = getattr(self.theirs, name)(*args, **kwargs)
            ours = getattr(self.ours, name)(*args, **kwargs)
            step = f"{name} {args} {kwargs}"
            assert same_answer(ours[0], theirs[0]), (
                f"{step}: ours {ours[0]}, Kafka's {theirs[0]}; before it {self.told[-6:]}"
            )
            assert ours[1] == theirs[1], (
                f"{step}\nours    {ours[1]}\nKafka's {theirs[1]}\nbefore it {self.told[-6:]}"
            )
            return ours[0]

        return ask

    def start(self, broker, number, previous=None):
        self.register(broker, number, previous)
        self.beat(broker)

    def partition(self, name, index=0):
        return self.ours.image.partition(name, index)

    def propose(self, leader, name, isr, index=0, **changed):
        """AlterPartition with the epochs as they are, but for what is `changed`."""
        found = self.partition(name, index)
        epochs = {"leader_epoch": found.leader_epoch, "partition_epoch": found.partition_epoch}
        members = [(one, None) for one in isr]
        return self.alter(leader, name, index, members, **{**epochs, **changed})[0]

    def propose_with(self, leader, name, members, index):
        """members: (broker, how much its epoch is wrong)"""
        found = self.partition(name, index)
        recovering = len(members) == 1 and found.leader_recovery_state
        return self.alter(leader, name, index, members, found.leader_epoch,
                          found.partition_epoch, recovering)[0]  # fmt: skip

    def catch_up(self):
        """Every leader says that everybody in use is in sync."""
        for topic in list(self.ours.image.topics_by_name.values()):
            for found in list(topic.partitions):
                able = [one for one in found.replicas if one in self.active()]
                if found.leader >= 0 and set(found.isr) < set(able):
                    recovering = found.leader_recovery_state
                    if recovering:
                        self.propose(found.leader, topic.name, [found.leader], found.index)
                    self.propose(found.leader, topic.name, able, found.index)

    def active(self):
        return set(active_brokers(self.ours.image))


class Chaos:
    """Brokers that come and go, leaders that propose, clients that change things."""

    def __init__(self, both, seed):
        self.both = both
        self.random = random.Random(seed)
        self.names = [f"c{seed}-{number}" for number in range(3)]
        self.numbers = {}
        self.seed = seed

    def play(self, steps):
        both, pick = self.both, self.random
        for broker in BROKERS:
            self._come(broker)
        for name in self.names:
            placed = [pick.sample(BROKERS, 3) for _ in range(3)]
            both.create(name, assignments=placed, min_insync_replicas=pick.choice("12"))
        for _ in range(steps):
            pick.choice([
                self.beats, self.beats, self.beats, self.fences, self.ends, self.restarts,
                self.proposes, self.proposes, self.proposes, self.proposes, self.moves,
                self.elects, self.configures,
            ])()  # fmt: skip

    def _come(self, broker, previous=-1):
        """A new incarnation, which the session of the one before does not hinder."""
        both = self.both
        known = broker in both.ours.image.brokers
        if known:
            both.unregister(broker)
        self.numbers[broker] = self.numbers.get(broker, 10 + self.seed * 40) + 1
        both.register(broker, self.numbers[broker])
        self._beat(broker, 0)

    def _beat(self, broker, behind):
        """As often as it is needed: Kafka forgets how far a broker is when it unfences it."""
        brokers = self.both.ours.image.brokers
        before = brokers[broker].fenced
        self.both.beat(broker, behind=behind)
        if before and not brokers[broker].fenced:
            self.both.beat(broker)

    def broker(self):
        return self.random.choice(BROKERS)

    def where(self):
        return self.random.choice(self.names), self.random.randrange(3)

    def beats(self):
        self._beat(self.broker(), self.random.choice((0, 0, 0, 3, 400)))

    def fences(self):
        self.both.beat(self.broker(), want_fence=True)

    def ends(self):
        self.both.beat(self.broker(), want_shut_down=True)

    def restarts(self):
        if self.random.random() < 0.3:
            self._come(self.broker())

    def proposes(self):
        name, index = self.where()
        found = self.both.partition(name, index)
        if found.leader < 0:
            return
        isr = [one for one in found.replicas if self.random.random() < 0.7 or one == found.leader]
        if self.random.random() < 0.1:
            isr = self.random.sample(BROKERS, 2)
        epochs = [(one, self.random.choice((0, 0, 0, 1))) for one in isr]
        self.both.propose_with(found.leader, name, epochs, index)

    def moves(self):
        """Not over one that is under way, of which Kafka forgets a part; nor back where it would
        call eligible who is no replica any more."""
        name, index = self.where()
        found = self.both.partition(name, index)
        wanted = self.random.sample(BROKERS, self.random.choice((2, 3)))
        if found.adding_replicas or found.removing_replicas:
            if len(set(found.isr) - set(found.adding_replicas)) < 2:
                return
            wanted = None
        self.both.reassign(name, index, wanted)

    def elects(self):
        name, index = self.where()
        self.both.elect(self.random.choice((PREFERRED, PREFERRED, UNCLEAN)), name, [index])

    def configures(self):
        """Not min.insync.replicas: Kafka clears what was eligible, but not its index of it, and
        writes partitions twice from then on."""
        name, _ = self.where()
        value = self.random.choice(("true", "false", None))
        self.both.configure(TOPIC, name, UNCLEAN_KEY, value)


def same_answer(ours, theirs):
    """Texts may go on after Kafka's own words."""
    if len(ours) != len(theirs):
        return False
    return all(
        a == b or (isinstance(a, str) and isinstance(b, str) and b and a.startswith(b))
        or (isinstance(a, str) and b is None)
        for a, b in zip(ours, theirs, strict=True)
    )  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    with controllers(tmp_path_factory.mktemp("controllers")) as (theirs, ours):
        yield Both(theirs, ours)


def test_it_begins_with_the_same_features(both):
    theirs = both.theirs.image.features
    assert both.ours.image.features.items() <= theirs.items()
    assert both.theirs.image.configs == both.ours.image.configs


def test_brokers_register_and_are_unfenced(both):
    assert both.register(1, 1, cluster_id="x")[0] == "INCONSISTENT_CLUSTER_ID"
    assert both.register(1, 1, log_dirs=[])[0] == "INVALID_REGISTRATION"
    assert both.register(1, 1, log_dirs=[folder(1)] * 2)[0] == "INVALID_REGISTRATION"
    assert both.register(1, 1, log_dirs=[bytes(15) + b"\1"])[0] == "INVALID_REGISTRATION"
    assert both.register(1, 1, features=FEATURES[1:])[0] == "INVALID_REGISTRATION"
    assert both.register(1, 1, features=FEATURES[:1])[0] == "UNSUPPORTED_VERSION"
    assert both.beat(1)[0] == "STALE_BROKER_EPOCH"
    for broker in (1, 2, 3):
        both.register(broker, 1)
        both.beat(broker, behind=5)
        both.beat(broker, want_fence=True)
        both.beat(broker)
        assert both.register(broker, 2)[0] == "DUPLICATE_BROKER_REGISTRATION"
        assert both.register(broker, 1)[0] == "NONE"
        assert both.beat(broker, epoch=1)[0] == "STALE_BROKER_EPOCH"
    both.register(4, 1, log_dirs=[folder(3)])


def test_topics_are_placed(both):
    both.create("none", partitions=1, factor=4)
    both.create("none", partitions=1, factor=0)
    both.create("none", assignments=[[1, 2], [1]])
    both.create("none", assignments=[[1, 1]])
    both.create("none", assignments=[[1, 9]])
    both.create("none", assignments=[[]])
    both.create("t", assignments=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    both.create("u", assignments=[[1, 2]], min_insync_replicas="2")
    both.grow("u", 3, [[2, 1], [3, 1]])
    both.grow("u", 4, [[2]])
    both.configure(TOPIC, "t", MIN_ISR, "2")
    both.configure(BROKER, "1", MIN_ISR, "2")
    both.configure(BROKER, "", MIN_ISR, None)


def test_leaders_say_who_is_in_sync(both):
    assert both.propose(1, "t", [1, 2]) == "NONE"
    assert both.propose(1, "t", [1, 2]) == "NONE"
    assert both.propose(1, "t", [1, 2, 3], partition_epoch=0) == "INVALID_UPDATE_VERSION"
    assert both.propose(1, "t", [1, 2, 3], partition_epoch=9) == "NOT_CONTROLLER"
    assert both.propose(1, "t", [1, 2, 3], leader_epoch=9) == "NOT_CONTROLLER"
    assert both.propose(2, "t", [1, 2, 3]) == "INVALID_REQUEST"
    assert both.propose(1, "t", [2, 3]) == "INVALID_REQUEST"
    assert both.propose(1, "t", [1, 1]) == "INVALID_REQUEST"
    assert both.propose(1, "t", [1, 2, 3], recovery=1) == "INVALID_REQUEST"
    assert both.propose(1, "t", [1]) == "NONE"
    assert both.partition("t").eligible_leader_replicas == (2,)
    assert both.propose(1, "t", [1, 3]) == "NONE"
    assert both.propose(1, "t", [1, 3, 2]) == "NONE"


def test_brokers_end_and_come_again(both):
    both.beat(1, want_shut_down=True)
    both.beat(1, want_shut_down=True)
    found = both.partition("t")
    assert both.propose(found.leader, "t", [found.leader, 1]) == "INELIGIBLE_REPLICA"
    both.beat(2)
    both.beat(3)
    both.beat(1, want_shut_down=True)
    both.beat(1, want_shut_down=True)
    both.beat(1)
    both.unregister(1)
    both.start(1, 9)
    both.catch_up()
    both.elect(PREFERRED, "t", [0, 1, 2, 7])


def test_a_reassignment_moves(both):
    both.start(4, 1)
    both.create("m", assignments=[[1, 2], [2, 3]])
    both.reassign("m", 0, [])
    both.reassign("m", 0, [1, 1])
    both.reassign("m", 0, [9])
    both.reassign("m", 5, [1])
    both.reassign("m", 0, None)
    both.reassign("m", 0, [3, 4, 2])
    both.propose(1, "m", [1, 2, 3])
    both.reassign("m", 0, None)
    both.reassign("m", 0, [3, 4])
    both.propose(1, "m", [1, 2, 3])
    assert both.propose(1, "m", [1, 2, 3, 4]) == "NEW_LEADER_ELECTED"
    both.reassign("m", 1, [3, 2], allow=False)
    both.reassign("m", 1, [3])


def test_what_brokers_ask_for_besides(both):
    both.ids(1)
    both.ids(2)
    both.ids(9)
    both.assign(1, folder(1), "t", 0)
    both.assign(9, folder(1), "t", 0)
    both.assign(4, folder(4), "t", 0)
    both.assign(1, folder(1), "nope", 0)
    both.assign(1, folder(1), "t", 9)
    both.unregister(9)


def test_brokers_that_are_lost(both):
    both.create("lost", assignments=[[1, 2], [2, 1], [1, 3]], min_insync_replicas="2")
    both.beat(1, want_fence=True)
    both.beat(2, want_fence=True)
    both.elect(PREFERRED, "lost", [0, 1, 2])
    both.elect(UNCLEAN, "lost", [0, 1, 2])
    both.beat(1)
    both.propose(1, "lost", [1, 2])
    both.beat(2)
    both.propose(1, "lost", [1, 2])
    both.beat(3, offline=[folder(3)])
    both.unregister(3)
    both.catch_up()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens(both, seed):
    """Random events, in topics of their own."""
    Chaos(both, seed).play(100)
