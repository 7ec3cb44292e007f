"""A node that is cut off tells clients to look elsewhere, instead of letting them wait."""

import pytest
from core_world import World, batch
from test_replicas import D3, fetch, leads, told

from appliance.base import errors
from appliance.ioproc.lifecycle.isolation import IsolationCheck
from appliance.replication.isolation import Isolation
from appliance.ring.messages import FOUND, NEWS, READ, READ_WAIT, WATCH, WATCH_VISIBLE, Message
from appliance.ring.process_table import IOPROC, Peer

LEASE_MS, FETCH_MS = 3000, 1500


class Said:
    def __init__(self):
        self.events = []

    def event(self, level, name, **fields):
        self.events.append(name)


class Story:
    """answered_ms: as control says it."""

    def __init__(self, path):
        self.world = World(path)
        self.world.cluster.epochs = {1: 11, 2: 12, 3: 13}
        self.said, self.answered_ms, self.now_ms = Said(), 1, 1
        isolation = Isolation(LEASE_MS, FETCH_MS)
        self.isolating = IsolationCheck(
            isolation, self.world.core, self, Peer(IOPROC, 0), self.said
        )

    def set_isolated(self, me, since_ms):
        self.published = since_ms

    def passes(self, ms):
        """Looks, one each 100 ms. Returns what was answered meanwhile."""
        got = []
        for _ in range(0, ms, 100):
            self.now_ms += 100
            self.isolating.tick(self.now_ms * 1_000_000)
            got += self.world.turn(100)
        return got


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path)


def read(world, p, offset, wait=1, token=5):
    message = Message(READ, READ_WAIT, p.handle, token, offset, *([-1] * 7), 1 << 20, wait)
    world.arrivals.handle(world.core.askers[0], [message], world.now_ms)
    return told(world.turn(), FOUND)


def test_what_waits_is_told_to_ask_elsewhere_and_what_comes_too(story):
    world = story.world
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert told(story.passes(LEASE_MS - 200)) == {}
    assert told(story.passes(300)) == {1: errors.NOT_LEADER_OR_FOLLOWER}
    assert story.said.events == ["isolated"] and story.published
    for acks, token in ((-1, 2), (1, 3)):
        world.append(p.handle, batch(b"b"), acks=acks, token=token)
    assert told(world.turn()) == dict.fromkeys((2, 3), errors.NOT_LEADER_OR_FOLLOWER)
    assert p.log.end_offset == 1, "what is refused is not there"


def test_while_replicas_fetch_it_is_served_without_a_controller(story):
    world = story.world
    p = world.add(role=leads(), **D3)
    for _ in range(10):
        fetch(world, p, 2, 0)
        assert story.passes(1000) is not None
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    for one in (2, 3):
        fetch(world, p, one, 1)
    assert told(story.passes(100)) == {1: errors.NONE}
    assert story.said.events == []


def test_while_the_controller_answers_it_decides(story):
    world = story.world
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    for _ in range(20):
        story.answered_ms = story.now_ms
        assert told(story.passes(1000)) == {}


def test_who_is_heard_again_serves_again(story):
    world = story.world
    p = world.add(role=leads(), **D3)
    story.passes(LEASE_MS + 200)
    fetch(world, p, 2, 0)
    story.passes(100)
    assert story.said.events == ["isolated", "isolated-no-more"] and not story.published
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    for one in (2, 3):
        fetch(world, p, one, 1)
    assert told(world.turn()) == {1: errors.NONE}


@pytest.mark.parametrize("role", [leads(isr=(), replicas=()), leads(isr=())])
def test_what_nobody_else_could_lead_is_served(story, role):
    world = story.world
    p = world.add(role=role)
    story.passes(LEASE_MS + 200)
    world.append(p.handle, batch(b"a"), acks=1, token=1)
    assert told(story.passes(200)) == {1: errors.NONE}
    assert story.world.served.isolated and story.said.events == []


def test_readers_get_what_is_there_and_are_sent_on_from_the_end(story):
    world = story.world
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1, token=1)
    world.turn()
    for one in (2, 3):
        fetch(world, p, one, 1)
    story.passes(LEASE_MS + 200)
    assert read(world, p, 0) == {5: errors.NONE}
    assert read(world, p, 0, wait=10_000) == {}, "there is something, if not enough"
    assert read(world, p, 1) == {5: errors.NOT_LEADER_OR_FOLLOWER}


def test_nobody_watches_many_partitions_there(story):
    world = story.world
    p = world.add(role=leads(), **D3)
    story.passes(LEASE_MS + 200)
    row = (p.handle << 32).to_bytes(8, "little")
    message = Message(WATCH, WATCH_VISIBLE, 0, 7, *([0] * 10), row)
    world.arrivals.handle(world.core.askers[0], [message], world.now_ms)
    code = errors.THROTTLING_QUOTA_EXCEEDED
    assert told(world.turn(), NEWS) == {7: code}
