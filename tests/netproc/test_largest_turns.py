"""No turn of a network or I/O process takes a whole long request: it is planned, decided and
answered in steps.

Counted are calls of Python functions in each turn, of the largest requests that a limit of elements
allows: a clock would tell of the machine.
"""

import sys
from contextlib import contextmanager

import pytest

from appliance.netproc import long_requests
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


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(long_requests, "TURN_NS", 0)  # one step in each turn
    one = World(tmp_path, topics=("flights", largest.KNOWN))
    one.io_process()
    yield one
    one.close()


def most_calls(world, client, shape):
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


def test_a_topic_is_told_once_whatever_ids_its_name_comes_with(world):
    ids = [bytes([number + 1]) * 16 for number in range(50)]
    topics = [{"topic_id": one, "name": "flights"} for one in ids]
    answer = world.client().ask(
        3, 13, topics=topics, allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )  # fmt: skip
    assert [topic.name for topic in answer.topics] == ["flights"]
