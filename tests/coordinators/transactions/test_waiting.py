"""What a client asks for while its last transaction is being ended waits for the last marker."""

import pytest
from transaction_world import ADD, CONCURRENT, OFFSETS, World

from appliance.base import errors
from appliance.coordinators.runtime.call import NEVER
from appliance.coordinators.transactions.waiting import PATIENCE_MS


@pytest.fixture
def world():
    """A transaction of (1000, 0) in two partitions, whose end is decided."""
    world = World()
    assert world.add(world.init(), 0, 1) == [errors.NONE] * 2
    assert world.end((1000, 0)) == errors.NONE
    return world


def adding(world, producer=(1000, 0), topic="t"):
    fields = {
        "transactional_id": "x",
        "producer_id": producer[0],
        "producer_epoch": producer[1],
        "topics": [{"name": topic, "partitions": [2]}],
    }
    return world.send(ADD, 3, **{f"v3_and_below_{name}": one for name, one in fields.items()})


def adding_offsets(world, producer=(1000, 0)):
    who = {"transactional_id": "x", "producer_id": producer[0], "producer_epoch": producer[1]}
    return world.send(OFFSETS, 3, **who, group_id="g")


def codes(world, *tokens):
    found = []
    for token in tokens:
        answer = world.answers.pop(token)
        if hasattr(answer, "results_by_topic_v3_and_below"):
            (topic,) = answer.results_by_topic_v3_and_below
            (answer,) = topic.results_by_partition
            found.append(int(answer.partition_error_code))
        else:
            found.append(int(answer.error_code))
    return found


def test_the_last_marker_lets_all_go_on_in_their_order(world):
    waiting = adding_offsets(world), adding(world), adding(world, (1000, 7)), adding_offsets(world)
    world.mark(("t", 0))
    assert not world.answers
    world.mark()
    fenced = errors.PRODUCER_FENCED
    assert codes(world, *waiting) == [errors.NONE, errors.NONE, fenced, errors.NONE]
    assert world.state() == "Ongoing" and not world.shard.state.waiting
    (known,) = world.transactions().values()
    assert sorted(name for name, _ in known.partitions) == ["__consumer_offsets", "t"]


def test_who_has_waited_long_enough_is_told_what_kafka_tells_at_once(world):
    first = adding(world)
    world.tick(PATIENCE_MS - 1)
    wrong, second = adding(world, topic="none"), adding_offsets(world)
    assert not world.answers
    world.tick(1)
    assert codes(world, first) == [CONCURRENT] and not world.answers
    world.tick(PATIENCE_MS - 1)
    assert codes(world, wrong, second) == [errors.UNKNOWN_TOPIC_OR_PARTITION, CONCURRENT]
    third = adding(world)
    world.mark()
    assert codes(world, third) == [errors.NONE]
    world.tick(PATIENCE_MS)
    assert not world.answers


def test_another_coordinator_lets_nobody_wait(world):
    waiting = adding(world), adding_offsets(world)
    world.restart()
    assert codes(world, *waiting) == [errors.NOT_COORDINATOR] * 2
    assert world.shard.next_deadline_ms == NEVER
    assert world.add((1000, 0), 2) == [CONCURRENT]


def test_the_end_of_its_topic_lets_it_go_on(world):
    waiting = adding_offsets(world)
    world.delete_topic()
    assert codes(world, waiting) == [errors.NONE]
