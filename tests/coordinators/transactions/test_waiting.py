"""What a client asks for while its last transaction is being ended waits for the last marker."""

import pytest
from transaction_world import ADD, CONCURRENT, END, INIT, NOBODY, OFFSETS, TIMEOUT_MS, World

from appliance.base import errors
from appliance.coordinators.runtime.call import NEVER
from appliance.coordinators.transactions.delayed_requests import ID_PATIENCE_MS, PATIENCE_MS


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


def beginning(world, producer=NOBODY, name="x"):
    asked = {"transactional_id": name, "transaction_timeout": TIMEOUT_MS}
    return world.send(INIT, 5, **asked, producer_id=producer[0], producer_epoch=producer[1])


def ending(world, producer, commit, version=5):
    who = {"producer_id": producer[0], "producer_epoch": producer[1]}
    return world.send(END, version, transactional_id="x", committed=commit, **who)


def given(world, token):
    """Producer id and epoch, or the error code."""
    answer = world.answers.pop(token)
    return answer.error_code.value or (answer.producer_id, answer.producer_epoch)


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


def test_who_takes_an_id_over_waits_for_the_markers_of_the_one_before():
    """As if it had asked again behind the last marker; of two the second has the id then."""
    world = World()
    assert world.add(world.init(), 0, 1) == [errors.NONE] * 2
    first, second, fenced = beginning(world), beginning(world), beginning(world, (1000, 7))
    assert world.state() == "PrepareAbort" and not world.answers
    world.mark(("t", 0))
    assert not world.answers
    world.mark()
    assert [given(world, one) for one in (first, second)] == [(1000, 2), (1000, 3)]
    assert given(world, fenced) == errors.PRODUCER_FENCED
    assert world.state() == "Empty" and not world.shard.state.waiting
    world.tick(PATIENCE_MS)
    assert not world.answers


def test_a_take_over_whose_markers_are_late_is_told_what_kafka_tells_at_once():
    world = World()
    assert world.add(world.init(), 0) == [errors.NONE]
    waiting = beginning(world)
    world.tick(PATIENCE_MS - 1)
    assert not world.answers
    world.tick(1)
    assert given(world, waiting) == CONCURRENT
    waiting = beginning(world)
    world.restart()
    assert given(world, waiting) == errors.NOT_COORDINATOR
    world.mark()
    assert given(world, beginning(world)) == (1000, 2)


def test_a_take_over_of_a_transaction_whose_topic_is_gone_need_not_wait():
    world = World()
    assert world.add(world.init(), 0) == [errors.NONE]
    world.delete_topic()
    assert given(world, beginning(world)) == (1000, 2)


def test_one_that_waited_for_markers_waits_again_for_those_of_the_next_transaction(world):
    """Between them another request had begun it; its patience is counted from when it came."""
    adding_, taking = adding(world), beginning(world)
    world.tick(PATIENCE_MS // 2)
    world.mark()
    assert codes(world, adding_) == [errors.NONE]
    assert world.state() == "PrepareAbort" and taking not in world.answers
    world.tick(PATIENCE_MS - PATIENCE_MS // 2)
    assert given(world, taking) == CONCURRENT


def test_without_a_producer_id_all_wait_for_the_next_block():
    world = World()
    world.ids = iter(())
    first, second = beginning(world), beginning(world, name="y")
    world.tick(PATIENCE_MS)
    assert not world.answers
    world.ids = iter((7,))
    world.carry_out(world.shard.ids_came(world.now))
    assert given(world, first) == (7, 0) and not world.answers
    world.tick(ID_PATIENCE_MS - PATIENCE_MS)
    assert given(world, second) == errors.COORDINATOR_LOAD_IN_PROGRESS
    world.ids = iter((8,))
    world.carry_out(world.shard.ids_came(world.now))
    assert not world.answers and not any(world.shard.state.waiting.values())


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_abort_of_the_next_transaction_waits_for_the_markers_of_the_one_before(partitions):
    """The client has begun it and sent nothing: its epoch is the one that the first end gave."""
    world = World()
    assert world.add(world.init(), *range(partitions), version=5) == [errors.NONE] * partitions
    assert world.end((1000, 0), version=5) == (1000, 1)
    abort, again = ending(world, (1000, 1), commit=False), ending(world, (1000, 0), commit=True)
    assert not world.answers
    world.mark()
    assert given(world, abort) == (1000, 2)
    assert given(world, again) == errors.PRODUCER_FENCED, "it came behind the abort"


def test_an_end_that_is_repeated_too_early_gets_the_answer_that_was_lost():
    world = World()
    assert world.add(world.init(), 0, version=5) == [errors.NONE]
    assert world.end((1000, 0), version=5) == (1000, 1)
    again = ending(world, (1000, 0), commit=True)
    other = ending(world, (1000, 0), commit=False)
    world.mark()
    assert given(world, again) == (1000, 1)
    assert given(world, other) == errors.INVALID_TXN_STATE


def test_an_end_whose_markers_are_late_is_told_what_kafka_tells_at_once(world):
    tokens = [ending(world, (1000, 0), commit=True, version=version) for version in (3, 5)]
    world.tick(PATIENCE_MS)
    assert codes(world, *tokens) == [CONCURRENT] * 2
