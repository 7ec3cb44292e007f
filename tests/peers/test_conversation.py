"""A conversation with another node, by bytes."""

from struct import pack, unpack_from

import pytest

from appliance.base.errors import (
    CORRUPT_MESSAGE,
    NETWORK_EXCEPTION,
    REQUEST_TIMED_OUT,
    UNSUPPORTED_VERSION,
    MalformedRequest,
    PeerError,
)
from appliance.peers.conversation import NEVER, Conversation, Undecoded
from appliance.wire import messages
from appliance.wire.build import response
from appliance.wire.request_head import parse, response_head

METADATA, API_VERSIONS, FETCH = 3, 18, 1
SERVED = {METADATA: (0, 12), FETCH: (4, 13), API_VERSIONS: (0, 4)}
METADATA_ASK = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
    "include_cluster_authorized_operations": False,
}


class OtherSide:
    """Reads requests and writes answers by the server's own functions."""

    def __init__(self, talk):
        self.talk = talk
        self.heads = []

    def take(self):
        """The requests that were sent since: (api key, version, correlation id, client id)."""
        taken = []
        for frame in self.talk.outgoing():
            (length,) = unpack_from(">i", frame)
            assert length == len(frame) - 4
            key, version, number, client_id, at = parse(memoryview(frame), 4, len(frame))
            messages.decode_request(key, version, frame[at:])
            taken.append((key, version, number, client_id))
        return taken

    def put(self, data, piece=1 << 20):
        """Bytes arrive, so many at a time."""
        data = memoryview(data)
        while data:
            room = self.talk.room()
            count = min(piece, len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.talk.received(count)

    def answer(self, head, values, piece=1 << 20):
        key, version, number, _ = head
        body = messages.encode_response(response(key, version, values))
        self.put(response_head(key, version, number, len(body)) + body, piece)

    def open(self, served=SERVED):
        self.talk.opened(1000)
        (head,) = self.take()
        assert head[:2] == (API_VERSIONS, 3)
        keys = [
            {"api_key": key, "min_version": low, "max_version": high}
            for key, (low, high) in served.items()
        ]
        self.answer(head, {"error_code": 0, "api_keys": keys, "throttle_time": 0})


@pytest.fixture
def talk():
    return Conversation("node 1", "penstock")


@pytest.fixture
def other(talk):
    return OtherSide(talk)


def ask(talk, heard, key=METADATA, versions=None, body=None, until_ms=100, *, raw=False):
    versions = versions or range(13)
    talk.ask_peer(key, versions, body or METADATA_ASK, heard.append, until_ms, raw=raw)


def metadata(controller=1):
    return {
        "throttle_time": 0,
        "brokers": [],
        "cluster_id": "c",
        "controller_id": controller,
        "topics": [],
    }


def test_nothing_is_sent_before_the_versions_are_known_and_the_highest_common_one_is_used(
    talk, other
):
    heard = []
    ask(talk, heard, versions=range(14))
    talk.opened(1000)
    (versions,) = other.take()
    assert versions == (API_VERSIONS, 3, 1, b"node 1")
    keys = [{"api_key": METADATA, "min_version": 1, "max_version": 9}]
    other.answer(versions, {"error_code": 0, "api_keys": keys, "throttle_time": 0})
    (head,) = other.take()
    assert head[:2] == (METADATA, 9)
    other.answer(head, metadata(7))
    assert [answer.controller_id for answer in heard] == [7]
    assert (talk.waiting, talk.in_flight) == (0, 0)


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_answers_come_to_who_asked_however_the_bytes_are_cut(talk, other, piece):
    heard = []
    other.open()
    for version in (1, 8, 12):
        ask(talk, heard, versions=range(version, version + 1))
    for number, head in enumerate(other.take()):
        other.answer(head, metadata(number), piece)
    assert [type(answer) for answer in heard] == [
        messages.response_type(METADATA, version) for version in (1, 8, 12)
    ]


def test_no_more_are_in_flight_than_allowed(talk, other):
    heard = []
    other.open()
    for _ in range(7):
        ask(talk, heard)
    heads = other.take()
    assert (len(heads), talk.in_flight, talk.waiting) == (5, 5, 2)
    other.answer(heads[0], metadata())
    assert len(other.take()) == 1


def test_a_version_that_the_other_side_lacks_is_refused_here(talk, other):
    heard = []
    other.open({METADATA: (5, 8), API_VERSIONS: (0, 4)})
    ask(talk, heard, versions=range(5))
    ask(talk, heard, versions=range(9, 13))
    ask(talk, heard, key=52, versions=range(3), body={})
    assert other.take() == []
    assert [error.code for error in heard] == [UNSUPPORTED_VERSION] * 3


def test_a_closed_connection_is_told_to_all_that_wait_and_forgotten(talk, other):
    heard = []
    other.open()
    for _ in range(6):
        ask(talk, heard)
    other.take()
    talk.closed("node 2: it was closed")
    assert [error.code for error in heard] == [NETWORK_EXCEPTION] * 6
    assert "node 2" in str(heard[0])
    other.open()
    ask(talk, heard)
    (head,) = other.take()
    other.answer(head, metadata())
    assert not isinstance(heard[-1], PeerError)


def test_what_is_late_ends_the_connection_only_when_it_was_sent(talk, other):
    heard = []
    ask(talk, heard, until_ms=50)
    assert talk.deadline_ms == 50
    assert not talk.expire(49)
    assert not talk.expire(50), "it was not sent"
    assert [error.code for error in heard] == [REQUEST_TIMED_OUT]
    assert talk.deadline_ms == NEVER
    other.open()
    ask(talk, heard, until_ms=80)
    ask(talk, heard, until_ms=200)
    other.take()
    assert talk.expire(80)
    talk.closed("late")
    assert [error.code for error in heard[1:]] == [REQUEST_TIMED_OUT, NETWORK_EXCEPTION]


def test_who_hears_an_answer_may_ask_again_and_may_end_the_connection(talk, other):
    heard = []

    def again(answer):
        heard.append(answer)
        ask(talk, heard)

    def enough(answer):
        heard.append(answer)
        talk.closed("enough")

    other.open()
    talk.ask_peer(METADATA, range(13), METADATA_ASK, again, 100)
    (head,) = other.take()
    other.answer(head, metadata())
    (head,) = other.take()
    other.answer(head, metadata())
    assert len(heard) == 2
    talk.ask_peer(METADATA, range(13), METADATA_ASK, enough, 100)
    ask(talk, heard)
    first, second = other.take()
    bodies = [messages.encode_response(response(METADATA, 12, metadata()))] * 2
    frames = [
        response_head(METADATA, 12, head[2], len(body)) + body
        for head, body in zip((first, second), bodies, strict=True)
    ]
    other.put(b"".join(frames))
    assert isinstance(heard[-1], PeerError), "what came behind the end of the connection is nothing"
    assert len(heard) == 4


def test_an_answer_may_stay_undecoded_where_it_was_received(talk, other):
    heard = []
    other.open()
    ask(talk, heard, key=FETCH, versions=range(4, 12), body=fetch_body, raw=True)
    (head,) = other.take()
    records = bytes(range(256)) * 1000  # larger than the first buffer
    frame = response_head(FETCH, head[1], head[2], len(records)) + records
    other.put(frame, 5000)
    (answer,) = heard
    assert isinstance(answer, Undecoded)
    assert (answer.version, bytes(answer.body)) == (11, records)


def fetch_body(version):
    """A fetch of nothing in the versions from 7 to 11."""
    assert version == 11
    return pack(">iiiibiiiih", -1, 0, 0, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "data", [pack(">i", -1), pack(">i", 3), pack(">i", 1 << 30), pack(">ii", 4, 77)]
)
def test_what_is_no_answer_is_refused(talk, other, data):
    other.open()
    ask(talk, [])
    other.take()
    with pytest.raises(MalformedRequest):
        other.put(data)


def test_an_answer_that_cannot_be_read_is_told_to_who_asked(talk, other):
    heard = []
    other.open()
    ask(talk, heard)
    (head,) = other.take()
    with pytest.raises(MalformedRequest):
        other.put(response_head(METADATA, head[1], head[2], 3) + b"abc")
    assert [error.code for error in heard] == [CORRUPT_MESSAGE]


def test_who_hears_little_keeps_little_and_who_heard_much_reads_much_at_once(talk, other):
    heard = []
    other.open()
    for _ in range(50):
        ask(talk, heard)
        other.answer(other.take()[0], metadata())
    assert len(talk.room()) <= 4096, "a node has half a dozen of such links"
    ask(talk, heard)
    other.answer(other.take()[0], metadata() | {"cluster_id": "c" * 9000})
    assert len(heard[-1].cluster_id) == 9000
    assert len(talk.room()) >= 1 << 16


def test_it_knows_whether_anything_is_to_be_said_or_heard(talk, other):
    heard = []
    assert talk.quiet and not talk.speaks
    ask(talk, heard)
    assert talk.speaks and not talk.quiet, "it waits for the versions"
    other.open()
    (head,) = other.take()
    assert not (talk.speaks or talk.quiet), "it waits for the answer"
    other.answer(head, metadata())
    assert talk.quiet and not talk.speaks
