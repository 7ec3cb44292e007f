"""Homes are asked about many partitions a part at a time, whatever request names them."""

import pytest

from appliance.base import errors
from appliance.handlers.gather import MANY
from appliance.handlers.paced import PACE_NS
from appliance.netproc.requests import long_requests
from appliance.ring.messages import DELETED, EPOCH_ENDED, LISTED, MOVED, PRODUCERS_TOLD
from appliance.supervisor.layout import MIB, Layout
from tests.netproc.netproc_world import World

PARTITIONS = 3 * MANY + 10
TURNS = 400
NONE = {"current_leader_epoch": -1}


def names(make):
    return lambda world: [
        {"name": "many", "partitions": [make(index) for index in range(PARTITIONS)]}
    ]


def folders(world):
    topics = [{"name": "many", "partitions": list(range(PARTITIONS))}]
    return [{"path": world.server.host.log_dirs[0], "topics": topics}]


def epochs(world):
    rows = [{"partition": index, "leader_epoch": 0, **NONE} for index in range(PARTITIONS)]
    return [{"topic": "many", "partitions": rows}]


ASKED = {
    2: (7, "topics", names(lambda i: {"partition_index": i, "timestamp": -1, **NONE}), LISTED,
        {"replica_id": -1, "isolation_level": 0}),
    21: (2, "topics", names(lambda i: {"partition_index": i, "offset": 0}), DELETED,
         {"timeout": 60_000}),
    23: (4, "topics", epochs, EPOCH_ENDED, {"replica_id": -2}),
    34: (2, "dirs", folders, MOVED, {}),
    61: (0, "topics", lambda world: [
        {"name": "many", "partition_indexes": list(range(PARTITIONS))}], PRODUCERS_TOLD, {}),
}  # fmt: skip


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(long_requests, "TURN_NS", 0)  # one step in each turn
    settings = {"num.partitions": str(PARTITIONS), "penstock.partitions.max": "2048"}
    layout = Layout(arena_bytes=8 * MIB, partition_rows=2048)
    one = World(tmp_path, settings, topics=("many",), layout=layout)
    yield one
    one.close()


def send(world, client, key):
    version, field, rows, op, more = ASKED[key]
    client.send(key, version, **{field: rows(world)}, **more)
    return op


def answers(answer):
    topics = answer.results if hasattr(answer, "results") else answer.topics
    return [row for topic in topics for row in topic.partitions]


@pytest.mark.parametrize("key", ASKED)
def test_the_next_part_is_asked_when_the_one_before_is_answered(world, key):
    client = world.client()
    op = send(world, client, key)
    parts = []
    for _ in range(TURNS):
        world.turn()
        asked = world.asked()
        assert len(asked) <= MANY
        if asked:
            parts.append(len(asked))
            for one in asked[:-1]:
                world.tell(op, one.token)
            for _ in range(5):
                world.turn()
                assert not world.asked(), "the last of the part before is not answered"
            world.tell(op, asked[-1].token)
        if (found := client.answer()) is not None:
            break
    assert parts == [MANY] * 3 + [10]
    rows = answers(found[1])
    assert len(rows) == PARTITIONS and {row.error_code for row in rows} == {0}
    world.end()


def test_answers_that_take_long_hold_up_the_next_part_for_a_moment(world):
    client = world.client()
    send(world, client, 21)
    asked = []
    for _ in range(TURNS):
        world.turn(ms=PACE_NS // 1_000_000 // 4)
        asked += world.asked()
        if len(asked) == PARTITIONS:
            break
    assert len(asked) == PARTITIONS
    for one in asked:
        world.tell(DELETED, one.token)
    for _ in range(TURNS):
        world.turn()
        if (found := client.answer()) is not None:
            break
    assert len(answers(found[1])) == PARTITIONS
    world.end()


def test_what_was_not_asked_in_time_is_told_as_such(world):
    client = world.client()
    send(world, client, 21)
    for _ in range(TURNS):
        world.turn()
        if asked := world.asked():
            break
    for _ in range(TURNS):
        world.turn(ms=60_000)
        if (found := client.answer()) is not None:
            break
    codes = [int(row.error_code) for row in answers(found[1])]
    assert codes == [errors.REQUEST_TIMED_OUT] * PARTITIONS
    for one in asked:
        world.tell(DELETED, one.token)
    for one in world.asked():
        world.tell(DELETED, one.token)
    world.end()


def test_a_home_that_dies_is_asked_for_nothing_more_than_others(world):
    """Its questions are lost, and the next part is asked of whoever is there."""
    client = world.client()
    send(world, client, 23)
    for _ in range(TURNS):
        world.turn()
        if asked := world.asked():
            break
    exchanges = world.server.exchanges
    exchanges.lose_all({0})
    for _ in range(TURNS):
        world.turn()
        for one in world.asked():
            assert one.token not in {before.token for before in asked}
            world.tell(EPOCH_ENDED, one.token)
        if (found := client.answer()) is not None:
            break
    codes = [int(row.error_code) for row in answers(found[1])]
    assert codes.count(errors.NOT_LEADER_OR_FOLLOWER) == MANY
    assert codes.count(errors.NONE) == PARTITIONS - MANY
    world.end()
