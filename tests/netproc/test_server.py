"""Requests in flight at one network process: each is answered once, to the one who asked."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from kio.index import load_request_schema

from appliance.base import errors
from appliance.ring import partition_table as columns
from appliance.ring.messages import APPEND, APPENDED, FOUND, READ
from appliance.wire import messages
from appliance.wire.batch import NewRecord, build_batch, checksum_holds
from appliance.wire.build import build
from tests.netproc.netproc_world import World
from tests.seeds import each_seed


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def produce_body(value=b"v", topic="flights"):
    rows = [{"index": 0, "records": build_batch([NewRecord(1, None, value)])}]
    data = [{"name": topic, "partition_data": rows}]
    values = {"transactional_id": None, "acks": -1, "timeout": 30_000, "topic_data": data}
    return messages.encode_request(build(load_request_schema(0, 9), values))


def produce(client):
    client.send_body(0, 9, produce_body())


@pytest.mark.interpreted("replaces a handler")
@pytest.mark.parametrize("numbered", [False, True])
def test_a_bug_costs_the_connection_that_found_it(tmp_path, numbered):
    """Not the process, with everybody else's: a client that asks again would end the next one, and
    in the end the appliance."""
    world = World(tmp_path)
    served = world.server.connections._receiver._handlers[0]

    def begin(host, x):
        if numbered:
            x.deadline_ns = host.now_ns + 10**9
            host.schedule(x)
        raise KeyError("a bug")

    served[3] = replace(served[3], begin=begin)
    other, client = world.client(), world.client()
    client.send_body(3, 0, b"\0\0\0\0")
    world.turn()
    assert client.sock.recv(1) == b""
    assert other.ask(18, 0).error_code == 0
    with open(f"/proc/self/fd/{world.fd}") as said:
        said.seek(0)
        (line,) = [line for line in said if " bug " in line]
    assert "Metadata v0" in line and "a bug" in line
    world.end()
    world.close()


def test_a_refused_version_takes_no_answer_from_another_connection(world):
    """It is answered behind a request that waits, and its connection ends before."""
    first, second = world.client(), world.client()
    produce(first)
    world.turn()
    produce(second)
    world.turn()
    second.send_body(18, 99, b"")
    world.turn()
    asked = world.asked()
    assert [one.op for one in asked] == [APPEND, APPEND]
    second.close()
    world.turn()
    for one in asked:
        world.tell(APPENDED, one.token, a=7)
    world.turn()
    _, answer = first.answer()
    assert answer.responses[0].partition_responses[0].base_offset == 7
    world.end()


@each_seed(20)
def test_whatever_the_pieces_in_which_it_comes_answers_are_in_order_and_bytes_stay(world, seed):
    """Small and large batches of two clients, in pieces; completions in any order."""
    rng = Random(seed)
    waiting, wanted, streams = [], {}, {}
    for client in (world.client(), world.client()):
        values = [rng.randbytes(rng.choice([1, 100, 3000, 70_000])) for _ in range(20)]
        streams[client] = b"".join(client.frame(0, 9, produce_body(value)) for value in values)
        wanted[client] = len(values)
    memory = world.memory.arenas[0]
    answered = dict.fromkeys(streams, 0)
    offset = 0
    while any(answered[client] < wanted[client] for client in streams):
        for client in streams:
            size = rng.choice([1, 7, 500, 40_000, 200_000])
            piece, streams[client] = streams[client][:size], streams[client][size:]
            with suppress(BlockingIOError):
                sent = client.sock.send(piece)
                piece = piece[sent:]
            streams[client] = piece + streams[client]
        world.turn()
        waiting += [(one, bytes(memory[one.a : one.a + one.e])) for one in world.asked()]
        for _ in range(rng.randint(0, len(waiting))):
            one, batch = waiting.pop(rng.randrange(len(waiting)))
            assert bytes(memory[one.a : one.a + one.e]) == batch, "written over while it was used"
            assert checksum_holds(memoryview(batch))
            offset += 1
            world.tell(APPENDED, one.token, a=offset)
        world.turn()
        for client in streams:
            while (found := client.answer()) is not None:
                assert found[0] == answered[client]
                assert not found[1].responses[0].partition_responses[0].error_code
                answered[client] += 1
    world.end()


def test_at_the_end_of_an_offline_partition_its_home_is_asked_and_tells(world):
    client = world.client()
    assert fetch(client, "flights") == errors.NONE
    assert not world.asked(), "there is nothing at its end"
    ((_, row),) = world.follower.handles.items()
    world.memory.partitions.set(row, columns.STATUS, columns.OFFLINE)
    client.send(1, 12, **fetch_values("flights"))
    world.turn()
    (asked,) = world.asked()
    assert (asked.op, asked.handle) == (READ, row)
    world.tell(FOUND, asked.token, error=errors.KAFKA_STORAGE_ERROR, a=-1, b=-1, c=-1, d=-1)
    world.turn()
    _, answer = client.answer()
    found = answer.responses[0].partitions[0]
    assert int(found.error_code) == errors.KAFKA_STORAGE_ERROR and not found.records
    world.end()


def metadata(client, name, may_create=True):
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": may_create}
    found = client.ask(
        *(3, 9),
        **asked,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return int(found.topics[0].error_code)


def fetch_values(name):
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}
    partition |= {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    topics = [{"topic": name, "partitions": [partition]}]
    return {
        "replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 100, "isolation_level": 0,
        "session_id": 0, "session_epoch": -1, "topics": topics, "forgotten_topics_data": [],
        "rack_id": "",
    }  # fmt: skip


def fetch(client, name):
    found = client.ask(1, 12, **fetch_values(name))
    return int(found.responses[0].partitions[0].error_code)


def test_at_the_end_who_waits_for_records_keeps_nobody_from_it(world):
    """What was asked is answered first, with what there is by now; a record is acknowledged."""
    reader, writer = world.client(), world.client()
    reader.send(1, 12, **fetch_values("flights") | {"max_wait": 60_000, "min_bytes": 1})
    produce(writer)
    world.turn()
    parked, append = world.asked()
    assert (parked.op, append.op) == (READ, APPEND)
    world.table.set_drain(1)
    world.turn()
    world.turn()
    _, answer = reader.answer()
    assert int(answer.responses[0].partitions[0].error_code) == errors.NONE
    assert reader.sock.recv(1) == b"", "it is told to go elsewhere"
    assert writer.answer() is None and not world.ended
    world.tell(APPENDED, append.token, a=7)
    world.turn()
    _, answer = writer.answer()
    assert answer.responses[0].partition_responses[0].base_offset == 7
    assert world.ended
    world.end()


def delete(client, name):
    found = client.ask(20, 5, topic_names=[name], timeout=1000)
    assert int(found.responses[0].error_code) == errors.NONE


@pytest.mark.parametrize("asks", [metadata, fetch])
def test_a_deleted_topic_comes_back_for_all_but_those_left_over(world, asks):
    """It had asked, or read, as a consumer; whoever is new or writes makes the topic again."""
    consumer, operator = world.client(), world.client("operator")
    writer = world.client("writer")
    fetch(consumer, "other")
    metadata(writer, "flights")
    assert asks(consumer, "flights") == errors.NONE
    delete(operator, "flights")
    for _ in range(3):
        assert metadata(consumer, "flights") == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert metadata(consumer, "another") == errors.NONE, "a name that was not deleted"
    assert metadata(writer, "flights") == errors.NONE
    assert metadata(consumer, "flights") == errors.NONE
    delete(operator, "flights")
    assert metadata(consumer, "flights") == errors.UNKNOWN_TOPIC_OR_PARTITION
    newly = world.client()
    assert metadata(newly, "flights") == errors.NONE
    world.end()


def test_with_no_delay_who_is_left_over_makes_it_too(tmp_path):
    world = World(tmp_path, {"penstock.topic.deleted.auto.create.delay.ms": "0"})
    consumer = world.client()
    assert fetch(consumer, "flights") == errors.NONE
    delete(world.client("operator"), "flights")
    assert metadata(consumer, "flights") == errors.NONE
    world.end()
    world.close()
