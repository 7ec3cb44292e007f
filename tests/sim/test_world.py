"""What a simulated world promises to those who tell stories in it: order, time, and that a seed is
all that it takes to see something again."""

from typing import NamedTuple

import pytest
from sim.nightly import COSTS_S
from sim.node import DEAD, OFF, Node
from sim.seeds import digests, digests_under_other_hashes
from sim.stories import STORIES
from sim.world import Broken, World


class Note(NamedTuple):
    number: int


class Peer(Node):
    """Keeps what it hears, and answers when it is told to."""

    def __init__(self, world, name):
        super().__init__(world, name)
        self.heard, self.lost_at, self.lives = [], [], 0

    def begin(self):
        self.lives += 1

    def received(self, end, message):
        self.heard.append(message.number)
        if message.number < 0:
            end.send(Note(-message.number))

    def lost(self, end):
        self.lost_at.append(round(self.world.clock.ms))


@pytest.fixture
def two():
    world = World(7, loss=0.2)
    a, b = Peer(world, "a"), Peer(world, "b")
    a.start()
    b.start()
    return world, a, b


CHEAP = [one[:2] for name, one in STORIES.items() if name not in COSTS_S]


def test_a_seed_tells_the_same_story_and_another_seed_another():
    here = digests(CHEAP, 3)
    assert digests(CHEAP, 3) == here
    assert not set(here) & set(digests(CHEAP, 4))


@pytest.mark.parametrize(
    "name",
    [one for one in STORIES if one not in COSTS_S]
    + [pytest.param(one, marks=pytest.mark.proof) for one in ("agreed", "voters")],
)
def test_a_seed_tells_the_same_story_however_strings_hash(name):
    story = [STORIES[name][:2]]
    assert digests_under_other_hashes(story, 3) == digests(story, 3)


def test_a_connection_keeps_the_order_and_two_do_not(two):
    world, a, b = two
    ends = [world.network.connect(a, "b") for _ in range(20)]
    for number in range(100):
        ends[0].send(Note(number))
    world.run(1000)
    assert b.heard == list(range(100))
    b.heard.clear()
    for number, end in enumerate(ends):
        end.send(Note(number))
    world.run(1000)
    assert sorted(b.heard) == list(range(20)) != b.heard


def test_what_is_sent_over_a_cut_link_arrives_when_it_heals_and_the_other_way_goes_on(two):
    world, a, b = two
    end = world.network.connect(a, "b")
    end.send(Note(-1))
    world.network.block("b", "a")
    world.run(100)
    assert (b.heard, a.heard) == ([-1], [])
    world.network.heal()
    world.run(100)
    assert a.heard == [1]


def test_a_process_that_dies_closes_its_connections_and_hears_nothing_old(two):
    world, a, b = two
    end = world.network.connect(a, "b")
    end.send(Note(1))
    world.run(100)
    b.away_ms = (80, 80)
    b.stop(power=False)
    assert b.state == DEAD
    world.run(60)
    assert len(a.lost_at) == 1 and not end.open
    world.run(100)
    assert b.up and b.lives == 2
    end.send(Note(2))
    world.run(100)
    assert b.heard == [1]


def test_a_machine_without_power_is_silent_until_it_is_back(two):
    world, a, b = two
    end = world.network.connect(a, "b")
    end.send(Note(1))
    world.run(100)
    b.away_ms = (200, 200)
    b.stop(power=True)
    assert b.state == OFF
    end.send(Note(2))
    world.run(150)
    assert not a.lost_at and end.open
    world.run(100)
    end.send(Note(3))
    world.run(100)
    assert b.up and b.heard == [1] and len(a.lost_at) == 1


def test_timers_end_with_the_life_that_set_them(two):
    world, a, _ = two
    called = []
    a.after(5, called.append, "old")
    world.run(1)
    a.stop(power=False)
    world.run(100)
    a.after(5, called.append, "new")
    world.run(10)
    assert called == ["new"]


class Watch(Peer):
    drifts = True


def test_each_machine_has_a_clock_of_its_own_by_which_its_timers_go():
    world = World(7)
    nodes = [Watch(world, name) for name in "abcdefgh"]
    before, rang = [node.clock.monotonic_ns() for node in nodes], {}
    for node in nodes:
        node.start()
        node.after(10_000, lambda node=node: rang.update({node: node.clock.monotonic_ns()}))
    world.run(11_000)
    for node, began in zip(nodes, before, strict=True):
        assert rang[node] - began == pytest.approx(10**10, abs=2), "its ten seconds"
    passed = [node.clock.monotonic_ns() - began for node, began in zip(nodes, before, strict=True)]
    assert len(set(passed)) == len(nodes) and min(passed) < 11 * 10**9 < max(passed)
    days = [node.clock.wall_ms() - world.clock.wall_ms() for node in nodes]
    assert min(days) < -60_000 and max(days) > 60_000


def test_a_power_cut_in_a_step_of_the_disk_ends_that_node_alone(two):
    world, a, b = two
    a.doom(power=True, steps=2)
    for name in ("x", "y", "z"):
        a.after(1, a.disk.mkdir, f"/{name}")
    world.run(5)
    assert (a.state, b.up) == (OFF, True)
    assert set(a.disk.listdir("/")) <= {"x", "y"}


def test_what_breaks_is_told_with_the_seed_and_the_end_of_the_trace(two):
    world, a, _ = two
    world.say("a", "the last thing")
    world.invariants.append(lambda: check(a.up))
    world.after(1, lambda: a.stop(power=False))
    with pytest.raises(Broken, match=r"a must live[^$]*SIM_SEED=7[^$]*the last thing"):
        world.run(2)


def check(holds):
    assert holds, "a must live"
