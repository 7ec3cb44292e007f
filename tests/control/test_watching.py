"""Whether a broker is there, by what becomes of connections."""

from types import SimpleNamespace

import pytest

from appliance.base.errors import NETWORK_EXCEPTION, REQUEST_TIMED_OUT, PeerError, Refused
from appliance.control.broker.broker_liveness import BrokerLiveness
from appliance.metadata.parts import BrokerImage
from appliance.peers.conversation import NEVER

REFUSED = Refused(NETWORK_EXCEPTION, "ECONNREFUSED")
NOT_MADE = PeerError(NETWORK_EXCEPTION, "no connection in time")
SILENCE_MS, TWICE_MS = 2500, 50
THERE = SimpleNamespace()


class Link:
    """connected: what the test says. asked: who waits for an answer."""

    def __init__(self, broker):
        self.broker, self.connected, self.closed, self.asked = broker, False, False, []

    def ask_peer(self, api_key, version, message, done, timeout_ms):
        self.asked.append(done)

    def run_once(self):
        return NEVER

    def close(self):
        self.closed = True
        while self.asked:
            self.asked.pop(0)(REFUSED)

    def answer(self, answer):
        self.connected = not isinstance(answer, PeerError)
        self.asked.pop(0)(answer)


class World:
    def __init__(self):
        self.links, self.gone, self.silent = {}, [], []
        self.now, self.beats = 0, {}
        self.watching = BrokerLiveness(
            1, self.connect, self.gone.append, self.silent.append, SILENCE_MS
        )

    def connect(self, broker):
        self.links[broker.broker_id] = Link(broker)
        return self.links[broker.broker_id]

    def follow(self, *brokers):
        self.watching.follow({one.broker_id: one for one in brokers})
        self.turn()

    def turn(self):
        """A look. Returns when it wants to look again."""
        return self.now + self.watching.check_brokers(self.now, lambda one: self.beats.get(one, 0))

    def at(self, ms):
        """Every look that it wants until then."""
        while (due := self.turn()) < ms:
            self.now = max(due, self.now + 1)
        self.now = ms
        self.turn()


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
    world.turn()
    assert not link.asked, "an idle connection"
    link.connected = False
    world.turn()
    assert world.gone == []
    link.answer(REFUSED)
    assert world.gone == [2]
    world.turn()
    assert not link.asked, "it is told once"


def test_a_connection_that_is_not_made_says_nothing(world):
    """A firewall is between us: it beats."""
    link = answered(world)
    link.connected = False
    for ms in range(1000, 30_000, 1000):
        world.at(ms)
        world.beats[2] = ms
        if link.asked:
            link.answer(NOT_MADE)
    assert world.gone == world.silent == []
    world.turn()
    link.answer(REFUSED)
    assert world.gone == [2]


def test_one_process_of_it_may_die(world):
    world.follow(broker(2))
    link = world.links[2]
    for _ in range(3):
        link.answer(SimpleNamespace())
        link.connected = False
        world.turn()
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
    world.turn()
    assert world.gone == [] and link.asked
    link.answer(SimpleNamespace())
    link.connected = False
    world.turn()
    link.answer(REFUSED)
    assert world.gone == [2]


def test_who_is_heard_of_although_nobody_can_connect_is_not_told_to_be_gone_again(world):
    world.follow(broker(2))
    world.links[2].answer(REFUSED)
    world.follow(broker(2, fenced=True))
    world.follow(broker(2))
    assert not world.links[2].asked
    assert world.gone == [2]


def test_an_answer_that_takes_too_long_is_asked_for_again(world):
    world.follow(broker(2))
    world.links[2].answer(PeerError(REQUEST_TIMED_OUT, ""))
    assert world.gone == []
    world.turn()
    assert world.links[2].asked


def answered(world, ms=0):
    """Broker 2, which has answered at this time. Returns the connection."""
    world.now = ms
    world.follow(broker(2))
    world.links[2].answer(THERE)
    world.turn()
    return world.links[2]


def test_who_neither_beats_nor_answers_is_silent(world):
    link = answered(world)
    world.at(999)
    assert not link.asked
    world.at(SILENCE_MS)
    assert len(link.asked) == 1 and world.silent == []
    world.at(SILENCE_MS + TWICE_MS)
    assert world.silent == [2]
    world.at(3 * SILENCE_MS)
    assert world.silent == [2], "it is told once"


def test_who_answers_is_not_silent_however_late_its_heartbeats_are(world):
    link = answered(world)
    for ms in range(1000, 30_000, 1000):
        world.at(ms)
        link.answer(THERE)
    assert world.silent == []
    world.at(31_000)
    world.at(29_000 + SILENCE_MS + TWICE_MS)
    assert world.silent == [2], "since its last answer"


def test_who_beats_is_not_silent_although_it_answers_nothing(world):
    """Its network process hangs, or a firewall is between it and us."""
    link = answered(world)
    for ms in range(2000, 30_000, 2000):
        world.at(ms)
        world.beats[2] = ms
    assert link.asked and world.silent == []


def test_who_is_heard_after_it_was_silent_may_be_silent_again(world):
    answered(world)
    world.at(SILENCE_MS + TWICE_MS)
    world.beats[2] = world.now
    world.at(2 * (SILENCE_MS + TWICE_MS))
    assert world.silent == [2, 2]


def test_who_never_answered_here_is_not_silent_unless_others_heard_it(world):
    world.follow(broker(2), broker(3))
    world.watching.suspect(3)
    world.watching.suspect(4)
    world.at(10 * SILENCE_MS)
    assert world.silent == [3]


def test_who_led_until_it_was_silent_has_little_time(world):
    """The quorum has waited for it already."""
    world.now = 10_000
    world.beats[2] = world.now - 2000
    world.follow(broker(2))
    world.watching.suspect(2)
    world.at(10_499)
    assert world.silent == []
    world.at(10_500 + TWICE_MS)
    assert world.silent == [2]


def test_what_lies_there_unread_counts(world):
    """A turn that comes a little late sees time before what was said in it."""
    answered(world)
    world.at(SILENCE_MS - 10)
    world.now = SILENCE_MS + 100
    world.turn()
    world.beats[2] = world.now
    world.at(2 * SILENCE_MS)
    assert world.silent == []


def test_a_controller_that_did_not_run_has_not_listened(world):
    link = answered(world)
    world.at(1000)
    assert link.asked
    world.now = 60_000
    world.turn()
    assert world.silent == [], "its answer may lie there unread"
    link.answer(THERE)
    world.at(62_000)
    assert world.silent == []
    world.at(60_000 + SILENCE_MS + TWICE_MS)
    assert world.silent == [2]


def test_a_connection_that_is_lost_while_it_is_asked_is_a_question_again(world):
    """Its network process died."""
    link = answered(world)
    world.at(1000)
    link.connected = False
    link.asked.pop(0)(REFUSED)
    assert world.gone == []
    world.turn()
    link.asked.pop(0)(REFUSED)
    assert world.gone == [2]
