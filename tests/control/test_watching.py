"""Whether a broker is there, by what becomes of connections."""

from types import SimpleNamespace

import pytest

from appliance.base.errors import NETWORK_EXCEPTION, REQUEST_TIMED_OUT, PeerError
from appliance.control.broker.watching import Watching
from appliance.metadata.parts import BrokerImage

REFUSED = PeerError(NETWORK_EXCEPTION, "ECONNREFUSED")


class Link:
    """connected: what the test says. asked: who waits for an answer."""

    def __init__(self, broker):
        self.broker, self.connected, self.closed, self.asked = broker, False, False, []

    def ask(self, api_key, version, message, done, timeout_ms):
        self.asked.append(done)

    def turn(self):
        return 100

    def close(self):
        self.closed = True
        while self.asked:
            self.asked.pop(0)(REFUSED)

    def answer(self, answer):
        self.connected = not isinstance(answer, PeerError)
        self.asked.pop(0)(answer)


class World:
    def __init__(self):
        self.links, self.gone = {}, []
        self.watching = Watching(1, self.connect, self.gone.append)

    def connect(self, broker):
        self.links[broker.broker_id] = Link(broker)
        return self.links[broker.broker_id]

    def follow(self, *brokers):
        self.watching.follow({one.broker_id: one for one in brokers})
        self.watching.turn()


def broker(number, epoch=10, fenced=False):
    return BrokerImage(
        broker_id=number, incarnation_id=bytes(16), epoch=epoch, endpoints=(), fenced=fenced
    )


@pytest.fixture
def world():
    return World()


def test_every_other_broker_that_is_unfenced_is_watched(world):
    world.follow(broker(1), broker(2), broker(3, fenced=True))
    assert list(world.links) == [2]
    world.follow(broker(2, fenced=True), broker(3))
    assert world.links[2].closed and list(world.links) == [2, 3]
    assert world.gone == [], "that it is not watched any more says nothing"


def test_a_connection_that_is_closed_and_refused_says_that_it_is_gone(world):
    world.follow(broker(2))
    link = world.links[2]
    link.answer(SimpleNamespace())
    world.watching.turn()
    assert not link.asked, "an idle connection"
    link.connected = False
    world.watching.turn()
    assert world.gone == []
    link.answer(REFUSED)
    assert world.gone == [2]
    world.watching.turn()
    assert not link.asked, "it is told once"


def test_one_process_of_it_may_die(world):
    world.follow(broker(2))
    link = world.links[2]
    for _ in range(3):
        link.answer(SimpleNamespace())
        link.connected = False
        world.watching.turn()
    assert world.gone == []


def test_a_new_controller_learns_of_who_is_not_there(world):
    world.follow(broker(2))
    world.links[2].answer(REFUSED)
    assert world.gone == [2]
    world.follow(broker(2, epoch=20))
    assert world.links[2].asked, "another start of it"


def test_who_has_never_been_there_is_not_gone(world):
    """Apache Kafka's brokers are unfenced before they take connections."""
    world.follow()
    world.follow(broker(2))
    link = world.links[2]
    link.answer(REFUSED)
    world.watching.turn()
    assert world.gone == [] and link.asked
    link.answer(SimpleNamespace())
    link.connected = False
    world.watching.turn()
    link.answer(REFUSED)
    assert world.gone == [2]


def test_who_is_heard_of_although_nobody_can_connect_is_not_told_to_be_gone_again(world):
    world.follow(broker(2))
    world.links[2].answer(REFUSED)
    world.follow(broker(2, fenced=True))
    world.follow(broker(2))
    assert not world.links[2].asked
    assert world.gone == [2]


def test_silence_is_no_evidence(world):
    world.follow(broker(2))
    world.links[2].answer(PeerError(REQUEST_TIMED_OUT, ""))
    assert world.gone == []
    world.watching.turn()
    assert world.links[2].asked
