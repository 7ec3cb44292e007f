"""Brokers, partitions and coordinators of a cluster of three as its clients are told of them."""

import pytest
from test_coordinate_handler import an_answer
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
from appliance.base.caller import ANONYMOUS, Caller
from appliance.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from appliance.coordinators.runtime.kind import partition_of
from appliance.handlers import registry
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.wire import kraft_records as kraft
from appliance.wire import messages
from appliance.wire.build import response

HANDLERS = registry.handlers(FetchSessions(4, iter(range(7, 90)).__next__))
METADATA = HANDLERS[3]
BY_PLAINTEXT = [
    (1, "localhost", 9092, "a"),
    (2, "node2.plaintext", 9192, "b"),
    (3, "node3.plaintext", 9292, None),
]
COORDINATED = 6


def asking(version, **more):
    return {
        "topics": [{"name": "flights", "topic_id": None}],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    } | more


def told(host, version, **more):
    host.start(METADATA, version, asking(version, **more))
    return {row.partition_index: row for row in host.answer.topics[0].partitions}


def brokers(host, rack=True):
    fields = ("node_id", "host", "port", "rack") if rack else ("node_id", "host", "port")
    return [tuple(getattr(one, field) for field in fields) for one in host.answer.brokers]


@pytest.fixture
def outside(monkeypatch):
    """A cluster whose client came by the listener OUTSIDE."""
    caller = Caller(ANONYMOUS, "client", "1.2.3.4", "OUTSIDE")
    monkeypatch.setattr("tests.callers.caller", lambda *_, **__: caller)
    return Cluster()


@pytest.mark.parametrize("version", range(14))
def test_every_living_broker_is_told_by_the_clients_listener(version):
    host = Cluster()
    rows = told(host, version)
    where = BY_PLAINTEXT if version else [row[:3] for row in BY_PLAINTEXT]
    assert brokers(host, rack=version > 0) == where
    if version:
        assert host.answer.controller_id == 1
    assert [rows[n].leader_id for n in range(4)] == [1, 2, 3, -1]
    codes = [int(rows[n].error_code) for n in range(4)]
    assert codes == [0, 0, 0, errors.LEADER_NOT_AVAILABLE]
    assert rows[FOLLOWED].replica_nodes == (2, 1, 3)
    assert rows[FOLLOWED].isr_nodes == (2,)
    if version >= 5:
        assert all(row.offline_replicas == () for row in rows.values())
    if version >= 7:
        assert {row.leader_epoch for row in rows.values()} == {EPOCH}


def test_who_is_cut_off_knows_no_leader_of_what_others_may_lead():
    host = Cluster()
    host.processes.isolated_ms = 1000
    assert told(host, 12)[LED_HERE].leader_id == 1, "nobody else is in sync"
    there = kraft.PartitionChangeRecord(partition_id=LED_HERE, topic_id=TOPIC_ID, isr=(1, 2))
    host.apply(there)
    rows = told(host, 12)
    row = rows[LED_HERE]
    assert (row.leader_id, row.leader_epoch) == (-1, EPOCH)
    assert row.error_code == errors.LEADER_NOT_AVAILABLE
    assert [rows[n].leader_id for n in (FOLLOWED, ELSEWHERE)] == [2, 3]
    assert [row[0] for row in brokers(host)] == [1, 2, 3]
    host.now_ns = 2_000_000_000
    told(host, 12)
    assert [row[0] for row in brokers(host)] == [2, 3], "who knows nobody else goes there"
    host.processes.isolated_ms = 0
    assert told(host, 12)[LED_HERE].leader_id == 1


def test_a_fenced_broker_is_not_told_and_its_replicas_are_offline():
    host = Cluster(brokers=[broker(1), broker(2, fenced=True), broker(3)])
    host.processes.leader = (2, 5)
    rows = told(host, 12)
    assert [row[0] for row in brokers(host)] == [1, 3]
    assert rows[LED_HERE].replica_nodes == (1, 2, 3)
    assert rows[LED_HERE].offline_replicas == (2,)
    assert rows[BY_NOBODY].offline_replicas == (2,)
    assert host.answer.controller_id == 1, "a living one"


def test_a_broker_that_was_fenced_a_moment_ago_is_told_and_leads_nothing():
    host = Cluster(brokers=[broker(1), broker(2, fenced=True), broker(3)])
    host.left[2] = host.now_ns + 1
    rows = told(host, 12)
    assert [row[0] for row in brokers(host)] == [1, 2, 3]
    assert rows[LED_HERE].offline_replicas == (2,)
    assert host.answer.controller_id != 2
    host.now_ns += 1
    told(host, 12)
    assert [row[0] for row in brokers(host)] == [1, 3]


def test_the_oldest_version_leaves_out_who_does_not_live():
    host = Cluster(brokers=[broker(1), broker(2, fenced=True), broker(3)])
    rows = told(host, 0)
    assert rows[LED_HERE].replica_nodes == (1, 3)
    assert rows[LED_HERE].error_code == errors.REPLICA_NOT_AVAILABLE
    assert rows[BY_NOBODY].error_code == errors.LEADER_NOT_AVAILABLE


@pytest.mark.parametrize("version", [5, 6, 13])
def test_a_broker_without_the_clients_listener_is_not_told(outside, version):
    rows = told(outside, version)
    assert brokers(outside) == [(1, "localhost", 9092, "a"), (2, "node2.outside", 9192, "b")]
    code = errors.LISTENER_NOT_FOUND if version >= 6 else errors.LEADER_NOT_AVAILABLE
    assert (rows[ELSEWHERE].leader_id, rows[ELSEWHERE].error_code) == (-1, code)
    assert rows[ELSEWHERE].offline_replicas == (3,)
    assert rows[FOLLOWED].error_code == errors.NONE


def test_a_replica_whose_folder_its_broker_has_lost_is_offline():
    lost = broker(3, log_dirs=(b"e" * 16,))
    host = Cluster(brokers=[broker(1, log_dirs=(b"d" * 16,)), broker(2), lost])
    rows = told(host, 12)
    assert rows[FOLLOWED].offline_replicas == (3,)


def test_who_leads_the_metadata_log_is_the_controller_to_ask():
    host = Cluster()
    host.processes.leader = (3, 5)
    told(host, 12)
    assert host.answer.controller_id == 3
    host.processes.leader = (-1, 6)
    told(host, 12)
    assert host.answer.controller_id == 1
    host = Cluster(brokers=[broker(n, fenced=True) for n in (1, 2, 3)])
    told(host, 12)
    assert (host.answer.controller_id, host.answer.brokers) == (-1, ())


def test_an_election_is_told_with_the_next_request():
    host = Cluster()
    host.apply(
        kraft.PartitionChangeRecord(partition_id=BY_NOBODY, topic_id=TOPIC_ID, leader=2, isr=(2,))
    )
    row = told(host, 12)[BY_NOBODY]
    assert (row.error_code, row.leader_id, row.leader_epoch) == (0, 2, EPOCH + 1)


@pytest.mark.parametrize("with_fenced", [False, True])
def test_the_cluster_is_described_with_fenced_brokers_when_asked(with_fenced):
    host = Cluster(brokers=[broker(1), broker(2, fenced=True), broker(3)])
    values = {
        "include_cluster_authorized_operations": False,
        "endpoint_type": 1,
        "include_fenced_brokers": with_fenced,
    }
    host.start(HANDLERS[60], 2, values)
    found = [(one.broker_id, one.port, one.is_fenced) for one in host.answer.brokers]
    everybody = [(1, 9092, False), (2, 9192, True), (3, 9292, False)]
    assert found == [row for row in everybody if with_fenced or not row[2]]


def test_partitions_are_described_without_an_error_for_those_that_nobody_leads():
    host = Cluster(brokers=[broker(1), broker(2), broker(3, fenced=True)])
    values = {"topics": [], "response_partition_limit": 10, "cursor": None}
    host.start(HANDLERS[75], 0, values)
    row = host.answer.topics[0].partitions[BY_NOBODY]
    assert (row.error_code, row.leader_id, row.leader_epoch) == (0, -1, EPOCH)
    assert row.eligible_leader_replicas == (3,)
    assert row.offline_replicas == (3,)


# Coordinators -------------------------------------------------------------------------------------


def names(leader):
    """Names whose coordinator is this node, one of each partition."""
    found = {}
    for number in range(100):
        name = f"n{number}"
        found.setdefault(partition_of(name, COORDINATED), name)
    return [found[n] for n in range(COORDINATED) if n % 3 + 1 == leader]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_a_coordinator_is_who_leads_its_partition(version, kind):
    host = Cluster(OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
    if kind and not version:
        return  # it knows groups only
    for leader, row in zip((1, 2, 3), BY_PLAINTEXT, strict=True):
        keys = names(leader)
        values = {"key": keys[0], "key_type": kind, "coordinator_keys": keys}
        host.start(HANDLERS[10], version, values)
        answers = host.answer.coordinators if version >= 4 else [host.answer]
        assert [(one.node_id, one.host, one.port) for one in answers] == [row[:3]] * len(answers)


def test_a_coordinator_that_is_fenced_is_not_told():
    host = Cluster(OFFSETS_TOPIC, brokers=[broker(1), broker(2, fenced=True), broker(3)])
    values = {"key_type": 0, "coordinator_keys": names(2)[:1]}
    host.start(HANDLERS[10], 4, values)
    (one,) = host.answer.coordinators
    assert (one.error_code, one.node_id) == (errors.COORDINATOR_NOT_AVAILABLE, -1)


def test_requests_for_what_others_coordinate_are_told_so():
    host = Cluster(OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
    values = {"group_id": names(2)[0], "generation_id": 1, "member_id": "m"}
    host.start(HANDLERS[12], 4, values | {"group_instance_id": None})
    assert host.answer.error_code == errors.NOT_COORDINATOR
    values = {"transactional_id": names(3)[0], "producer_id": 1, "producer_epoch": 0}
    host.start(HANDLERS[26], 4, values | {"committed": True})
    assert host.answer.error_code == errors.NOT_COORDINATOR
    host.start(HANDLERS[22], 4, values | {"transaction_timeout": 1})
    assert host.answer.error_code == errors.NOT_COORDINATOR
    assert not host.sent


def test_of_several_groups_those_of_others_are_told_so():
    host = Cluster(OFFSETS_TOPIC)
    host.counts_all = False
    (mine, *_), (others, *_) = names(1), names(2)
    x = host.start(HANDLERS[42], 2, {"groups_names": [mine, others]})
    ((index, _),) = host.sent
    rows = [{"group_id": mine, "error_code": errors.NONE}]
    answer = response(42, 2, {"throttle_time": 0, "results": rows})
    x.pending.pop(index)
    x.handler.complete(host, x, index, an_answer(0, 0), messages.encode_response(answer))
    results = {one.group_id: int(one.error_code) for one in host.answer.results}
    assert results == {mine: 0, others: errors.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("key", "version", "field"), [(16, 4, "groups"), (66, 1, "transaction_states")]
)
def test_lists_are_of_what_is_coordinated_here(key, version, field):
    host = Cluster(OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
    values = {
        "states_filter": [], "types_filter": [], "state_filters": [], "producer_id_filters": [],
        "duration_filter": -1, "transactional_id_pattern": None,
    }  # fmt: skip
    host.start(HANDLERS[key], version, values)
    assert [partition for _, partition in host.sent] == [0, 3]
    host = Cluster(OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
    host.node_id = 4  # it leads nothing
    host.start(HANDLERS[key], version, values)
    assert not host.sent
    assert (host.answer.error_code, getattr(host.answer, field)) == (errors.NONE, ())
