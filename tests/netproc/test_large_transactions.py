"""A transaction takes the many partitions of one request over several turns and in one step: all of
them or none, whoever asks meanwhile."""

from dataclasses import replace

import pytest

from appliance.base import errors
from appliance.handlers import coordinate
from appliance.ioproc.coordination import long_work, pending_requests
from appliance.ioproc.coordination.marker_sender import SPREAD
from tests.netproc.netproc_world import LAYOUT, World
from tests.netproc.test_largest_turns import counting

INIT, ADD, END, DESCRIBE = 22, 24, 26, 65
PARTITIONS = 900
TURNS = 5000
CALLS = 12_000
"""Of a turn that asks for some hundred markers and writes some dozen."""

pytestmark = pytest.mark.interpreted("limits of compiled modules are not replaced")


@pytest.fixture
def world(tmp_path, monkeypatch):
    for module in (coordinate, pending_requests):
        monkeypatch.setattr(module, "LONG", 1 << 11)
    monkeypatch.setattr(long_work, "SLICE_NS", 0)  # one step in each turn
    layout = replace(LAYOUT, partition_rows=2048)
    one = World(tmp_path, settings={"num.partitions": str(PARTITIONS)}, layout=layout)
    one.io_process()
    yield one
    one.close()


def turn(world):
    world.turn()
    world.io_turn()


def ask(world, client, key, version, **values):
    client.send(key, version, **values)
    for _ in range(TURNS):
        turn(world)
        if (found := client.answer()) is not None:
            return found[1]
    raise AssertionError("it is not answered")


def init(world, client):
    fields = {"transactional_id": "x", "transaction_timeout": 60_000}
    answer = ask(world, client, INIT, 2, **fields)
    assert answer.error_code.value == errors.NONE
    return answer.producer_id, answer.producer_epoch


def adding(producer, indexes, topic="flights"):
    return {
        "v3_and_below_transactional_id": "x",
        "v3_and_below_producer_id": producer[0],
        "v3_and_below_producer_epoch": producer[1],
        "v3_and_below_topics": [{"name": topic, "partitions": tuple(indexes)}],
    }


def codes(answer):
    (topic,) = answer.results_by_topic_v3_and_below
    return {p.partition_index: p.partition_error_code.value for p in topic.results_by_partition}


def added(world, client):
    answer = ask(world, client, DESCRIBE, 0, transactional_ids=["x"])
    (state,) = answer.transaction_states
    return {index for topic in state.topics for index in topic.partitions}


def test_they_are_added_in_one_step(world):
    client, other = world.client(), world.client("other")
    producer = init(world, client)
    client.send(ADD, 3, **adding(producer, range(PARTITIONS)))
    seen, answer = [], None
    while answer is None:
        seen.append(len(added(world, other)))
        answer = client.answer()
    assert set(codes(answer[1]).values()) == {errors.NONE}
    assert len(seen) > 1 and set(seen) == {0, PARTITIONS}


def test_one_that_is_not_there_keeps_all_out(world):
    client = world.client()
    producer = init(world, client)
    answer = ask(world, client, ADD, 3, **adding(producer, range(PARTITIONS + 1)))
    found = codes(answer)
    assert found.pop(PARTITIONS) == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert set(found.values()) == {errors.OPERATION_NOT_ATTEMPTED}
    assert not added(world, client)


def test_what_another_request_added_meanwhile_stays(world):
    client, other = world.client(), world.client("other")
    producer = init(world, client)
    client.send(ADD, 3, **adding(producer, range(1, PARTITIONS)))
    for _ in range(6):
        turn(world)
    assert client.answer() is None
    found = codes(ask(world, other, ADD, 3, **adding(producer, [0])))
    assert found == {0: errors.NONE}
    answer = None
    while answer is None:
        turn(world)
        answer = client.answer()
    assert set(codes(answer[1]).values()) == {errors.CONCURRENT_TRANSACTIONS}
    again = codes(ask(world, client, ADD, 3, **adding(producer, range(1, PARTITIONS))))
    assert set(again.values()) == {errors.NONE}
    assert added(world, client) == set(range(PARTITIONS))


def test_a_fenced_producer_is_told_so_for_each(world):
    client = world.client()
    producer = init(world, client)
    init(world, client)
    answer = ask(world, client, ADD, 3, **adding(producer, range(PARTITIONS)))
    assert set(codes(answer).values()) == {errors.PRODUCER_FENCED}
    assert len(codes(answer)) == PARTITIONS
    assert not added(world, client)


@pytest.mark.parametrize("partitions", [PARTITIONS, 4 * PARTITIONS])
def test_an_end_in_many_partitions_takes_no_turn_alone(tmp_path, partitions):
    """Its partitions are looked at, and its markers written, some in each turn."""
    layout = replace(LAYOUT, partition_rows=2 * partitions)
    one = World(tmp_path, settings={"num.partitions": str(partitions)}, layout=layout)
    try:
        one.io_process()
        client = one.client()
        producer = init(one, client)
        found = codes(ask(one, client, ADD, 3, **adding(producer, range(partitions))))
        assert set(found.values()) == {errors.NONE} and len(found) == partitions
        fields = {"transactional_id": "x", "producer_id": producer[0], "committed": True}
        client.send(END, 3, **fields, producer_epoch=producer[1])
        answer, most, turns = None, 0, 0
        while answer is None or one.shell._endings._unseen:
            with counting() as calls:
                turn(one)
            most, turns = max(most, calls[0]), turns + 1
            answer = answer or client.answer()
            assert turns < TURNS
        assert answer[1].error_code.value == errors.NONE
        assert turns > partitions / SPREAD
        assert most < CALLS, most
    finally:
        one.close()
