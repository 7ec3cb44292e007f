"""Transactions that are open in what comes back out of the trash: one that no coordinator knows is
aborted, the others end as they are decided."""

from types import SimpleNamespace

import pytest
from test_transactions_end import END
from two_processes import IDS, TOPICS, Both

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.ioproc.coordination.orphaned_transactions import AGAIN_MS
from appliance.replication.role import ALONE, ELSEWHERE
from appliance.wire import kraft_records as kraft

NOBODY = 777
OPEN = {"a": set(TOPICS) - {"a"}, "b": set(TOPICS) - {"b"}}


@pytest.fixture
def both():
    return Both()


def comes_back(both, topic):
    life, partition = both.at(topic)
    life.left.came_back(partition)


@pytest.mark.parametrize("topic", ["a", "b"])
def test_one_that_nobody_knows_is_aborted(both, topic):
    """At the coordinator's process and at the other one."""
    both.write(topic, NOBODY, 3)
    both.rest()
    assert both.stable() == OPEN[topic]
    comes_back(both, topic)
    both.rest()
    assert both.stable() == set(TOPICS)
    assert both.markers(3)[topic] == [False]
    life, partition = both.at(topic)
    both.rest(AGAIN_MS)
    assert life.left.due_ms > life.now_ms + AGAIN_MS and partition.log.end_offset == 2


def test_one_that_its_coordinator_knows_is_not_touched(both):
    epoch = both.begin()
    for topic in TOPICS:
        comes_back(both, topic)
    both.rest(AGAIN_MS)
    assert both.stable() == set() and both.markers(epoch) == {name: [] for name in TOPICS}
    both.end(epoch, commit=True)
    assert both.rest() == {END: errors.NONE}
    assert both.markers(epoch) == {name: [True] for name in TOPICS}


def test_what_its_producer_has_open_elsewhere_does_not_count(both):
    """The transaction that was open here has ended, the next one is without this topic."""
    epoch = both.begin()
    known = both.lives[0].shard.state.known["x"]
    known.transaction = known.transaction._replace(partitions=frozenset([("a", 0)]))
    comes_back(both, "b")
    both.rest()
    assert both.markers(epoch) == {"a": [], "b": [False], "c": []}


def test_one_that_was_decided_without_this_partition_is_asked_about_until_that_is_over(both):
    epoch = both.begin()
    known = both.lives[0].shard.state.known["x"]
    before = known.transaction
    known.transaction = before.decided(commit=True, version=0, next_id=-1, now_ms=before.updated_ms)
    comes_back(both, "b")
    both.rest(AGAIN_MS)
    assert both.markers(epoch)["b"] == []
    known.transaction = known.transaction.completed(before.updated_ms)
    both.rest(AGAIN_MS)
    assert both.markers(epoch)["b"] == [False]


def test_nobody_is_taken_for_unknown_while_a_coordinator_does_not_serve(both):
    both.write("b", NOBODY, 3)
    both.rest()
    both.stopped = 0
    both.die("one")  # with what it was asked
    host = both.lives[0].host
    led = host._led[both.lives[0].state.handle]
    phase, led.shard.phase = led.shard.phase, "loading"
    comes_back(both, "b")
    for _ in range(3):
        both.turn(AGAIN_MS)
    assert both.markers(3)["b"] == []
    led.shard.phase = phase
    both.turn(AGAIN_MS)
    both.rest()
    assert both.markers(3)["b"] == [False]


class Elsewhere:
    """Other nodes, asked what their coordinators have open; this one is node 1."""

    node_id = 1

    def __init__(self):
        self.asked = []

    def open_of(self, node, producer_id, timeout_ms, done):
        self.asked.append((node, producer_id, done))

    def say(self, *rows, code=errors.NONE):
        """The newest question is answered; who was asked."""
        node, producer_id, done = self.asked.pop()
        assert producer_id == NOBODY
        done(SimpleNamespace(error_code=code, transaction_states=rows))
        return node


def led_by(both, leader):
    """The coordinators' partition has another leader."""
    record = kraft.PartitionChangeRecord(
        partition_id=0, topic_id=IDS[TRANSACTIONS_TOPIC], leader=leader, isr=(leader,)
    )
    both.image.apply(both.image.applied_offset + 1, record)


def test_nobody_is_taken_for_unknown_before_other_nodes_have_said_so(both):
    both.write("b", NOBODY, 3)
    both.rest()
    _, partition = both.at("b")
    nodes = Elsewhere()
    for one in both.lives.values():
        one.left._away = nodes
    led_by(both, 2)
    comes_back(both, "b")
    both.rest(AGAIN_MS)
    assert nodes.say(code=errors.COORDINATOR_LOAD_IN_PROGRESS) == 2
    both.rest(AGAIN_MS)
    assert nodes.say("it is open") == 2
    both.rest(AGAIN_MS)
    nodes.asked.pop()[2](PeerError(errors.NETWORK_EXCEPTION, ""))
    led_by(both, 3)
    both.rest(AGAIN_MS)
    late = nodes.asked.pop(0)[2]
    both.rest(AGAIN_MS)
    assert both.markers(3)["b"] == []
    assert nodes.say() == 3
    both.rest(AGAIN_MS)
    assert both.markers(3)["b"] == [False]
    assert partition.log.end_offset == 2
    late(SimpleNamespace(error_code=errors.NONE, transaction_states=()))
    both.rest(AGAIN_MS)
    assert partition.log.end_offset == 2


def test_what_was_said_before_a_coordinator_moved_counts_no_more(both):
    both.write("b", NOBODY, 3)
    both.rest()
    nodes = Elsewhere()
    for one in both.lives.values():
        one.left._away = nodes
    led_by(both, 2)
    comes_back(both, "b")
    both.rest(AGAIN_MS)
    _, _, said_by_2 = nodes.asked.pop()
    led_by(both, 3)
    both.rest(AGAIN_MS)
    said_by_2(SimpleNamespace(error_code=errors.NONE, transaction_states=()))
    both.rest(AGAIN_MS)
    assert both.markers(3)["b"] == []


def test_a_follower_asks_nobody_until_it_leads(both):
    both.write("b", NOBODY, 3)
    both.rest()
    life, partition = both.at("b")
    partition.follow(partition.leader_epoch + 1, ELSEWHERE)
    comes_back(both, "b")
    both.rest(AGAIN_MS)
    assert both.markers(3)["b"] == []
    partition.lead(partition.leader_epoch + 1, ALONE, life.now_ms)
    both.rest(AGAIN_MS)
    assert both.markers(3)["b"] == [False]


def test_a_partition_that_is_gone_again_is_left_alone(both):
    both.write("b", NOBODY, 3)
    both.rest()
    life, partition = both.at("b")
    comes_back(both, "b")
    life.core.remove(partition.handle, life.now_ns)
    both.rest(AGAIN_MS)
    assert partition.log.end_offset == 1 and life.left.due_ms > life.now_ms + AGAIN_MS
