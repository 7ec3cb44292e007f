"""Whatever comes as an answer: who asked hears of it once, and what cannot be read costs the
connection, nothing else."""

import random

import pytest

from appliance.base.errors import MalformedRequest, PeerError
from appliance.peers.conversation import Conversation
from appliance.wire import messages
from appliance.wire.messages import decode_response
from appliance.wire.request_head import response_head
from tests.peers.test_conversation import API_VERSIONS, OtherSide
from tests.wrong_answers import any_answer

ASKED = {
    1: 18, 2: 9, 16: 0, 19: 7, 24: 4, 27: 2, 32: 4, 52: 2, 53: 1, 54: 1, 55: 2, 56: 3, 58: 0,
    59: 1, 60: 0, 62: 4, 63: 2, 67: 0, 70: 0, 73: 0, 80: 1, 81: 0, 82: 0,
}  # fmt: skip
"""What nodes ask each other: API key → the highest version."""
EACH = 40


def cut(body, rng):
    return body[: rng.randrange(len(body) + 1)]


def longer(body, rng):
    return body + rng.randbytes(rng.randrange(1, 9))


def flipped(body, rng):
    data = bytearray(body)
    for _ in range(rng.randrange(1, 4)):
        if data:
            data[rng.randrange(len(data))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
            )
    return bytes(data)


def shifted(body, rng):
    at = rng.randrange(len(body) + 1)
    return body[:at] + rng.randbytes(rng.randrange(1, 5)) + body[at:]


def noise(body, rng):
    return rng.randbytes(rng.randrange(60))


def whole(body, rng):
    return body


WAYS = (cut, longer, flipped, shifted, noise, whole)


class Asker:
    """One connection, with a request of this API in flight."""

    def __init__(self, key, version, *, raw=False):
        self.talk = Conversation("node 1", "penstock")
        self.other = OtherSide(self.talk)
        self.heard = []
        self.other.open({key: (version, version), API_VERSIONS: (0, 4)})
        self.version = version
        self.talk.ask_peer(
            key, range(version, version + 1), lambda _: b"", self.heard.append, 9, raw=raw
        )
        (frame,) = self.talk.outgoing()
        self.number = int.from_bytes(frame[8:12], "big")

    def hears(self, frame, piece):
        """Whether the connection goes on."""
        try:
            self.other.put(frame, piece)
        except MalformedRequest:
            self.talk.closed("it cannot be read")
            return False
        return True


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("key", ASKED)
def test_whatever_is_answered_is_told_once(key, way):
    rng = random.Random(f"{key} {way.__name__}")
    version = ASKED[key]
    for _ in range(EACH):
        asker = Asker(key, version)
        body = way(messages.encode_response(any_answer(key, version, rng)), rng)
        frame = response_head(key, version, asker.number, len(body)) + body
        goes_on = asker.hears(frame, rng.choice((1, 7, 1 << 20)))
        (told,) = asker.heard
        assert isinstance(told, PeerError) is not goes_on
        if goes_on:
            assert told == decode_response(key, version, body)
        assert asker.talk.in_flight == asker.talk.waiting == 0


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_whatever_is_answered_to_the_first_question_is_believed_or_ends_the_connection(way):
    """Who waits behind it is asked by another connection, or hears that the API is not served."""
    rng = random.Random(way.__name__)
    for _ in range(10 * EACH):
        talk = Conversation("node 1", "penstock")
        heard, other = [], OtherSide(talk)
        talk.ask_peer(3, range(13), lambda _: b"", heard.append, 9)
        talk.opened(9)
        talk.outgoing()
        body = way(messages.encode_response(any_answer(18, 3, rng)), rng)
        try:
            other.put(response_head(18, 3, 1, len(body)) + body)
        except MalformedRequest:
            talk.closed("it cannot be read")
        talk.outgoing()
        assert len(heard) + talk.in_flight + talk.waiting == 1


@pytest.mark.parametrize("key", [1, 56])
def test_a_node_that_ends_in_the_middle_of_an_answer_tells_nothing_of_it(key):
    rng = random.Random(key)
    version = ASKED[key]
    body = messages.encode_response(any_answer(key, version, rng))
    asker = Asker(key, version)
    frame = response_head(key, version, asker.number, len(body)) + body
    for size in range(len(frame)):
        asker = Asker(key, version)
        assert asker.hears(frame[:size], 1 << 20)
        assert asker.heard == []
        asker.talk.closed("it hung up")
        assert [isinstance(one, PeerError) for one in asker.heard] == [True]
        asker.talk.opened(9)  # what came before is forgotten
        (hello,) = asker.talk.outgoing()
        assert hello[4:8] == b"\0\x12\0\x03"
