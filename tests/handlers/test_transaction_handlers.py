"""Requests of transactions in the network process: which coordinator is asked what, and one answer
of those of several."""

import pytest
from test_coordinate_handler import PARTITIONS
from test_coordinate_handler import Host as GroupsHost

from appliance.base import errors
from appliance.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from appliance.coordinators.runtime.kind import partition_of
from appliance.handlers import registry
from appliance.handlers.exchange import Route
from appliance.wire import kraft_records as kraft
from appliance.wire import messages
from appliance.wire.build import response
from tests.differential.plain import encode

HANDLERS = {handler.key: handler for handler in registry.TRANSACTIONS}
ADD_OFFSETS = 25
IDS = [f"x{n}" for n in range(20)]
PRODUCER = {"producer_id": -1, "producer_epoch": -1}
LIST = {
    "state_filters": ["Ongoing", "no state"],
    "producer_id_filters": [],
    "duration_filter": -1,
    "transactional_id_pattern": None,
}


class Host(GroupsHost):
    """A host whose topic of transactions has five partitions, or is not there yet."""

    def __init__(self, partitions=PARTITIONS):
        super().__init__(0)
        self.forwarded = []
        if partitions:
            self.image.apply(0, kraft.TopicRecord(name=TRANSACTIONS_TOPIC, topic_id=b"x" * 16))
        for index in range(partitions):
            record = kraft.PartitionRecord(
                partition_id=index, topic_id=b"x" * 16, replicas=(1,), isr=(1,), leader=1,
                leader_epoch=0, partition_epoch=0, directories=(b"d" * 16,),
            )  # fmt: skip
            self.image.apply(index + 1, record)

    def route(self, topic, partition, by_id):
        assert topic == TRANSACTIONS_TOPIC.encode()
        return Route(partition, 0, TRANSACTIONS_TOPIC, b"x" * 16, partition, 0)

    def forward(self, x):
        x.pending[0] = -1
        self.forwarded.append(x)

    def answered_all(self, x, values):
        """By every partition that was asked. values: what the partition answers."""
        for index, partition, _ in self.sent:
            told = response(x.handler.key, x.version, values(partition))
            self.answered(x, index, [messages.encode_response(told)])


@pytest.mark.parametrize("version", range(6))
def test_producer_ids_are_asked_of_the_coordinator_where_there_is_a_transactional_id(version):
    handler = HANDLERS[22]
    init = {"transaction_timeout": 1000, **PRODUCER}
    host = Host()
    x = host.start(handler, version, {"transactional_id": None, **init})
    assert host.forwarded == [x] and not host.sent
    told = {"throttle_time": 0, "error_code": 0, "producer_id": 5, "producer_epoch": 0}
    host.answered(x, 0, [messages.encode_response(response(22, version, told))])
    assert host.answer.producer_id == 5
    x = host.start(handler, version, {"transactional_id": "x", **init})
    [(_, partition, body)] = host.sent
    assert partition == partition_of("x", PARTITIONS) and body == bytes(host.memory)
    assert host.forwarded == [host.forwarded[0]]
    host.answered(x, 0, [messages.encode_response(response(22, version, told))])
    assert host.answer.producer_id == 5
    host.start(handler, version, {"transactional_id": "", **init})
    assert host.sent[-1][1] == 0, "its coordinator says that this is no id"


def test_several_are_asked_where_they_live_and_answered_together():
    host = Host()
    x = host.start(HANDLERS[65], 0, {"transactional_ids": IDS})
    assert [partition for _, partition, _ in host.sent] == list(range(PARTITIONS))

    def described(partition):
        mine = [one for one in IDS if partition_of(one, PARTITIONS) == partition]
        row = {"error_code": 105, "transaction_state": "", "transaction_timeout": 0,
               "transaction_start_time": None, "topics": [], "producer_id": 0,
               "producer_epoch": 0}  # fmt: skip
        rows = [{"transactional_id": one, **row} for one in mine]
        return {"throttle_time": 0, "transaction_states": rows}

    host.answered_all(x, described)
    assert sorted(one.transactional_id for one in host.answer.transaction_states) == sorted(IDS)


@pytest.mark.parametrize("version", [4, 5])
def test_partitions_of_several_transactions_are_added_where_these_live(version):
    host = Host()
    several = [
        {"transactional_id": one, "producer_id": 1, "producer_epoch": 0, "verify_only": True,
         "topics": [{"name": "t", "partitions": [0]}]}
        for one in IDS
    ]  # fmt: skip
    x = host.start(HANDLERS[24], version, {"transactions": several})

    def added(partition):
        mine = [one for one in IDS if partition_of(one, PARTITIONS) == partition]
        rows = [{"transactional_id": one, "topic_results": []} for one in mine]
        return {"throttle_time": 0, "error_code": 0, "results_by_transaction": rows}

    host.answered_all(x, added)
    found = [one.transactional_id for one in host.answer.results_by_transaction]
    assert sorted(found) == sorted(IDS) and host.answer.error_code == errors.NONE


@pytest.mark.parametrize("version", range(3))
def test_a_list_is_of_all_partitions_or_an_error(version):
    def listed(partition, code=errors.NONE):
        row = {"transactional_id": f"x{partition}", "producer_id": 1,
               "transaction_state": "Ongoing"}  # fmt: skip
        rows = [] if code else [row]
        return {"throttle_time": 0, "error_code": code, "unknown_state_filters": ["no state"],
                "transaction_states": rows}  # fmt: skip

    host = Host()
    host.answered_all(host.start(HANDLERS[66], version, LIST), listed)
    found = [one.transactional_id for one in host.answer.transaction_states]
    assert found == [f"x{partition}" for partition in range(PARTITIONS)]
    assert host.answer.unknown_state_filters == ("no state",)
    host = Host()
    loading = errors.COORDINATOR_LOAD_IN_PROGRESS
    x = host.start(HANDLERS[66], version, LIST)
    host.answered_all(x, lambda partition: listed(partition, loading if partition == 3 else 0))
    assert host.answer.error_code == loading and not host.answer.transaction_states


def test_a_home_that_dies_is_answered_for():
    host = Host()
    end = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0, "committed": True}
    host.lose(host.start(HANDLERS[26], 5, end), 0)
    assert host.answer.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    host = Host()
    x = host.start(HANDLERS[66], 2, LIST)
    for index in range(PARTITIONS):
        host.lose(x, index)
    assert host.answer.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS


def test_before_there_is_a_topic_there_are_no_transactions():
    host = Host(partitions=0)
    host.start(HANDLERS[66], 2, LIST)
    assert (host.answer.error_code, host.answer.transaction_states) == (errors.NONE, ())
    assert not host.sent and not host.forwarded and not host.ensured


NAMED = {
    22: {"transactional_id": "x", "transaction_timeout": 1000, **PRODUCER},
    24: {"transactions": [{"transactional_id": "x", "verify_only": True}]},
    25: {"transactional_id": "x", "group_id": "g"},
    26: {"transactional_id": "x"},
    65: {"transactional_ids": ["x"]},
}


@pytest.mark.parametrize("key", sorted(HANDLERS.keys() - {66}))
def test_the_first_request_has_its_topics_created(key):
    """And is asked when they are there, or refused when they could not be created."""
    handler = HANDLERS[key]
    body = encode(key, handler.highest, NAMED[key])
    topics = [TRANSACTIONS_TOPIC, OFFSETS_TOPIC] if key == ADD_OFFSETS else [TRANSACTIONS_TOPIC]
    for created in (True, False):
        host = Host(partitions=0)
        x = host.start_encoded(handler, handler.highest, body)
        assert not host.sent
        for _ in topics:
            if created:
                host.image = Host().image
            host.lose(x, 0)
        assert [name for _, name in host.ensured] == topics
        assert (host.answer is None, bool(host.sent)) == (created, created)
