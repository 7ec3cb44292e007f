"""A link that logs in before it asks: with the right password it is served, a refusal is told with
its reason, and a login that ends is renewed between two requests."""

import time

import pytest
from peers.other_side import ASK, METADATA, OtherSide, metadata, server, turns

from appliance.authentication import plain
from appliance.authentication.client_login import NodeCredentials
from appliance.authentication.mechanisms import BY_NAME, PLAIN
from appliance.authentication.refused import LoginRefused
from appliance.authentication.scram import ScramServer, made, parse_first
from appliance.base.clock import OsClock
from appliance.base.errors import NETWORK_EXCEPTION, PeerError
from appliance.peers.carrier import plain as in_the_clear
from appliance.peers.link import Link
from appliance.peers.login import LoginCarrier
from appliance.wire.messages import decode_request

__all__ = ["server", "turns"]
PASSWORD = "tops3cret"
FAILED, UNSUPPORTED = 58, 33


class Ahead(OsClock):
    """A clock that a test puts forward."""

    ahead_ns = 0

    def monotonic_ns(self):
        return time.monotonic_ns() + self.ahead_ns


class Guarded(OtherSide):
    """The other side with a login. lifetime_ms: that it allows; split: it answers byte by byte."""

    offered = (PLAIN, *BY_NAME)
    lifetime_ms = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def take_body(self):
        length = int.from_bytes(self._read(4))
        frame = self._read(length)
        key, version, number = (int.from_bytes(frame[a:b]) for a, b in ((0, 2), (2, 4), (4, 8)))
        name = int.from_bytes(frame[8:10])
        return (key, version, number), decode_request(key, version, frame[10 + name :])

    def let_in(self):
        head, asked = self.take_body()
        known = asked.mechanism in self.offered
        values = {"error_code": 0 if known else UNSUPPORTED, "mechanisms": list(self.offered)}
        self.answer(head, values)
        if known:
            self._plain() if asked.mechanism == PLAIN else self._scram(BY_NAME[asked.mechanism])

    def _plain(self):
        head, asked = self.take_body()
        claim = plain.parse(asked.auth_bytes)
        self._told(head, b"" if claim.password == PASSWORD else None)

    def _scram(self, scram):
        head, asked = self.take_body()
        first = parse_first(asked.auth_bytes)
        talk = ScramServer(scram, first, made(scram, PASSWORD, b"s", 4096), True, "theirs")
        self._told(head, talk.challenge())
        head, asked = self.take_body()
        try:
            self._told(head, talk.finish(asked.auth_bytes))
        except LoginRefused:
            self._told(head, None)

    def _told(self, head, message):
        refused = message is None
        self.answer(head, {
            "error_code": FAILED if refused else 0, "error_message": "No!" if refused else None,
            "auth_bytes": message or b"", "session_lifetime": self.lifetime_ms,
        })  # fmt: skip

    def serve(self, requests):
        self.greet()
        for _ in range(requests):
            self.answer(self.take(), metadata())
        assert self.sock.recv(1) == b"", "the link closes it"


def link_to(turns, server, mechanism, failures, password=PASSWORD, clock=None):
    known = NodeCredentials(mechanism, "node", password)
    port = server.getsockname()[1]
    return Link(
        2, "127.0.0.1", port, turns, clock or OsClock(), "node 1",
        carry=lambda sock, host: LoginCarrier(
            in_the_clear(sock, host), known, "penstock-1", failures.append
        ),
    )  # fmt: skip


@pytest.mark.parametrize("mechanism", [PLAIN, *BY_NAME])
def test_who_knows_the_password_is_served(turns, server, beside, mechanism):
    def other():
        with Guarded(server) as side:
            side.let_in()
            side.serve(2)

    beside(other)
    heard, failures = [], []
    link = link_to(turns, server, mechanism, failures)
    for _ in range(2):
        link.ask_peer(METADATA, 12, ASK, heard.append, 60_000)
    turns.until(link, lambda: len(heard) == 2)
    assert [one.controller_id for one in heard] == [2, 2] and not failures
    link.close()
    assert turns.watched == 0


@pytest.mark.parametrize("mechanism", [PLAIN, *BY_NAME])
def test_a_wrong_password_is_told_with_its_reason(turns, server, beside, mechanism):
    def other():
        with Guarded(server) as side:
            side.let_in()

    beside(other)
    heard, failures = [], []
    link = link_to(turns, server, mechanism, failures, password="wr0ng-secret")
    link.ask_peer(METADATA, 12, ASK, heard.append, 60_000)
    turns.until(link, lambda: heard)
    assert isinstance(heard[0], PeerError) and heard[0].code == NETWORK_EXCEPTION
    assert "the login of this node is refused: user node: No!" in heard[0].message
    assert failures == ["user node: No!"]
    assert "wr0ng" not in str(heard[0])


def test_a_mechanism_that_is_not_offered_is_named(turns, server, beside):
    def other():
        with Guarded(server) as side:
            side.offered = (PLAIN,)
            side.let_in()

    beside(other)
    heard, failures = [], []
    link = link_to(turns, server, "SCRAM-SHA-512", failures)
    link.ask_peer(METADATA, 12, ASK, heard.append, 60_000)
    turns.until(link, lambda: heard)
    assert failures == ["mechanism SCRAM-SHA-512 is not offered there: PLAIN"]


@pytest.mark.parametrize(
    "garbage",
    [b"\x00\x00\x00\x04aaaa", b"\x7f\xff\xff\xffaaaa", b"\x00\x00\x00\x00", b"GET / HTTP"],
)
def test_who_answers_as_no_broker_does_is_none(turns, server, beside, garbage):
    def other():
        side = OtherSide(server)
        side.take()
        side.sock.sendall(garbage)
        side.sock.close()

    beside(other)
    heard = []
    link = link_to(turns, server, PLAIN, [])
    link.ask_peer(METADATA, 12, ASK, heard.append, 60_000)
    turns.until(link, lambda: heard)
    assert isinstance(heard[0], PeerError) and not link.connected


def test_a_login_that_ends_is_renewed_between_two_requests(turns, server, beside):
    """Who waits is served by the new connection, and hears of no error."""
    clock, logins = Ahead(), []

    def other():
        for count in (2, 1):
            with Guarded(server) as side:
                side.lifetime_ms = 100_000
                side.let_in()
                logins.append(count)
                side.serve(count)

    beside(other)
    heard, failures = [], []
    link = link_to(turns, server, "SCRAM-SHA-256", failures, clock=clock)
    for ahead_s in (0, 80, 90):
        clock.ahead_ns = ahead_s * 1_000_000_000
        link.ask_peer(METADATA, 12, ASK, heard.append, 600_000)
        due = len(heard) + 1
        turns.until(link, lambda due=due: len(heard) == due)
    assert [one.controller_id for one in heard] == [2, 2, 2]
    assert logins == [2, 1] and not failures
    link.close()
