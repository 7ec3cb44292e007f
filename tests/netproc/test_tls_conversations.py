"""Whole conversations over TLS: the answers are those of a plain connection, however small the
pieces are in which bytes come and go; who is refused hears why, and so do we."""

import socket
import ssl
from itertools import pairwise

import pytest
from test_veiled_conversations import Woken, speak, until

from appliance.netproc.connections.connection import MOST_HANDSHAKES
from appliance.netproc.connections.connection_states import CLOSED, HANDSHAKE, OPEN
from appliance.netproc.transport.tls import Tls
from appliance.netproc.transport.transport import READ
from tests.netproc.netproc_world import Client
from tests.netproc.sealed import SealedSocket, certificate, client_context, server_context


class Door(Client):
    """A client that may say anything to a listener with TLS."""

    def __init__(self, world, serves):
        super().__init__(world, "sealed")
        taken, _ = world.door.accept()
        taken.setblocking(False)
        for one in (taken, self.sock):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.transport = Tls(taken, serves)
        before = set(world.server.shared.open)
        assert world.server.connections.admit(
            self.transport, "127.0.0.1", world.server.listeners[0]
        )
        (fd,) = set(world.server.shared.open) - before
        self.connection = world.server.shared.open[fd]
        world.clients.append(self)


class Sealed(Door):
    def __init__(self, world, serves, context, at_once=1 << 16):
        super().__init__(world, serves)
        self.sock = SealedSocket(self.sock, context, at_once)


@pytest.fixture
def world(tmp_path):
    one = Woken(tmp_path, topics=("flights", "trains"))
    one.io_process()
    yield one
    one.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("at_a_time", [1, 4])
@pytest.mark.parametrize(
    ("at_once", "sizes"), [(1, (1, 30)), (97, (1, 1000, 3000)), (1 << 16, (1, 70_000, 120_000))]
)
def test_the_answers_are_those_of_a_plain_connection(tmp_path, at_once, sizes, at_a_time, version):
    file = certificate(tmp_path, "here")
    answers = []
    for sealed in (False, True):
        path = tmp_path / str(sealed)
        path.mkdir()
        world = Woken(path, topics=("flights", "trains"))
        world.io_process()
        if sealed:
            context = client_context(file, version=version)
            client = Sealed(world, server_context(file), context, at_once)
        else:
            client = world.client("one")
        answers.append(speak(world, client, sizes, at_a_time))
        if sealed:
            assert client.sock.tls.version() == version.name.replace("_", ".", 1)
            assert client.connection.state == OPEN
            until(world, lambda one=client.connection: one.mask == READ or None)
        world.end()
        world.close()
    assert answers[0] == answers[1]
    found = [answer for _, answer in answers[0] if hasattr(answer, "session_id")]
    assert sum(len(one.responses[0].partitions[0].records or b"") for one in found) > sum(sizes)


def test_before_it_agreed_nothing_is_read_and_the_end_does_not_wait(world, tmp_path):
    file = certificate(tmp_path, "here")
    client = Sealed(world, server_context(file), client_context(file), 1)
    assert client.connection.state == HANDSHAKE
    client.connection.drain()
    assert client.connection.state == CLOSED


def test_many_handshakes_at_once_keep_nobody_waiting(world, tmp_path):
    file = certificate(tmp_path, "here")
    serves, context = server_context(file), client_context(file)
    many = [Sealed(world, serves, context) for _ in range(3 * MOST_HANDSHAKES)]
    plain = world.client("plain")

    def agreed():
        for one in many:
            one.sock.work()
        return sum(one.connection.state == OPEN for one in many)

    plain.send(18, 3, client_software_name="plain", client_software_version="1")
    steps, answered = [agreed()], []
    while steps[-1] < len(many):
        world.turn()
        steps.append(agreed())
        if not answered and plain.answer():
            answered.append(steps[-1])
    assert answered[0] < len(many)
    assert max(after - before for before, after in pairwise(steps)) == MOST_HANDSHAKES


def test_first_rounds_of_handshakes_count_too(world, tmp_path, monkeypatch):
    serves = server_context(certificate(tmp_path, "here"))
    agree, rounds = Tls.agree, []
    monkeypatch.setattr(Tls, "agree", lambda one: rounds.append(one) or agree(one))
    many = [Door(world, serves) for _ in range(3 * MOST_HANDSHAKES)]
    assert len(rounds) == MOST_HANDSHAKES
    assert all(one.connection.state == HANDSHAKE for one in many)


def test_a_handshake_has_ten_seconds_whatever_moves(world, tmp_path):
    file = certificate(tmp_path, "here")
    slow = Sealed(world, server_context(file), client_context(file), 1)
    turns = 0
    while slow.connection.state == HANDSHAKE:
        slow.sock.work()
        world.turn(ms=1000)
        turns += 1
        assert turns < 20
    assert turns > 9 and slow.connection.state == CLOSED
    assert not world.server.shared.limits._handshakes


def test_an_address_has_so_many_handshakes_under_way(world, tmp_path):
    serves = server_context(certificate(tmp_path, "here"))
    world.server.shared.limits.handshakes = 20
    many = [Door(world, serves) for _ in range(20)]
    world.clients.append(Client(world, "one more"))
    taken, _ = world.door.accept()
    taken.setblocking(False)
    assert world.server.connections.admit(
        Tls(taken, serves), "127.0.0.1", world.server.listeners[0]
    )
    assert len(world.server.shared.open) == 20
    many[0].connection.close()
    assert Door(world, serves).connection.state == HANDSHAKE


def test_a_certificate_is_seen(world, tmp_path):
    here, there = (certificate(tmp_path, name) for name in ("here", "there"))
    client = Sealed(world, server_context(here, trusts=there), client_context(here, shows=there))
    until(world, lambda: client.sock.work() or client.connection.state == OPEN or None)
    shown = ssl.DER_cert_to_PEM_cert(client.transport.certificate())
    assert shown.strip() in there.read_text()


@pytest.mark.parametrize(
    ("shows", "heard", "said"),
    [
        (None, "certificate.required", "it shows no certificate, and ssl.client.auth=required"),
        ("strange", "unknown.ca", "its certificate is not taken: self-signed certificate"),
    ],
)
def test_who_has_no_good_certificate_hears_why_and_so_do_we(world, tmp_path, shows, heard, said):
    here, there = (certificate(tmp_path, name) for name in ("here", "there"))
    context = client_context(here, shows and certificate(tmp_path, shows))
    client = Sealed(world, server_context(here, trusts=there), context)
    with pytest.raises(ssl.SSLError, match=f"(?i){heard}"):
        until(world, client.answer)
    assert client.connection.state == CLOSED
    assert said in log_text(world)


@pytest.mark.parametrize(
    ("bytes_", "said"),
    [
        (b"\0\0\0\x1c\0\x12\0\4", "no TLS on a listener with TLS: set security.protocol=SSL"),
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP client on a Kafka listener with TLS"),
        (b"\x16\x03\x01\x00\x05hello", "no agreement on TLS"),
    ],
)
def test_what_is_no_handshake_is_named(world, tmp_path, bytes_, said):
    client = Door(world, server_context(certificate(tmp_path, "here")))
    client.sock.sendall(bytes_)
    until(world, lambda: said in log_text(world) or None)
    assert client.connection.closed and client.transport.sock.fileno() == -1


def test_who_only_looks_whether_somebody_is_here_is_not_told_of(world, tmp_path):
    client = Door(world, server_context(certificate(tmp_path, "here")))
    client.sock.close()
    until(world, lambda: client.connection.closed or None)
    assert "handshake-failed" not in log_text(world)


def log_text(world):
    with open(f"/proc/self/fd/{world.fd}") as file:
        return file.read()
