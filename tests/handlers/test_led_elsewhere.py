"""What is told of partitions that other nodes lead, and of those nodes."""

import pytest
from test_fetch_handler import fetch
from test_produce_handler import produce, rows
from test_transactional_produce import Host as Transactional
from test_transactional_produce import batch
from three_brokers import (
    BY_NOBODY,
    ELSEWHERE,
    EPOCH,
    FOLLOWED,
    LED_HERE,
    TOPIC_ID,
    Cluster,
    broker,
)

from appliance.base import errors
from appliance.handlers import registry
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.wire import kraft_records as kraft

NOT_LEADER = errors.NOT_LEADER_OR_FOLLOWER
HANDLERS = registry.handlers(FetchSessions(4, iter(range(7, 90)).__next__))


def leaders(rows):
    return [(row.current_leader.leader_id, row.current_leader.leader_epoch) for row in rows]


def endpoints(host):
    return [(one.node_id, one.host, one.port, one.rack) for one in host.answer.node_endpoints]


@pytest.mark.parametrize("version", [3, 9, 10, 12])
def test_a_batch_for_another_node_is_told_who_leads(version):
    host = Cluster()
    x = host.start(HANDLERS[0], version, produce(1, LED_HERE, FOLLOWED, ELSEWHERE, BY_NOBODY))
    assert [ask[0] for ask in host.asked] == [0], "only what is led here is asked for"
    host.complete(x, 0, a=4)
    assert rows(host) == [(0, 0, 4)] + [(n, NOT_LEADER, -1) for n in (1, 2, 3)]
    if version >= 10:
        (topic,) = host.answer.responses
        told = leaders(topic.partition_responses)
        assert told == [(-1, -1), (2, EPOCH), (3, EPOCH), (-1, EPOCH)]
        assert endpoints(host) == [
            (2, "node2.plaintext", 9192, "b"),
            (3, "node3.plaintext", 9292, None),
        ]


def test_a_home_that_is_starting_again_is_told_as_the_leader_that_it_is():
    host = Cluster()
    host.lose(host.start(HANDLERS[0], 12, produce(1, LED_HERE)), 0)
    assert leaders(host.answer.responses[0].partition_responses) == [(1, EPOCH)]
    assert endpoints(host) == [(1, "localhost", 9092, "a")]


@pytest.mark.parametrize("isolated", [False, True])
def test_who_is_cut_off_does_not_say_that_it_leads(isolated):
    """A client that is told asks nobody else, who knows better."""
    host = Cluster()
    host.processes.isolated_ms = 1000 * isolated
    there = kraft.PartitionChangeRecord(partition_id=LED_HERE, topic_id=TOPIC_ID, isr=(1, 2))
    host.apply(there)
    x = host.start(HANDLERS[0], 12, produce(1, LED_HERE, FOLLOWED))
    host.complete(x, 0, error=NOT_LEADER)
    (topic,) = host.answer.responses
    mine = (-1, -1) if isolated else (1, EPOCH)
    assert leaders(topic.partition_responses) == [mine, (2, EPOCH)]


def test_a_leader_that_is_fenced_is_told_without_its_address():
    host = Cluster(brokers=[broker(1), broker(2, fenced=True), broker(3)])
    host.start(HANDLERS[0], 12, produce(1, FOLLOWED))
    assert leaders(host.answer.responses[0].partition_responses) == [(2, EPOCH)]
    assert endpoints(host) == []


def test_acks_0_for_another_node_hangs_up():
    host = Cluster()
    host.start(HANDLERS[0], 12, produce(0, ELSEWHERE))
    assert host.closed


def asked_of(*partitions, epoch=-1):
    values = fetch(*[(one, 0) for one in partitions])
    for topic in values["topics"]:
        for partition in topic["partitions"]:
            partition["current_leader_epoch"] = epoch
    return values


@pytest.mark.parametrize("version", [12, 15, 16, 18])
def test_a_fetch_from_another_node_is_answered_at_once_with_who_leads(version):
    host = Cluster()
    host.start(HANDLERS[1], version, asked_of(ELSEWHERE, BY_NOBODY))
    (topic,) = host.answer.responses
    assert [int(row.error_code) for row in topic.partitions] == [NOT_LEADER] * 2
    told = [(3, EPOCH), (-1, EPOCH)] if version >= 16 else [(-1, -1)] * 2
    assert leaders(topic.partitions) == told
    if version >= 16:
        assert [one[0] for one in endpoints(host)] == [3]


@pytest.mark.parametrize(
    ("partition", "epoch", "code"),
    [
        (FOLLOWED, EPOCH - 1, errors.FENCED_LEADER_EPOCH),
        (FOLLOWED, EPOCH, NOT_LEADER),
        (FOLLOWED, EPOCH + 1, errors.UNKNOWN_LEADER_EPOCH),
        (ELSEWHERE, EPOCH - 1, NOT_LEADER),
    ],
)
def test_epochs_come_first_where_there_is_a_replica(partition, epoch, code):
    host = Cluster()
    host.start(HANDLERS[1], 9, asked_of(partition, epoch=epoch))
    (row,) = host.answer.responses[0].partitions
    assert row.error_code == code
    asked = {"partition_index": partition, "current_leader_epoch": epoch, "timestamp": -1}
    topics = [{"name": "flights", "partitions": [asked]}]
    host.start(HANDLERS[2], 7, {"replica_id": -1, "isolation_level": 0, "topics": topics})
    assert host.answer.topics[0].partitions[0].error_code == code
    asked = {"partition": partition, "current_leader_epoch": epoch, "leader_epoch": 1}
    topics = [{"topic": "flights", "partitions": [asked]}]
    host.start(HANDLERS[23], 4, {"replica_id": -1, "topics": topics})
    assert host.answer.topics[0].partitions[0].error_code == code
    assert not host.asked


def test_a_session_goes_on_elsewhere_when_leadership_moves():
    host = Cluster()
    handler = HANDLERS[1]
    host.rows[0] = (5, 5, 0)
    host.start(handler, 17, fetch((LED_HERE, 5), max_wait=0, session=(0, 0)))
    number = host.answer.session_id
    host.apply(
        kraft.PartitionChangeRecord(
            partition_id=LED_HERE, topic_id=TOPIC_ID, leader=3, isr=(3,), replicas=(2, 3)
        )
    )
    host.routing += 1
    values = fetch(session=(number, 1)) | {"topics": [], "forgotten_topics_data": []}
    host.start(handler, 17, values)
    (row,) = host.answer.responses[0].partitions
    assert (row.error_code, leaders([row])) == (NOT_LEADER, [(3, EPOCH + 1)])


def test_records_are_deleted_and_producers_described_by_who_leads():
    host = Cluster()
    rows_ = [{"partition_index": n, "offset": 0} for n in (FOLLOWED, ELSEWHERE, 9)]
    values = {"topics": [{"name": "flights", "partitions": rows_}], "timeout": 0}
    host.start(HANDLERS[21], 2, values)
    told = [int(row.error_code) for row in host.answer.topics[0].partitions]
    assert told == [NOT_LEADER, NOT_LEADER, errors.UNKNOWN_TOPIC_OR_PARTITION]
    values = {"topics": [{"name": "flights", "partition_indexes": (FOLLOWED, ELSEWHERE)}]}
    host.start(HANDLERS[61], 0, values)
    assert [int(row.error_code) for row in host.answer.topics[0].partitions] == [NOT_LEADER] * 2
    assert not host.asked


def test_markers_for_other_nodes_are_refused_as_kafka_refuses_them():
    host = Cluster()
    marker = {
        "producer_id": 1, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0,
        "transaction_version": 2,
        "topics": [{"name": "flights", "partition_indexes": (LED_HERE, FOLLOWED, ELSEWHERE)}],
    }  # fmt: skip
    x = host.start(HANDLERS[27], 2, {"markers": [marker]})
    host.complete(x, 0)
    told = [int(row.error_code) for row in host.answer.markers[0].topics[0].partitions]
    assert told == [errors.NONE, NOT_LEADER, errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_replica_is_moved_whoever_leads_it():
    host = Cluster()
    host.log_dirs = ("/a",)
    topics = [{"name": "flights", "partitions": (FOLLOWED, ELSEWHERE, 9)}]
    x = host.start(HANDLERS[34], 2, {"dirs": [{"path": "/a", "topics": topics}]})
    host.complete(x, 0)
    told = [int(row.error_code) for row in host.answer.results[0].partitions]
    assert told == [0, errors.REPLICA_NOT_AVAILABLE, errors.UNKNOWN_TOPIC_OR_PARTITION]


# Transactions whose coordinator is elsewhere ------------------------------------------------------


class Coordinated(Cluster, Transactional):
    """Partitions of `__transaction_state` are led by node `leader`."""

    def __init__(self, leader):
        super().__init__()
        self.move(leader)

    def move(self, leader):
        for index in range(2):
            self.apply(
                kraft.PartitionChangeRecord(partition_id=index, topic_id=b"s" * 16, leader=leader)
            )


def test_whether_a_batch_belongs_to_a_transaction_is_asked_of_the_coordinators_node():
    host = Coordinated(2)
    x = host.begin({LED_HERE: batch()})
    host.unverified(x, 0, guard=9)
    assert host.nodes_asked == [2]
    host.tell(x, {LED_HERE: errors.NONE})
    assert host.asked[-1][4] == 9, "it goes again with its guard"
    host.complete(x, 0, a=5)
    assert host.told() == {LED_HERE: (0, 5)}


def test_a_question_that_nobody_answers_is_tried_again_by_the_client():
    host = Coordinated(3)
    x = host.begin({LED_HERE: batch()})
    host.unverified(x, 0, guard=9)
    ((index, _),) = host.questions
    host.lose(x, index)
    assert host.told() == {LED_HERE: (errors.NOT_ENOUGH_REPLICAS, -1)}


def test_a_coordinator_that_has_moved_is_looked_for_again():
    host = Coordinated(2)
    x = host.begin({LED_HERE: batch()})
    host.unverified(x, 0, guard=9)
    host.move(3)
    host.tell(x, {LED_HERE: errors.CONCURRENT_TRANSACTIONS})
    host.wake(x, *x.pending)
    assert host.nodes_asked == [2, 3]
    host.tell(x, {}, whole=errors.NONE)  # one that does not coordinate it says nothing of it
    assert host.told() == {LED_HERE: (errors.NOT_ENOUGH_REPLICAS, -1)}


def test_without_a_leader_there_is_no_coordinator_to_ask():
    host = Coordinated(-1)
    x = host.begin({LED_HERE: batch()})
    host.unverified(x, 0, guard=9)
    assert not host.nodes_asked
    host.wake(x, *x.pending)
    assert host.told() == {LED_HERE: (errors.NOT_ENOUGH_REPLICAS, -1)}
