"""Each node of a cluster has a partition table of its own: what it has no row for it does not get,
whoever leads, and whoever has room gets more."""

import re

import pytest
from brokers import CONTROLLER, FEATURES, Brokers

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.internal_topics import OFFSETS
from appliance.controller import node_rows
from appliance.controller.partitions import MorePartitions, create_partitions
from appliance.controller.reassignments import alter_reassignments
from appliance.controller.topics import NewTopic, create_topics, internal_topic
from appliance.controller.undelete import UNDELETE, undelete
from appliance.metadata.parts import Feature
from appliance.metadata.trash import Kept, bury
from appliance.wire import kraft_records as kraft

MOST = "penstock.partitions.max"


class Small(Brokers):
    """Brokers 1 … n that have so many rows, None: they do not say. The controller is none of them,
    and its own table is full."""

    def __init__(self, *rows, **settings):
        self.rows = dict(enumerate(rows, 1))
        super().__init__(len(rows), **settings)
        self.situation.free_rows = 0

    def register(self, broker, *args, **changed):
        rows = self.rows[broker]
        told = [] if rows is None else [tells(node_rows.feature(rows))]
        return super().register(broker, *args, **{"features": (*FEATURES, *told), **changed})

    def asked(self, decide, *args, **kwargs):
        """Replay what is decided in a turn of its own; the results."""
        self.situation.node_rows = None
        records, results = decide(self.situation, *args, **kwargs)
        self.replay(records)
        return results

    def create(self, *args, **configs):
        self.situation.node_rows = None
        super().create(*args, **configs)

    def make(self, *topics):
        return [one for _, one, _ in self.asked(create_topics, topics)]

    def move(self, *moves, topic="t"):
        wanted = [(topic, moves)]
        [(_, rows)] = self.asked(alter_reassignments, wanted, may_change_factor=True)
        return [result for _, result in rows]

    def held(self):
        """Node → replicas."""
        found = dict.fromkeys(self.rows, 0)
        for topic in self.image.topics_by_name.values():
            for partition in topic.partitions:
                for one in partition.replicas:
                    found[one] += 1
        return found


def tells(name):
    return Feature(name=name, min_supported_version=0, max_supported_version=0)


def refused(result, *nodes):
    """Whether these and no other nodes are named as full, with setting and remedy."""
    assert result.code == errors.INVALID_PARTITIONS, result
    named = re.findall(r"on node (\d+) for", result.message)
    assert list(map(int, named)) == list(nodes), result.message
    assert f"{MOST}=" in result.message and f"raise {MOST} on the nodes named" in result.message
    return result.message


def test_a_full_node_gets_nothing_more_and_the_others_go_on():
    cluster = Small(2, 100, 100)
    [result] = cluster.make(NewTopic("t", 12, 2))
    assert result.code == 0
    assert cluster.held()[1] == 2, "as many as it has rows"
    assert sum(cluster.held().values()) == 24
    [again] = cluster.make(NewTopic("u", 5, 2))
    assert again.code == 0
    assert cluster.held()[1] == 2
    [result] = cluster.make(NewTopic("v", 1, 3))
    assert "node 1 for 0 more (penstock.partitions.max=2)" in refused(result, 1)


def test_two_full_nodes_are_named_and_nothing_is_made():
    cluster = Small(2, 3, 100)
    cluster.create("t", [1, 2], [2, 1])
    [result] = cluster.make(NewTopic("u", 9, 2))
    text = refused(result, 1, 2)
    assert "node 1 for 0 more (penstock.partitions.max=2)" in text
    assert "node 2 for 1 more (penstock.partitions.max=3)" in text
    assert "u" not in cluster.image.topics_by_name
    assert cluster.make(NewTopic("u", 9, 1))[0].code == 0


def test_topics_of_one_request_do_not_share_a_row():
    cluster = Small(3, 3)
    results = cluster.make(NewTopic("a", 2, 2), NewTopic("b", 2, 2), NewTopic("c", 1, 2))
    assert [one.code for one in results] == [0, errors.INVALID_PARTITIONS, 0]
    assert cluster.held() == {1: 3, 2: 3}


def test_what_was_refused_for_another_reason_takes_no_row():
    cluster = Small(2, 2)
    wrong = NewTopic("a", 2, 2, configs={"no.such": "1"})
    results = cluster.make(wrong, NewTopic("b", 2, 2))
    assert results[0].code
    assert results[1].code == 0


def test_a_deleted_topic_leaves_its_rows():
    cluster = Small(2, 2)
    cluster.create("t", [1, 2], [2, 1])
    refused(cluster.make(NewTopic("u", 1, 1))[0], 1, 2)
    cluster.replay([kraft.RemoveTopicRecord(topic_id=cluster.image.topics_by_name["t"].topic_id)])
    assert cluster.make(NewTopic("u", 2, 2))[0].code == 0


def test_an_assignment_to_a_full_node_is_refused():
    cluster = Small(2, 100, 100)
    [result] = cluster.make(NewTopic("t", assignments=[(n, [2, 1]) for n in range(3)]))
    refused(result, 1)
    [result] = cluster.make(NewTopic("t", assignments=[(0, [2, 1]), (1, [1, 2]), (2, [3, 2])]))
    assert result.code == 0


def test_partitions_are_added_where_there_is_room():
    cluster = Small(2, 100, 100)
    cluster.create("t", [1, 2], [2, 1])
    [(_, result)] = cluster.asked(create_partitions, [MorePartitions("t", 6)])
    assert result.code == 0
    assert cluster.held() == {1: 2, 2: 6, 3: 4}
    [(_, result)] = cluster.asked(create_partitions, [MorePartitions("t", 7, [[3, 1]])])
    refused(result, 1)
    assert len(cluster.image.topics_by_name["t"].partitions) == 6


def test_nothing_is_moved_to_a_full_node():
    cluster = Small(1, 100, 100)
    cluster.create("t", [1, 2], [2, 3], [2, 3])
    [one, two] = cluster.move((1, [2, 1]), (2, [2]))
    refused(one, 1)
    assert two.code == 0
    assert cluster.partition(index=1).replicas == (2, 3), "as it was"
    assert [one.code for one in cluster.move((0, [2, 1]))] == [0], "it has its row already"


def test_of_several_moves_to_a_node_as_many_go_as_it_has_rows():
    cluster = Small(1, 100, 100)
    cluster.create("t", [2, 3], [2, 3])
    [one, two] = cluster.move((0, [2, 1]), (1, [2, 1]))
    assert one.code == 0
    refused(two, 1)


def test_a_topic_of_before_needs_a_row_on_every_node_that_had_it():
    cluster = Small(2, 100)
    cluster.create("t", [1, 2], [2, 1])
    buried = bury(cluster.image, cluster.image.topics_by_name["t"], 0, size=0, records=0)
    cluster.replay([kraft.RemoveTopicRecord(topic_id=buried.topic_id)])
    cluster.create("u", [1])
    kept = {node: [Kept(buried, frozenset({0, 1}))] for node in (1, 2)}
    cluster.situation.node_rows = None
    with pytest.raises(PeerError, match=rf"room on node 1 for 1 more \({MOST}=2\)\."):
        undelete(cluster.situation, kept, NewTopic("t", configs={UNDELETE: "true"}))
    cluster.replay([kraft.RemoveTopicRecord(topic_id=cluster.image.topics_by_name["u"].topic_id)])
    cluster.situation.node_rows = None
    records, _ = undelete(cluster.situation, kept, NewTopic("t", configs={UNDELETE: "true"}))
    cluster.replay(records)
    assert cluster.held() == {1: 2, 2: 2}


def test_a_coordinators_topic_has_replicas_where_there_is_room():
    cluster = Small(2, 100, 100, offsets_topic_num_partitions="4")
    topic = internal_topic(cluster.situation, OFFSETS)
    assert topic.replication_factor == 2
    [result] = cluster.make(topic)
    assert result.code == 0


@pytest.mark.parametrize("told", [None, "", "many", "-1", "1.5", "9" * 5000])
def test_who_says_nothing_has_no_limit(told):
    """As nodes of Apache Kafka and of older versions; nor has who says what is no number."""
    cluster = Small(None, 1)
    if told is not None:
        wrong = tells(f"{MOST}={told}")
        cluster.register(1, cluster.incarnations[1], features=(*FEATURES, wrong))
        cluster.beat(1)
    [result] = cluster.make(NewTopic("t", 50, 1))
    assert result.code == 0
    assert cluster.held() == {1: 49, 2: 1}


def test_who_starts_anew_with_more_rows_gets_more():
    cluster = Small(1, 1)
    cluster.create("t", [1, 2])
    refused(cluster.make(NewTopic("u", 1, 2))[0], 1, 2)
    for broker in cluster.rows:
        cluster.rows[broker] = 2
        cluster.now += 100_000
        cluster.start(broker)
    assert cluster.make(NewTopic("u", 1, 2))[0].code == 0


def test_who_leads_and_is_a_broker_knows_what_its_own_table_has_not_let_go_of():
    cluster = Small(4, 4)
    cluster.situation.node_id, cluster.situation.free_rows = 1, 1
    refused(cluster.make(NewTopic("t", 2, 2))[0], 1)
    assert cluster.make(NewTopic("t", 1, 2))[0].code == 0


def test_alone_its_own_table_says_it():
    cluster = Small(4)
    cluster.situation.node_id, cluster.situation.free_rows = 1, 2
    [result] = cluster.make(NewTopic("t", 3, 1))
    assert (result.code, result.message) == (
        errors.INVALID_PARTITIONS,
        "This appliance has room for 2 more partition(s), 3 were asked for; ask for fewer, or raise"
        " penstock.partitions.max.",
    )
    assert cluster.make(NewTopic("t", 2, 1))[0].code == 0


def test_where_only_one_broker_is_another_controller_goes_by_what_it_said():
    cluster = Small(2)
    assert cluster.situation.node_id == CONTROLLER
    refused(cluster.make(NewTopic("t", 3, 1))[0], 1)
    assert cluster.make(NewTopic("t", 2, 1))[0].code == 0


def test_clients_are_not_told_of_it_as_a_feature():
    cluster = Small(4, 4)
    names = [name for name, _, _ in cluster.image.supported_features()]
    assert "metadata.version" in names
    assert not [name for name in names if "penstock" in name]
