"""A whole appliance is restarted, perhaps as another version: its clients stay connected, whatever
they were in the middle of, unless they were told of something that is not served any more."""

import json
import os
import socket
from contextlib import ExitStack, closing
from struct import pack
from types import SimpleNamespace

import pytest

from appliance.netproc.handover import covers, serves
from appliance.shell import handed_connection
from appliance.shell.handed_connection import HandedConnection
from benchmarks import requests
from console.model.local.succession import restart
from tests.broker_process import KAFKA, Broker
from tests.console_process import typing
from tests.differential.link import Link
from tests.differential.plain import encode
from tests.netproc.netproc_world import World

IDLE = 30
API_VERSIONS, METADATA = 18, 3
WHICH = (METADATA, 12, {"topics": None, "allow_auto_topic_creation": False})
NAMES = ("PLAINTEXT", "OUTSIDE")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outlive") / "data"
    with Broker(folder, {"penstock.net.processes": "2"}) as one:
        typing(one.bootstrap)("topic", "create", "t", "-p", "1")
        yield one


@pytest.fixture
def link(broker):
    """A function that connects."""
    with ExitStack() as stack:
        yield lambda name="c": stack.enter_context(closing(Link((broker.host, broker.port), name)))


@pytest.mark.skipif(KAFKA, reason="an appliance is restarted")
def test_everybody_stays_connected_and_known(broker, link):
    idle = [link(f"idle-{n}") for n in range(IDLE)]
    software = {"client_software_name": "idler", "client_software_version": "1"}
    for one in idle:
        one.ask(API_VERSIONS, 3, software)
    half, many = link("half"), link("many")
    body = encode(METADATA, 1, {"topics": [{"name": "x" * 200}] * 2000})
    head = pack(">hhih", METADATA, 1, 77, 1) + b"h"
    frame = pack(">i", len(head) + len(body)) + head + body
    half._socket.sendall(frame[:-5])
    for _ in range(300):
        many.send(*WHICH)
    pid = restart(str(broker.data)).pid
    assert pid == broker.pids()[0] == restart(str(broker.data)).pid, "twice, to be sure"
    half._socket.sendall(frame[-5:])
    assert half._frame()[:4] == pack(">i", 77)
    for _ in range(300):
        assert many.receive()["topics"][0]["name"] == "t"
    for one in idle:
        assert one.ask(*WHICH)["topics"][0]["name"] == "t"
    clients = typing(broker.bootstrap)("client", "list", "--data", str(broker.data), "-o", "json")
    known = json.loads(clients.stdout)
    assert sum("idler" in json.dumps(one) for one in known) == IDLE


@pytest.fixture
def pair():
    """The server's end of a connection, and a function: whether the client was hung up on."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs:

        def is_over():
            try:
                return theirs.recv(1) == b""
            except BlockingIOError:
                return False

        yield ours.detach(), is_over


def guest(**changed):
    told = {"software": ("franz", "1.2"), "client_id": b"\xff\x00", "muted_until_ns": 7, "roles": 3}
    told |= {"asked": ["t"], "gone": ["u"], "serves": "0:3:13", "received": b"\n\x00half"}
    told |= {"protocol": "SASL_PLAINTEXT", "principal": ("User", "ü"), "login": ("PLAIN", 7)}
    return HandedConnection(None, "10.0.0.7", 1, **told | changed)


def test_all_that_is_told_of_a_guest_arrives(pair):
    fd, is_over = pair
    (found,) = handed_connection.unpack(handed_connection.pack([(fd, guest())], NAMES), NAMES)
    assert (found.sock.fileno(), os.get_inheritable(fd)) == (fd, False)
    assert not found.sock.getblocking()
    sock, found.sock = found.sock, None
    assert found == guest() and not is_over()
    sock.close()
    assert is_over()


def test_a_listener_is_known_by_its_name(pair):
    fd, _ = pair
    (found,) = handed_connection.unpack(
        handed_connection.pack([(fd, guest())], NAMES), ("NEW", *NAMES)
    )
    assert found.listener == 2
    found.close()


@pytest.mark.parametrize("gone", ["listener", "format", "serves"])
def test_who_cannot_be_gone_on_with_is_hung_up_on(pair, monkeypatch, gone):
    fd, is_over = pair
    file = handed_connection.pack([(fd, guest(**{gone: ""} if gone == "serves" else {}))], NAMES)
    if gone == "format":
        monkeypatch.setattr(handed_connection, "FORMAT", handed_connection.FORMAT + 1)
    assert handed_connection.unpack(file, NAMES[:1] if gone == "listener" else NAMES) == []
    assert is_over()


def test_who_came_from_a_version_that_told_less_is_anonymous_and_plain(pair, monkeypatch):
    fd, _ = pair
    with monkeypatch.context() as patch:
        patch.setattr(handed_connection, "FORMAT", 1)
        fields = handed_connection._fields
        newer = ("protocol", "principal", "login")
        patch.setattr(
            handed_connection,
            "_fields",
            lambda one: {key: value for key, value in fields(one).items() if key not in newer},
        )
        file = handed_connection.pack([(fd, guest())], NAMES)
    (found,) = handed_connection.unpack(file, NAMES)
    with found.sock:
        assert (found.protocol, found.principal) == ("PLAINTEXT", ("User", "ANONYMOUS"))
        assert found.login is None


def test_of_the_version_before_nobody_had_logged_in(pair, monkeypatch):
    fd, _ = pair
    with monkeypatch.context() as patch:
        patch.setattr(handed_connection, "FORMAT", 2)
        fields = handed_connection._fields

        def known_then(one):
            told = fields(one)
            del told["login"]
            return told

        patch.setattr(handed_connection, "_fields", known_then)
        file = handed_connection.pack([(fd, guest(protocol="SSL"))], NAMES)
    (found,) = handed_connection.unpack(file, NAMES)
    with found.sock:
        assert (found.principal, found.login) == (("User", "ü"), None)


@pytest.mark.parametrize("by_token", [False, True])
@pytest.mark.parametrize("login", [None, ("SCRAM-SHA-512", 0), ("SCRAM-SHA-512", 1)])
def test_a_login_goes_on_until_it_expires(tmp_path, login, by_token):
    """Who has none where one is asked for is hung up on."""
    words = {
        "advertised.listeners": "PLAINTEXT://somewhere:9092",
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    world = World(tmp_path, words)
    ours, theirs = socket.socketpair()
    try:
        ours.setblocking(False)
        theirs.settimeout(10)
        who = ("User", "alice")
        came = {"protocol": "SASL_PLAINTEXT", "principal": who, "login": login}
        world.server.adopt([HandedConnection(ours, "10.0.0.7", 0, **came, by_token=by_token)])
        there = list(world.server.shared.open.values())
        found = [(one.principal, one.session.by_token) for one in there]
        assert found == ([] if login is None else [(who, by_token)])
        if login is not None:
            theirs.sendall(requests.metadata([]))
            world.turn()
            world.turn()
        served = theirs.recv(1 << 16) != b""
        assert served == (login is not None and login[1] == 0)
    finally:
        theirs.close()
        world.close()


@pytest.mark.parametrize(
    ("before", "now", "stays"),
    [
        ("PLAINTEXT", "PLAINTEXT", True),
        ("PLAINTEXT", "SSL", False),
        ("PLAINTEXT", "SASL_PLAINTEXT", False),
        ("SASL_PLAINTEXT", "PLAINTEXT", False),
        ("SASL_PLAINTEXT", "SASL_PLAINTEXT", True),
    ],
)
def test_nobody_stays_in_a_listener_that_has_another_protocol(
    tmp_path, pair, monkeypatch, before, now, stays
):
    fd, is_over = pair
    world = World(tmp_path)
    try:
        monkeypatch.setitem(world.server.sealing._protocols, "PLAINTEXT", now)
        sock = socket.socket(fileno=fd)
        sock.setblocking(False)
        who = ("User", "alice")
        world.server.adopt([HandedConnection(sock, "10.0.0.7", 0, protocol=before, principal=who)])
        assert is_over() is not stays
        found = [one.principal for one in world.server.shared.open.values()]
        assert found == ([who] if stays else [])
    finally:
        world.close()


@pytest.mark.parametrize(
    ("ours", "covered"),
    [
        ({0: (3, 13), 18: (0, 4)}, True),
        ({0: (0, 14), 18: (0, 4), 99: (0, 0)}, True),
        ({0: (3, 12), 18: (0, 4)}, False),
        ({0: (4, 13), 18: (0, 4)}, False),
        ({0: (3, 13)}, False),
    ],
)
def test_what_was_told_to_be_served_has_to_be(ours, covered):
    def handlers(of):
        return {
            key: SimpleNamespace(lowest=lowest, highest=highest)
            for key, (lowest, highest) in of.items()
        }

    told = serves(handlers({18: (0, 4), 0: (3, 13)}))
    assert covers(handlers(ours), told) is covered
