"""A Produce of very many partitions costs others little: it is parsed, asked and answered over
turns, whatever else its connection sends."""

from dataclasses import replace

import pytest
from kio.index import load_request_schema

from appliance.config.bounds import ELEMENTS
from appliance.netproc.requests import long_requests
from appliance.ring.messages import APPEND, APPENDED
from appliance.wire import messages
from appliance.wire.build import build
from appliance.wire.produce import SLICE
from benchmarks import batches
from tests.netproc.netproc_world import LAYOUT, World

PRODUCE = 0
MANY = 1500
TURNS = 3000
RECORDS = batches.uniform(1, 10, 1_000_000_000_000)


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(long_requests, "TURN_NS", 0)  # one step in each turn
    layout = replace(LAYOUT, partition_rows=2048)
    one = World(tmp_path, settings={"num.partitions": str(MANY)}, layout=layout)
    yield one
    one.close()


def produce(client, indexes, records=RECORDS, acks=1, cut=0):
    """cut: bytes that are missing at the end."""
    rows = [{"index": index, "records": records} for index in indexes]
    topics = [{"name": "flights", "partition_data": rows}]
    values = {"transactional_id": None, "acks": acks, "timeout": 30_000, "topic_data": topics}
    body = messages.encode_request(build(load_request_schema(PRODUCE, 9), values))
    client.sock.setblocking(True)
    client.send_body(PRODUCE, 9, body[: len(body) - cut])
    client.sock.setblocking(False)


def append(world, asked, offset=5):
    for one in asked:
        assert one.op == APPEND
        world.tell(APPENDED, one.token, a=offset, b=-1, c=0)


def turns_until(world, found):
    for _ in range(TURNS):
        if (value := found()) is not None:
            return value
        append(world, world.asked())
        world.turn()
    raise AssertionError("it does not happen")


def offsets(answer):
    (topic,) = answer.responses
    return [(row.index, row.base_offset) for row in topic.partition_responses]


def test_no_turn_asks_for_more_than_a_part(world):
    client, other = world.client("busy"), world.client("other")
    produce(client, range(MANY))
    produce(other, [7])
    most, seen, answered = 0, [], []
    for _ in range(TURNS):
        world.turn()
        asked = world.asked()
        most = max(most, len(asked))
        seen += [one.token & 0xFFFFFFFF for one in asked]
        append(world, asked)
        told = [(one, one.answer()) for one in (client, other)]
        answered += [(one, offsets(found[1])) for one, found in told if found is not None]
        if len(answered) == 2:
            break
    assert most <= SLICE + 1
    assert [one for one, _ in answered] == [other, client], "who asks for little is served first"
    assert answered[1][1] == [(index, 5) for index in range(MANY)]
    assert sorted(seen) == sorted([0, *range(MANY)])
    world.end()


def test_what_comes_behind_waits_until_all_is_asked_for(world):
    client = world.client()
    produce(client, range(MANY))
    produce(client, [3])
    order = []
    for _ in range(TURNS):
        world.turn()
        asked = world.asked()
        order += [(one.token >> 32, one.handle) for one in asked]
        append(world, asked)
        if len(order) == MANY + 1:
            break
    first, second = order[0][0], order[-1][0]
    assert [number for number, _ in order] == [first] * MANY + [second]
    assert turns_until(world, client.answer)[0] == 0
    assert turns_until(world, client.answer)[0] == 1
    world.end()


def test_few_ask_at_a_time_the_others_wait_in_line(world):
    clients = [world.client(f"c{number}") for number in range(long_requests.MOST_UNDER_WAY + 2)]
    for client in clients:
        produce(client, range(MANY))
    answered, pending = 0, []
    for _ in range(TURNS):
        world.turn()
        asked = world.asked()
        pending.append(len({one.token >> 32 for one in asked}))
        append(world, asked)
        answered += sum(client.answer() is not None for client in clients)
        if answered == len(clients):
            break
    assert answered == len(clients)
    assert max(pending) <= long_requests.MOST_UNDER_WAY
    world.end()


def test_what_has_arrived_is_written_though_its_client_has_gone(world):
    client = world.client()
    produce(client, range(MANY), acks=0)
    for _ in range(3):
        world.turn()
    for connection in list(world.server.shared.open.values()):
        connection.close()
    written = 0
    for _ in range(TURNS):
        asked = world.asked()
        written += len(asked)
        append(world, asked)
        world.turn()
        if not world.server.exchanges.living:
            break
    assert written == MANY
    world.end()


def test_more_partitions_than_are_taken_close_the_connection(world):
    client = world.client()
    produce(client, [0] * messages.ELEMENTS_MAX, records=b"")
    turns_until(world, lambda: not world.server.shared.open or None)
    assert client.sock.recv(1) == b""
    assert not world.asked()
    reached = {one.name: one.times for one in world.memory.tables.bounds.reached()}
    assert reached.get(ELEMENTS) == 1
    world.end()


def test_one_that_is_cut_short_closes_the_connection(world):
    client = world.client()
    produce(client, range(MANY), cut=3)
    turns_until(world, lambda: not world.server.shared.open or None)
    assert not world.asked()
    world.end()
