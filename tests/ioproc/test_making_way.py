"""What is far behind is fetched beside what is level, and makes way for it."""

from random import Random

import pytest
from core_world import batch
from made_up_leader import MadeUp, Poller
from pulling_world import SMALL, Follower, level, same, some, write

from appliance.base import errors
from appliance.replication.catch_up_throttle import LEAST


class Writes:
    """Whether somebody writes is what the test says; what was seen is counted."""

    def __init__(self, goes_on):
        self.count, self._goes_on = 0, goes_on

    def on_record_written(self, now_ns):
        self.count += 1

    def goes_on(self, now_ns):
        return self._goes_on


@pytest.fixture
def leader():
    one = MadeUp(Poller())
    one.most = 1000
    yield one
    one.close()


@pytest.fixture
def follower(tmp_path, leader):
    one = Follower(tmp_path, leader)
    yield one
    one.pulling.close()


def far_and_near(leader, follower, far=("far",)):
    """Partitions with much in them, and one that is level."""
    near = leader.add("near", **SMALL)
    write(near.log, batch(b"x"), epoch=0)
    mine = follower.add(near)
    follower.until(level(near, mine))
    pairs = []
    for name in far:
        led = leader.add(name, **SMALL)
        write(led.log, *some(Random(1), 60), epoch=0)
        pairs.append((led, follower.add(led)))
    follower.until(lambda: len(leader.connections) == 2)
    return near, mine, pairs


def test_a_record_for_who_is_level_does_not_wait_for_what_others_lack(leader, follower):
    near, mine, [(far, partition)] = far_and_near(leader, follower)
    leader.connections[1].paused = True
    for number in range(5):
        write(near.log, batch(b"%d" % number), epoch=0)
        follower.until(level(near, mine))
    assert not level(far, partition)()
    leader.resume()
    follower.until(level(far, partition))
    same(far, partition)


def test_who_has_caught_up_is_fetched_with_the_others(leader, follower):
    near, mine, [(far, partition)] = far_and_near(leader, follower)
    follower.until(level(far, partition))
    follower.until(lambda: len(leader.connections) == 1)
    assert not follower.pulling.behind
    for led in (near, far):
        write(led.log, batch(b"x"), epoch=0)
    follower.until(lambda: level(far, partition)() and level(near, mine)())
    assert len(leader.connections) == 1
    same(far, partition)
    same(near, mine)


def test_who_follows_somebody_else_is_fetched_in_neither_way(leader, follower):
    _, mine, [(_, partition)] = far_and_near(leader, follower)
    follower.lead(partition, 1)
    follower.until(lambda: len(leader.connections) == 1)
    assert not follower.pulling.behind and follower.pulling.leaders
    follower.lead(mine, 1)
    follower.until(lambda: not leader.connections)
    assert not follower.pulling.leaders


def test_what_comes_while_somebody_writes_is_small(leader, follower):
    follower.env.writing = Writes(True)
    _, _, [(far, partition)] = far_and_near(leader, follower)
    follower.until(level(far, partition))
    whole = follower.env.limits.max_bytes
    sizes = {question.max_bytes for question in leader.questions}
    assert whole in sizes and LEAST in sizes
    assert all(size == whole or size < whole / 8 for size in sizes)
    same(far, partition)


def test_catching_up_is_not_writing_and_all_else_is(leader, follower):
    writes = follower.env.writing = Writes(False)
    near, mine, [(far, partition)] = far_and_near(leader, follower)
    led = leader.add("led")
    here = follower.add(led)
    follower.lead(here, 1)
    follower.turn()
    assert not writes.count
    write(near.log, batch(b"to who is level"), epoch=0)
    follower.until(level(near, mine))
    assert writes.count == 1
    write(far.log, batch(b"to who is behind"), epoch=0)
    follower.until(lambda: writes.count == 2)
    leader.connections[1].paused = True
    follower.world.append(here.handle, batch(b"here"))
    follower.until(lambda: writes.count == 3)
    leader.resume()
    follower.until(level(far, partition))
    assert writes.count == 3


def test_who_is_refused_keeps_nobody_waiting(tmp_path, leader):
    one_at_once = {
        "replica.fetch.response.max.bytes": "100000",
        "replica.fetch.max.bytes": "100000",
    }
    follower = Follower(tmp_path, leader, **one_at_once)
    names = ("far", "farther", "farthest")
    _, _, pairs = far_and_near(leader, follower, names)
    for led, _ in pairs[:2]:
        led.refuses = errors.KAFKA_STORAGE_ERROR
    led, partition = pairs[2]
    follower.until(level(led, partition))
    for led, _ in pairs[:2]:
        led.refuses = 0
    for led, partition in pairs:
        follower.until(level(led, partition))
        same(led, partition)
    follower.pulling.close()
