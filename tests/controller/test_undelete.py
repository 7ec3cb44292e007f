"""Who leads what comes back, and who is in sync: nodes that had everything and have it still."""

import pytest
from brokers import Brokers

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.topics import NewTopic
from appliance.controller.undelete import UNDELETE, undelete
from appliance.metadata.trash import Kept, bury
from appliance.wire import kraft_records as kraft


class Deleted:
    """A cluster whose topic "t" was deleted: partitions with these replicas."""

    def __init__(self, *assignment, brokers=3):
        self.cluster = Brokers(brokers)
        self.cluster.create("t", *assignment)
        self.topic_id = self.cluster.image.topics_by_name["t"].topic_id

    def delete(self, at_ms=0):
        topic = self.cluster.image.topics_by_name["t"]
        self.buried = bury(self.cluster.image, topic, at_ms, size=0, records=0)
        self.cluster.replay([kraft.RemoveTopicRecord(topic_id=topic.topic_id)])

    def back(self, kept, which="true"):
        """kept: node → the partitions that it has."""
        told = {node: [Kept(self.buried, frozenset(held))] for node, held in kept.items()}
        asked = NewTopic("t", configs={UNDELETE: which})
        records, _ = undelete(self.cluster.situation, told, asked)
        self.cluster.replay(records)

    def refused(self, kept):
        with pytest.raises(PeerError) as refusal:
            self.back(kept)
        assert "t" not in self.cluster.image.topics_by_name
        return refusal.value.code, refusal.value.message

    def shapes(self):
        count = len(self.cluster.image.topics_by_name["t"].partitions)
        return [self.cluster.shape(index=index)[:2] for index in range(count)]


EVERY = {0, 1, 2}


def test_those_in_sync_who_have_it_and_are_there_have_it_again():
    world = Deleted([1, 2, 3], [2, 3, 1], [3, 1, 2])
    before = [world.cluster.partition("t", index).leader_epoch for index in range(3)]
    world.delete()
    world.back({1: EVERY, 2: EVERY, 3: EVERY})
    assert world.shapes() == [(1, [1, 2, 3]), (2, [2, 3, 1]), (3, [3, 1, 2])]
    after = [world.cluster.partition("t", index).leader_epoch for index in range(3)]
    assert after == [one + 1 for one in before]


def test_who_has_lost_a_folder_neither_leads_nor_is_in_sync():
    """An empty log in a higher epoch would be what all others cut theirs off to."""
    world = Deleted([1, 2, 3], [2, 3, 1])
    world.delete()
    world.back({1: {1}, 2: {0}, 3: EVERY})
    assert world.shapes() == [(2, [2, 3]), (3, [3, 1])]


def test_who_says_nothing_follows():
    world = Deleted([1, 2, 3])
    world.delete()
    world.back({2: EVERY, 3: EVERY})
    assert world.shapes() == [(2, [2, 3])]


def test_who_was_not_in_sync_is_not_elected_whatever_it_has():
    world = Deleted([1, 2])
    world.cluster.kill(2)
    assert world.cluster.shape()[:2] == (1, [1])
    world.cluster.register(2, previous=world.cluster.epochs[2])
    world.cluster.beat(2)
    world.delete()
    code, text = world.refused({1: (), 2: EVERY, 3: ()})
    assert code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert "t-0" in text
    assert "node 1" in text
    assert "node 2" not in text


def test_who_may_have_it_alone_and_is_away_is_named():
    world = Deleted([1], [2])
    world.delete()
    world.cluster.kill(2)
    code, text = world.refused({1: EVERY, 3: ()})
    assert code == errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert "t-1" in text
    assert "node 2" in text
    world.refused({1: EVERY, 2: EVERY, 3: ()})  # it answers, and may not lead yet
    world.cluster.register(2, previous=world.cluster.epochs[2])
    world.cluster.beat(2)
    world.back({1: EVERY, 2: EVERY, 3: ()})
    assert world.shapes() == [(1, [1]), (2, [2])]


def test_who_was_eligible_leads_what_nobody_was_in_sync_for():
    world = Deleted([1, 2])
    cluster = world.cluster
    cluster.replay([kraft.PartitionChangeRecord(
        partition_id=0, topic_id=world.topic_id, leader=-1, isr=(), eligible_leader_replicas=(1, 2),
        last_known_elr=(1,),
    )])  # fmt: skip
    world.delete()
    world.back({1: (), 2: EVERY})
    found = cluster.partition("t", 0)
    assert (found.leader, found.isr, found.eligible_leader_replicas) == (2, (2,), ())


def test_what_a_node_knows_of_an_earlier_deletion_of_the_topic_counts_no_more():
    """Whatever its clock said."""
    world = Deleted([1, 2])
    world.delete(at_ms=9000)
    early = world.buried
    world.back({1: {0}, 2: {0}})
    world.cluster.kill(2)
    assert world.cluster.shape()[:2] == (1, [1])
    epoch = world.cluster.partition("t", 0).leader_epoch
    world.delete(at_ms=5000)
    world.cluster.register(2, previous=world.cluster.epochs[2])
    world.cluster.beat(2)
    for order in ((1, 2), (2, 1)):
        said = {1: [Kept(world.buried, frozenset({0}))], 2: [Kept(early, frozenset({0}))]}
        told = {node: said[node] for node in order}
        asked = NewTopic("t", configs={UNDELETE: "true"})
        records, _ = undelete(world.cluster.situation, told, asked)
        [found] = [one for one in records if isinstance(one, kraft.PartitionRecord)]
        assert (found.leader, found.isr, found.leader_epoch) == (1, (1,), epoch + 1)


def test_the_newest_that_any_node_keeps_is_meant():
    world = Deleted([1])
    world.delete(at_ms=1000)
    old = world.buried
    world.cluster.create("t", [2])
    world.delete(at_ms=2000)
    told = {1: [Kept(old, frozenset({0}))], 2: [Kept(world.buried, frozenset({0}))]}
    asked = NewTopic("t", configs={UNDELETE: "true"})
    records, created = undelete(world.cluster.situation, told, asked)
    assert created.topic_id == world.buried.topic_id
    asked = NewTopic("t", configs={UNDELETE: old.topic_id.hex()})
    records, created = undelete(world.cluster.situation, told, asked)
    assert created.topic_id == old.topic_id
    world.cluster.replay(records)
    assert world.shapes() == [(1, [1])]
