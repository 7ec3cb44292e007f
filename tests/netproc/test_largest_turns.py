"""No turn of a network or I/O process takes a whole long request: it is planned, decided and
answered in steps.

Counted are calls of Python functions in each turn, of the largest requests that a limit of elements
allows: a clock would tell of the machine.
"""

import sys
from contextlib import contextmanager

import pytest

from appliance.base import errors
from appliance.netproc.requests import long_requests
from appliance.wire import messages
from benchmarks import largest
from tests.netproc.netproc_world import World

ELEMENTS = 4096
CALLS = 3 * ELEMENTS
"""In one turn: reading rows into objects is one call each, an answer made at once would be more."""
TURNS = 2000
APIS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "JoinGroup": 11,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "DescribeGroups": 15,
    "ListGroups": 16,
    "DeleteRecords": 21,
    "OffsetForLeaderEpoch": 23,
    "AddPartitionsToTxn": 24,
    "WriteTxnMarkers": 27,
    "TxnOffsetCommit": 28,
    "AlterReplicaLogDirs": 34,
    "DeleteGroups": 42,
    "OffsetDelete": 47,
    "DescribeProducers": 61,
    "DescribeTransactions": 65,
    "ListTransactions": 66,
    "ConsumerGroupHeartbeat": 68,
    "ConsumerGroupDescribe": 69,
    "DescribeTopicPartitions": 75,
}


GATHERED = (
    "ListOffsets", "DeleteRecords", "OffsetForLeaderEpoch", "AlterReplicaLogDirs",
    "DescribeProducers", "Metadata", "TxnOffsetCommit", "SyncGroup",
)  # fmt: skip
FEW, MANY = 1024, 32_700
"""The second is nearly what penstock.request.max.elements allows."""
LINES = 64_000
"""In one turn, however long the request: some hundred rows are planned, asked and answered, and
completions are taken."""


@contextmanager
def counting():
    found = [0]

    def count(frame, event, argument):
        found[0] += event == "call"

    sys.setprofile(count)
    try:
        yield found
    finally:
        sys.setprofile(None)


@contextmanager
def counting_lines():
    """Lines of Python code that run, those of loops as often as they do."""
    found = [0]

    def within(frame, event, argument):
        found[0] += event == "line"
        return within

    sys.settrace(lambda *_: within)
    try:
        yield found
    finally:
        sys.settrace(None)


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(long_requests, "TURN_NS", 0)  # one step in each turn
    one = World(tmp_path, topics=("flights", largest.KNOWN))
    one.io_process()
    yield one
    one.close()


def most_calls(world, client, shape, counting=counting):
    """In one turn of the network process or the I/O process, until this is answered."""
    client.sock.setblocking(True)
    client.send_body(shape.key, shape.version, shape.body)
    client.sock.setblocking(False)
    most = 0
    for _ in range(TURNS):
        with counting() as found:
            world.sockets()
            for peer, arrived in world.links.poll():
                world.server.handle(peer, arrived)
            world.now_ns += 10_000_000
            world.server.run_once(world.now_ns)
        most = max(most, found[0])
        with counting() as found:
            world.io_turn()
        most = max(most, found[0])
        world.control_turn()
        if client.answer() is not None:
            return most
        assert world.server.shared.open, "the connection was closed"
    raise AssertionError("it is not answered")


@pytest.mark.interpreted("calls of compiled functions are not seen")
@pytest.mark.parametrize("name", APIS)
def test_no_turn_takes_a_whole_long_request(world, name):
    key = APIS[name]
    version = messages.request_versions(key)[-1]
    client = world.client()
    found = {}
    for shape in largest.shapes(key, version, ELEMENTS, 1 << 20):
        found[shape.title] = most_calls(world, client, shape)
    over = {title: calls for title, calls in found.items() if calls > CALLS}
    assert found and not over, (over, CALLS)


@pytest.mark.interpreted("lines of compiled functions are not seen")
@pytest.mark.parametrize("name", GATHERED)
def test_many_times_the_rows_take_more_turns_and_no_longer_ones(world, name):
    key = APIS[name]
    version = messages.request_versions(key)[-1]
    client = world.client()
    for few, many in zip(
        largest.shapes(key, version, FEW, 1 << 20),
        largest.shapes(key, version, MANY, 1 << 24),
        strict=True,
    ):
        before = most_calls(world, client, few, counting_lines)
        most = most_calls(world, client, many, counting_lines)
        assert most <= max(LINES, before), (many.title, before, most)


def test_a_deletion_whose_time_is_over_while_it_is_asked_is_answered(world):
    """With what was not asked yet timed out, and none of its connection's exchanges as a bug."""
    client = world.client()
    partitions = [{"partition_index": index, "offset": 0} for index in range(3000)]
    asked = [{"name": largest.KNOWN, "partitions": partitions}]
    for _ in range(2):
        client.send(21, 2, topics=asked, timeout=0)
        for _ in range(TURNS):
            world.turn(ms=2000)
            if (found := client.answer()) is not None:
                break
        assert found is not None
        (topic,) = found[1].topics
        assert [one.partition_index for one in topic.partitions] == list(range(3000))
        codes = {int(one.error_code) for one in topic.partitions}
        assert codes <= {errors.REQUEST_TIMED_OUT, errors.UNKNOWN_TOPIC_OR_PARTITION}
        assert errors.REQUEST_TIMED_OUT in codes


def test_a_topic_is_told_once_whatever_ids_its_name_comes_with(world):
    ids = [bytes([number + 1]) * 16 for number in range(50)]
    topics = [{"topic_id": one, "name": "flights"} for one in ids]
    answer = world.client().ask(
        3, 13, topics=topics, allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )  # fmt: skip
    assert [topic.name for topic in answer.topics] == ["flights"]
