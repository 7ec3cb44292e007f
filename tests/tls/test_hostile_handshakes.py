"""Handshakes that stop, crawl, lie or never come; keys that change in the middle. Whatever happens,
others are served, the processes live on, and no descriptor and no memory is kept."""

import contextlib
import os
import shutil
import socket
import ssl
import time
from collections import Counter
from struct import pack, unpack_from

import pytest

from benchmarks import batches, requests
from tests.broker_process import KAFKA, reset
from tests.tls.raw import ByHand, SClient, closed_by_peer
from tests.tls.secured import Secured

LIMIT_S = 60
STILL_MS = 2000
GROWTH_BYTES = 200 << 20
NEVER = 200
SETTINGS = (
    {"connections.max.idle.ms": str(STILL_MS)}
    if KAFKA  # it knows no other end of a handshake that stops
    else {"penstock.connection.no.progress.ms": str(STILL_MS)}
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory, pki):
    folder = tmp_path_factory.mktemp("handshakes") / "data"
    with Secured(folder, pki, ["SSL", "MUTUAL", "OLDER"], SETTINGS) as one:
        one.topic = one.peer.create(1, {}, "target")
        fill(one)
        one.limit = one.memory() + (600 << 20 if KAFKA else GROWTH_BYTES)
        yield one


def fill(broker):
    """8 MB to ask for."""
    batch = batches.uniform(64, 10_000, time.time_ns() // 1_000_000)
    with broker.peer.connect() as wire:
        for _ in range(13):
            shape = requests.produce_shape(broker.topic, 7)
            answer = wire.call(requests.produce(broker.topic, 0, batch, -1, 1))
            assert shape.fields.unpack_from(answer, shape.at - 4)[0] == 0


def descriptors(broker):
    """What all of its processes hold but for files of data: (process, what it is) → how often."""
    found = Counter()
    for pid in broker.pids():
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                what = os.readlink(f"/proc/{pid}/fd/{fd}")
                if not what.startswith(str(broker.data)):
                    found[pid, "socket" if what.startswith("socket:") else what] += 1
    return found


@pytest.fixture(autouse=True)
def unharmed(broker, pki):
    """What must be as it was, whatever the test did."""
    pids = broker.pids()
    with broker.peer.connect() as wire:
        wire.call(requests.api_versions())
    before, end = descriptors(broker), time.monotonic() + LIMIT_S
    yield
    assert broker.answers(), broker.output()[-3000:]
    assert broker.pids() == pids, f"a process died:\n{broker.output()[-3000:]}"
    while (more := descriptors(broker) - before).total() > (20 if KAFKA else 0):
        assert time.monotonic() < end, f"descriptors are left open: {more}"
        time.sleep(0.02)
    assert broker.memory() < broker.limit


@pytest.fixture
def context(pki):
    return pki.context()


@pytest.mark.parametrize(
    "greeting",
    [
        requests.api_versions(),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        bytes(64),
        b"\x16\x03\x01\x40\x01" + bytes(64),
        bytes.fromhex("16030100040100ffffff0303") + bytes(100),
        os.urandom(4096),
    ],
    ids=[
        "Kafka in plain",
        "HTTP",
        "SSH",
        "zeros",
        "a record too large",
        "a hello of 16 MB",
        "noise",
    ],
)
def test_what_is_no_handshake_is_hung_up_on(broker, greeting):
    with socket.create_connection(broker.address(), LIMIT_S) as link:
        with contextlib.suppress(ConnectionError):
            link.sendall(greeting)
        assert closed_by_peer(link)


@pytest.mark.parametrize("share", [0.5, 1.0], ids=["in the hello", "behind it"])
def test_a_handshake_that_stops_is_hung_up_on(broker, context, share):
    with ByHand(broker.address(), context) as link:
        hello = link.hello()
        link.socket.sendall(hello[: int(len(hello) * share)])
        assert closed_by_peer(link.socket)


def test_who_sent_half_a_hello_may_go(broker, context):
    for end in (socket.socket.close, reset):
        with ByHand(broker.address(), context) as link:
            link.socket.sendall(link.hello()[:100])
            end(link.socket)


@pytest.mark.parametrize("listener", ["SSL", "OLDER", "MUTUAL"])
def test_one_byte_at_a_time(broker, pki, listener):
    context = pki.context(certificate="client")
    with ByHand(broker.address(listener), context) as link:
        link.handshake(at_once=1)
        for _ in range(3):
            link.send(requests.api_versions(), at_once=1)
            assert unpack_from(">h", link.answer(), 4) == (0,)


def test_a_request_together_with_the_end_of_the_handshake(broker, context):
    """They come in one packet."""
    with ByHand(broker.address(), context) as link:
        with contextlib.suppress(ssl.SSLWantReadError):
            link.tls.do_handshake()
        link.flush()
        while True:
            link.more()
            with contextlib.suppress(ssl.SSLWantReadError):
                link.tls.do_handshake()
                break
        for _ in range(5):
            link.tls.write(requests.api_versions())
        link.flush()
        for _ in range(5):
            assert unpack_from(">h", link.answer(), 4) == (0,)


@pytest.mark.parametrize("veiled", [True, False], ids=["within TLS", "instead of TLS"])
@pytest.mark.parametrize("garbage", [os.urandom(5000), b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64])
def test_garbage_behind_the_handshake(broker, context, veiled, garbage):
    with ByHand(broker.address(), context) as link:
        link.handshake()
        link.send(requests.api_versions())
        link.answer()
        with contextlib.suppress(ConnectionError):
            if veiled:
                link.send(garbage)
            else:
                link.socket.sendall(garbage)
        assert closed_by_peer(link.socket)


def test_a_record_that_was_changed_on_its_way(broker, context):
    with ByHand(broker.address(), context) as link:
        link.handshake()
        link.tls.write(requests.api_versions())
        record = bytearray(link.out.read())
        record[-1] ^= 1
        link.socket.sendall(record)
        assert closed_by_peer(link.socket)


def test_many_that_never_finish_hold_nobody_up(broker, context):
    """Half of them have sent a piece of a hello, half all of it."""
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(ByHand(broker.address(), context)) for _ in range(NEVER)]
        for number, link in enumerate(links):
            hello = link.hello()
            link.socket.sendall(hello if number % 2 else hello[:50])
        for _ in range(5):
            assert broker.answers()
        for link in links:
            assert closed_by_peer(link.socket)


def test_who_never_reads_is_kept_waiting_in_little_memory(broker, context):
    """Answers over TLS lie nowhere in whole before they are read."""
    wish = requests.fetch(broker.topic, 0, 0, 32 << 20, 1)
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            link = stack.enter_context(ByHand(broker.address(), context))
            link.handshake()
            link.send(wish * 3)
        for _ in range(5):
            assert broker.answers()
        assert broker.memory() < broker.limit


def test_half_of_a_large_request_from_many(broker, context):
    if KAFKA:
        pytest.skip("Kafka allocates what is announced and runs out of heap")
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            link = stack.enter_context(ByHand(broker.address(), context))
            link.handshake()
            link.send(pack(">i", 50 << 20) + requests.produce("target", 0, b"", 1, 1)[4:])
        assert broker.answers()
        assert broker.memory() < broker.limit


def test_an_end_without_a_word_and_one_with(broker, context):
    """close_notify is no must: the connection ends either way."""
    for unwrap in (True, False):
        with ByHand(broker.address(), context) as link:
            link.handshake()
            link.send(requests.api_versions())
            link.answer()
            if unwrap:
                with contextlib.suppress(ssl.SSLWantReadError):
                    link.tls.unwrap()
                link.flush()
            link.socket.shutdown(socket.SHUT_WR)
            assert closed_by_peer(link.socket)


def ask_for_all(broker):
    return requests.fetch(broker.topic, 0, 0, 32 << 20, 7)


def whole(answer, broker):
    """The answer to that, which is all there is."""
    shape = requests.fetch_shape(broker.topic, 4)
    code, _ = shape.fields.unpack_from(answer, shape.at - 4)
    (length,) = unpack_from(">i", answer, shape.size - 8)
    assert code == 0 and length == len(answer) - (shape.size - 4) > 8_000_000
    return answer


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_keys_are_updated_in_the_middle_of_a_fetch(broker, pki):
    """TLS 1.3: each side takes new keys, and the other is asked to (RFC 8446, 4.6.3)."""
    with SClient(pki, broker.address(), "-tls1_3") as client:
        client.send(ask_for_all(broker))
        first = whole(client.answer(), broker)
        for _ in range(3):
            client.send(ask_for_all(broker))
            (size,) = unpack_from(">i", client.exact(4))
            client.send(b"K\n")  # what comes now was not all encrypted before
            assert client.exact(size) == first
        assert client.said().count("KEYUPDATE") == 3


def goes_on(client):
    """Whether it is still answered after a hundred requests more."""
    try:
        for _ in range(100):
            client.send(requests.api_versions())
            client.answer()
    except (EOFError, BrokenPipeError):
        return False
    return True


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_nothing_is_negotiated_again(broker, pki):
    """TLS 1.2: a client that wants to is refused or hung up on; as Kafka does it (its
    SslTransportLayer: renegotiation is not supported)."""
    with SClient(pki, broker.address("OLDER"), "-tls1_2") as client:
        client.send(ask_for_all(broker))
        whole(client.answer(), broker)
        client.send(b"R\n")
        assert not goes_on(client)
        assert "RENEGOTIATING" in client.said()
