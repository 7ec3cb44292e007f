"""A link's socket over loopback, and against a real appliance."""

import socket
import time

from peers.other_side import ASK, METADATA, greeted, metadata, server, turns

from appliance.base.clock import OsClock
from appliance.base.errors import NETWORK_EXCEPTION, REQUEST_TIMED_OUT, PeerError, Refused
from appliance.peers.conversation import NEVER, Undecoded
from appliance.peers.link import Link
from appliance.wire import messages
from appliance.wire.request_head import parse
from benchmarks.kafka import free_port

__all__ = ["server", "turns"]


class Ahead(OsClock):
    """A clock that a test puts forward."""

    def __init__(self):
        self.ahead_ns = 0

    def monotonic_ns(self):
        return time.monotonic_ns() + self.ahead_ns


class Counting(OsClock):
    """A clock that knows how often somebody looked at it."""

    def __init__(self):
        self.looked = 0

    def monotonic_ns(self):
        self.looked += 1
        return time.monotonic_ns()


def link_to(turns, port, host="127.0.0.1", clock=None):
    return Link(2, host, port, turns, clock or OsClock(), "node 1")


def connected(turns, link, server, heard):
    """The link has asked, and the other side has greeted it and has the request."""
    link.ask_peer(METADATA, 12, ASK, heard.append, 10_000)
    link.run_once()
    return greeted(turns, link, server, lambda: link)


def test_asks_of_a_real_appliance(turns, appliance):
    host, _, port = appliance.bootstrap.rpartition(":")
    link = link_to(turns, int(port), "localhost" if host == "127.0.0.1" else host)
    heard = []
    link.ask_peer(
        18, 4, {"client_software_name": "x", "client_software_version": "1"}, heard.append, 9000
    )
    link.ask_peer(METADATA, 13, ASK, heard.append, 9000)
    link.ask_raw(METADATA, 12, ASK, heard.append, 9000)
    turns.until(link, lambda: len(heard) == 3)
    versions, metadata, raw = heard
    assert {one.api_key for one in versions.api_keys} > {0, 1, 3}
    assert [broker.port for broker in metadata.brokers] == [int(port)]
    assert isinstance(raw, Undecoded)
    again = messages.decode_response(METADATA, raw.version, raw.body)
    assert again.cluster_id == metadata.cluster_id
    assert link.idle
    link.close()
    assert turns.watched == 0
    link.ask_peer(METADATA, 13, ASK, heard.append, 9000)
    turns.until(link, lambda: len(heard) == 4)
    assert heard[3].cluster_id == metadata.cluster_id, "a link that was closed may be asked again"
    link.close()


def test_nobody_listens(turns):
    link = link_to(turns, free_port())
    heard = []
    for _ in range(3):
        link.ask_peer(METADATA, 12, ASK, heard.append, 10_000)
        before = len(heard)
        turns.until(link, lambda: len(heard) > before)  # noqa: B023
    assert [error.code for error in heard] == [NETWORK_EXCEPTION] * 3
    assert turns.watched == 0
    assert all(isinstance(error, Refused) for error in heard), "the host says so"


def test_a_connection_that_is_not_made_in_time_is_not_refused(turns):
    """As behind a firewall: the queue of who listens is full, so what is sent is dropped."""
    clock = Ahead()
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first:
        first.connect(server.getsockname())
        link = link_to(turns, server.getsockname()[1], clock=clock)
        heard = []
        link.ask_peer(METADATA, 12, ASK, heard.append, 600_000)
        link.run_once()
        clock.ahead_ns = 60_000_000_000
        turns.until(link, lambda: heard)
        assert [error.code for error in heard] == [NETWORK_EXCEPTION]
        assert not isinstance(heard[0], Refused)


def test_a_turn_without_anything_to_say_or_hear_asks_nothing_of_the_system(turns, server):
    clock, heard = Counting(), []
    link = link_to(turns, server.getsockname()[1], clock=clock)
    assert link.run_once() == NEVER
    there = connected(turns, link, server, heard)
    there.answer(there.take(), metadata())
    turns.until(link, lambda: heard)
    looked = clock.looked
    assert [link.run_once() for _ in range(5)] == [NEVER] * 5
    assert clock.looked == looked
    link.close()
    there.sock.close()


def test_it_pauses_between_tries_and_longer_each_time(turns):
    link = link_to(turns, free_port())
    heard, waits = [], []
    for number in range(3):
        link.ask_peer(METADATA, 12, ASK, heard.append, 10_000)
        waits.append(link.run_once())
        turns.until(link, lambda: len(heard) > number)  # noqa: B023
    assert waits[1] > 0 and waits[2] > waits[1]


def test_it_pauses_longer_each_time_where_nothing_but_versions_is_answered(turns, server):
    link = link_to(turns, server.getsockname()[1], clock=(clock := Ahead()))
    heard, waits = [], []
    link.ask_peer(METADATA, 12, ASK, heard.append, 10_000)
    link.run_once()
    for number in range(4):
        greeted(turns, link, server, lambda: link).sock.close()
        turns.until(link, lambda: len(heard) > number)  # noqa: B023
        link.ask_peer(METADATA, 12, ASK, heard.append, 10_000)
        waits.append(link.run_once())
        clock.ahead_ns += 2_000_000_000
    assert 0 < waits[0] < waits[1] < waits[2] < waits[3] <= 1000
    link.close()


def test_the_next_address_of_a_name_is_tried(turns, server, monkeypatch):
    port = server.getsockname()[1]
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", free_port())),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
    ]

    def addresses(host, port, type=0, flags=0):  # noqa: A002
        if flags:
            raise socket.gaierror
        return found

    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    link = link_to(turns, port, "one.name")
    heard = []
    link.ask_peer(METADATA, 12, ASK, heard.append, 10_000)
    turns.until(link, lambda: heard)
    assert heard[0].code == NETWORK_EXCEPTION
    other = connected(turns, link, server, heard)
    other.answer(other.take(), metadata())
    turns.until(link, lambda: len(heard) == 2)
    assert heard[1].controller_id == 2
    link.close()
    other.sock.close()


def test_a_name_that_is_none_is_told(turns):
    link = link_to(turns, 9, "no.such.host.invalid")
    heard = []
    link.ask_peer(METADATA, 12, ASK, heard.append, 30_000)
    turns.until(link, lambda: heard)
    assert isinstance(heard[0], PeerError)
    assert not isinstance(heard[0], Refused)


def test_a_connection_closed_from_there_is_told_at_once_and_made_again(turns, server):
    link = link_to(turns, server.getsockname()[1])
    heard = []
    other = connected(turns, link, server, heard)
    other.take()
    other.sock.close()
    turns.until(link, lambda: heard)
    assert [error.code for error in heard] == [NETWORK_EXCEPTION]
    assert link.run_once() == NEVER, "nothing is to be done before somebody asks"
    other = connected(turns, link, server, heard)
    other.answer(other.take(), metadata())
    turns.until(link, lambda: len(heard) == 2)
    assert heard[1].controller_id == 2
    link.close()
    other.sock.close()


def test_what_is_not_answered_in_time_ends_the_connection(turns, server):
    clock = Ahead()
    link = link_to(turns, server.getsockname()[1], clock=clock)
    heard = []
    other = connected(turns, link, server, heard)
    other.take()
    link.ask_peer(METADATA, 12, ASK, heard.append, 90_000)
    link.run_once()
    clock.ahead_ns = 60_000_000_000
    turns.until(link, lambda: heard)
    assert [error.code for error in heard] == [REQUEST_TIMED_OUT, NETWORK_EXCEPTION]
    assert turns.watched == 0
    other.sock.close()


def test_a_request_larger_than_the_socket_takes_at_once_goes_out_in_pieces(turns, server):
    link = link_to(turns, server.getsockname()[1])
    heard = []
    other = connected(turns, link, server, heard)
    other.answer(other.take(), metadata())
    turns.until(link, lambda: heard)
    names = [{"name": f"{number:0200}", "topic_id": bytes(16)} for number in range(30_000)]
    link.ask_peer(METADATA, 12, {**ASK, "topics": names}, heard.append, 30_000)
    link.run_once()
    other.sock.setblocking(False)
    came = bytearray()

    def read():
        try:
            came.extend(other.sock.recv(1 << 20))
        except BlockingIOError:
            return False
        return len(came) >= 4 and len(came) == 4 + int.from_bytes(came[:4])

    turns.until(link, read)
    key, version, number, _, at = parse(memoryview(came), 4, len(came))
    asked = messages.decode_request(key, version, memoryview(came)[at:])
    assert len(asked.topics) == 30_000
    other.answer((key, version, number), metadata())
    turns.until(link, lambda: len(heard) == 2)
    link.close()
    other.sock.close()
