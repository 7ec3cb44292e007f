"""Long requests take several turns, while others are served; what a client repeats costs once."""

import pytest

from appliance.base import errors
from appliance.netproc.requests import long_requests
from appliance.ring.messages import DELETE_RECORDS, DELETED, EPOCH_END, EPOCH_ENDED
from appliance.wire import messages
from tests.netproc.netproc_world import World

EPOCHS, METADATA, RECORDS, TOPIC_PARTITIONS, VERSIONS = 23, 3, 21, 75, 18
GROUPS = 15
MANY = 4000
MOST_UNDER_WAY = long_requests.MOST_UNDER_WAY
TURNS = 600


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(long_requests, "TURN_NS", 0)  # one step in each turn
    one = World(tmp_path)
    yield one
    one.close()


def partition(index, epoch=0):
    return {"partition": index, "current_leader_epoch": -1, "leader_epoch": epoch}


def ask_epochs(client, indexes):
    topics = [{"topic": "flights", "partitions": [partition(index) for index in indexes]}]
    client.send(EPOCHS, 4, replica_id=-2, topics=topics)


def turns_until(world, found):
    for count in range(TURNS):
        if (value := found()) is not None:
            return count, value
        world.turn()
    raise AssertionError("it does not happen")


def test_others_are_served_while_a_long_request_is_decoded(world):
    busy, other = world.client("busy"), world.client("other")
    ask_epochs(busy, range(1, MANY))
    world.turn()
    assert other.ask(VERSIONS, 0, turns=3).error_code == 0
    assert busy.answer() is None
    turns, (_, answer) = turns_until(world, busy.answer)
    assert turns > 10
    rows = answer.topics[0].partitions
    assert [row.partition for row in rows] == list(range(1, MANY))
    assert {row.error_code for row in rows} == {errors.UNKNOWN_TOPIC_OR_PARTITION}
    world.end()


def test_a_partition_that_is_asked_the_same_again_is_asked_once(world):
    client = world.client()
    ask_epochs(client, [0] * MANY)
    _, (asked,) = turns_until(world, lambda: world.asked() or None)
    assert asked.op == EPOCH_END
    world.tell(EPOCH_ENDED, asked.token, a=7, b=0)
    _, (_, answer) = turns_until(world, client.answer)
    assert not world.asked()
    rows = answer.topics[0].partitions
    assert len(rows) == MANY, "each is answered, as Kafka does"
    assert {(row.error_code, row.end_offset) for row in rows} == {(0, 7)}
    world.end()


def test_the_last_offset_counts_of_a_partition_whose_records_are_deleted_twice(world):
    client = world.client()
    rows = [{"partition_index": 0, "offset": offset} for offset in (5, 3)]
    client.send(RECORDS, 2, topics=[{"name": "flights", "partitions": rows}], timeout=1000)
    _, (asked,) = turns_until(world, lambda: world.asked() or None)
    assert (asked.op, asked.a) == (DELETE_RECORDS, 3)
    world.tell(DELETED, asked.token, a=3)
    _, (_, answer) = turns_until(world, client.answer)
    assert [row.low_watermark for row in answer.topics[0].partitions] == [3]
    world.end()


@pytest.mark.parametrize("key", [METADATA, TOPIC_PARTITIONS])
def test_topics_that_a_long_request_names_are_told_as_by_a_short_one(world, key):
    client, names = world.client(), [f"t-{number:04}" for number in range(MANY)]
    values = {"response_partition_limit": 10, "cursor": None}
    if key == METADATA:
        fields = ("cluster_authorized_operations", "topic_authorized_operations")
        values = {f"include_{name}": False for name in fields}
        values["allow_auto_topic_creation"] = False
    told = []
    for some in (names, names[:1]):
        topics = [{"name": name} for name in ("flights", *some)]
        told.append(client.ask(key, {METADATA: 9}.get(key, 0), TURNS, topics=topics, **values))
    long, short = told
    assert len(long.topics) == MANY + 1
    assert long.topics[:2] == short.topics
    world.end()


def test_who_hangs_up_in_the_middle_leaves_nothing(world):
    clients = [world.client(f"c{number}") for number in range(3)]
    for client in clients:
        ask_epochs(client, range(1, MANY))
    for _ in range(3):
        world.turn()
    assert len(world.server._long.waiting) == 3
    for connection in list(world.server.shared.open.values()):
        connection.close()
    world.end()
    for _ in range(3):
        world.turn()
    assert not world.server._long.waiting


def test_what_comes_behind_a_long_request_waits(world):
    client = world.client()
    ask_epochs(client, range(1, MANY))
    client.send(VERSIONS, 0)
    for _ in range(4):
        world.turn()
    assert len(world.server.exchanges.living) == 1
    assert turns_until(world, client.answer)[1][0] == 0
    assert turns_until(world, client.answer)[1][0] == 1
    world.end()


def closed(world, client):
    turns_until(world, lambda: not world.server.shared.open or None)
    return client.sock.recv(1) == b""


def test_more_elements_than_are_taken_close_the_connection(world):
    client = world.client()
    ask_epochs(client, [0] * messages.ELEMENTS_MAX)
    assert closed(world, client)
    world.end()


def test_more_bytes_than_are_taken_close_the_connection(tmp_path):
    world = World(tmp_path, {"penstock.request.max.bytes": "65536"})
    client = world.client()
    client.send_body(METADATA, 9, bytes(70_000))
    assert closed(world, client)
    world.end()
    world.close()


def test_requests_for_coordinators_are_cut_one_after_the_other(world):
    """Their parts are asked one at a time, so that rings have room for others."""
    world.io_process()
    clients = [world.client(f"c{number}") for number in range(4)]
    for client in clients:
        groups = [f"g-{number:06}" for number in range(MANY)]
        client.send(GROUPS, 5, groups=groups, include_authorized_operations=False)
        client.send(VERSIONS, 0)
    under_way, turns = [], 0
    left = {client: [] for client in clients}
    while any(len(found) < 2 for found in left.values()):
        world.turn()
        under_way.append(sum(len(x.pending) for x in world.server.exchanges.living.values()))
        world.io_turn()
        for client, found in left.items():
            if (answer := client.answer()) is not None:
                found.append(answer)
        turns += 1
        assert turns < TURNS
    assert max(under_way) == len(clients), "each has one part under way, or waits"
    for (number, answer), (later, _) in left.values():
        assert (number, later) == (0, 1)
        assert sorted(one.group_id for one in answer.groups) == groups
    world.end()


def test_few_long_requests_for_coordinators_are_under_way_the_others_wait_in_line(world):
    """Else many of them would all be answered at once, after their clients have given up."""
    world.io_process()
    groups = [f"g-{number:06}" for number in range(MANY)]
    clients = [world.client(f"c{number}") for number in range(MOST_UNDER_WAY + 3)]
    for client in clients:
        client.send(GROUPS, 5, groups=groups, include_authorized_operations=False)
    long = world.server._long
    turns_until(world, lambda: len(long.in_line) == 3 or None)
    for connection in list(world.server.shared.open.values()):
        if any(x.connection is connection for x in long._under_way[:1]):
            connection.close()  # nobody waits for what it asked: the next one begins
            break
    turns_until(world, lambda: len(long.in_line) == 2 or None)
    answered, in_line, turns = [], [], 0
    while len(answered) < len(clients) - 1:
        world.turn()
        world.io_turn()
        assert len([x for x in long._under_way if x.answer is None]) <= MOST_UNDER_WAY
        in_line.append(len(long.in_line))
        if more := [one for one in clients if one not in answered and one.answer() is not None]:
            assert answered or in_line[-2] == 2, "somebody is answered while others wait in line"
            answered += more
        turns += 1
        assert turns < 3 * TURNS
    world.end()
