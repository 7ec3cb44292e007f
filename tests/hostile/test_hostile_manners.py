"""Slow senders, readers that never read, floods, other protocols, names that are paths."""

import contextlib
import socket
import time
from pathlib import Path
from struct import pack, unpack_from

import pytest
from hostile_client import Link, ask, framed

from benchmarks import batches, requests
from tests.broker_process import KAFKA, answers, reset

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(193)
PATHS = ["..", ".", "../../etc/passwd", "a/b", "/", "a\0b", "", "x" * 250, "ü", "a b", "\n"]


@pytest.mark.parametrize(
    ("source", "greeting", "cause"),
    [
        ("127.0.0.71", TLS_HELLO, "TLS"),
        ("127.0.0.72", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        ("127.0.0.73", b"SSH-2.0-OpenSSH_9.2\r\n", ""),
    ],
)
def test_other_protocols(broker, port, source, greeting, cause):
    """One line of the log names the peer and the cause."""
    with Link(port, source) as link:
        link.send(greeting)
        assert link.closed_by_peer()
    if not KAFKA:
        (line,) = [line for line in broker.output().splitlines() if source in line]
        assert cause in line


def test_slow_senders_hold_nobody_up(port):
    links = [Link(port) for _ in range(200)]
    try:
        for link in links:
            link.send(requests.api_versions()[:5])
        assert answers(port)
        for link in links:
            link.send(requests.api_versions()[5:])
        assert all(link.answer() for link in links)
    finally:
        for link in links:
            link.socket.close()


def test_half_of_a_big_request_from_many(broker, port):
    """Frames that are announced but do not come must not cost their announced size each."""
    if KAFKA:
        pytest.skip("Kafka allocates what is announced and runs out of heap")
    links = [Link(port) for _ in range(100)]
    try:
        for link in links:
            link.send(pack(">i", 50 << 20) + requests.produce("target", 0, b"", 1, 1)[4:])
        assert answers(port)
        assert broker.memory() < broker.limit
    finally:
        for link in links:
            link.socket.close()


@pytest.fixture(scope="session")
def filled(broker):
    """A partition with 64 MB to ask for."""
    name = broker.peer.create(1, {}, "filled")
    batch = batches.uniform(64, 10_000, int(time.time() * 1000))
    for _ in range(100):
        answer = ask(broker.port, requests.produce(name, 0, batch, 1, 1))
        shape = requests.produce_shape(name, 7)
        assert shape.fields.unpack_from(answer, shape.at - 4)[0] == 0
    return name


def test_readers_that_never_read(broker, port, filled):
    """Forty of them ask for gigabytes; the answers stay in files, others are served."""
    wish = requests.fetch(filled, 0, 0, 32 << 20, 1)
    links = [Link(port) for _ in range(40)]
    try:
        for link in links:
            link.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                link.socket.send(wish * 50)
        assert answers(port)
        assert ask(port, requests.fetch(filled, 0, 0, 1 << 16, 1)) is not None
        assert broker.memory() < broker.limit
    finally:
        for link in links:
            reset(link.socket)


def test_askers_that_never_read_small_answers(broker, port):
    """Answers that are made in memory pile up only so far, then the broker stops reading."""
    wish = requests.api_versions() * 500
    links = [Link(port) for _ in range(10)]
    try:
        for link in links:
            link.socket.settimeout(0.3)
            with contextlib.suppress(TimeoutError, ConnectionError):
                for _ in range(500):
                    link.socket.sendall(wish)
        assert answers(port)
        assert broker.memory() < broker.limit
    finally:
        for link in links:
            reset(link.socket)


def test_connections_that_come_and_go(port):
    for i in range(500):
        link = Link(port)
        if i % 2:
            link.send(requests.metadata(["target"])[: i % 20])
        reset(link.socket) if i % 3 else link.socket.close()
    assert answers(port)


def test_clients_that_leave_before_the_answer(port):
    """Parked fetches and answers on the way to nobody."""
    for _ in range(100):
        link = Link(port)
        link.send(requests.fetch("target", 0, 0, 1 << 20, 1, max_wait_ms=30_000, min_bytes=1 << 20))
        reset(link.socket)
    assert answers(port)


def test_names_that_are_paths(broker, port):
    before = sorted(broker.data.parent.iterdir())
    for name in PATHS:
        answer = ask(port, requests.create_topic(name, 1, {}))
        if answer is not None:
            (code,) = unpack_from(">h", answer, 4 + 4 + 4 + 2 + len(name.encode()))
            assert code == 17, name
        body = pack(">i", 1) + requests.string(name) + b"\1"  # Metadata that may create
        answer = ask(port, requests.frame(3, 4, 1, body))
        assert answer is None or b"passwd-0" not in answer
        shape = requests.produce_shape(name, 7)
        batch = batches.batch([b"x"], int(time.time() * 1000))
        answer = ask(port, requests.produce(name, 0, batch, 1, 1))
        assert answer is None or shape.fields.unpack_from(answer, shape.at - 4)[0] in (3, 17, 42)
    assert sorted(broker.data.parent.iterdir()) == before
    assert not [path for path in broker.files.iterdir() if " " in path.name]


def test_one_request_for_very_many(port):
    """A legal frame that names a hundred thousand topics, or one partition as often."""
    names = b"".join(requests.string(f"none-{i}") for i in range(100_000))
    answer = ask(port, requests.frame(3, 4, 1, pack(">i", 100_000) + names + b"\0"))
    assert answer is None or len(answer) > 1_000_000
    parts = b"".join(pack(">iqi", 0, 0, 100) for _ in range(100_000))
    body = pack(">iiiib", -1, 0, 1, 1 << 20, 0) + pack(">i", 1) + requests.string("target")
    ask(port, requests.frame(1, 4, 1, body + pack(">i", 100_000) + parts))
    assert answers(port)


def test_the_peer_is_not_flooded_by_its_log(broker, port):
    """At most a line a second and peer about bad requests."""
    if KAFKA:
        pytest.skip("a promise of the appliance")
    before, begun = len(broker.output().splitlines()), time.monotonic()
    for _ in range(300):
        with Link(port) as link:
            link.send(framed(b"\xff" * 50))
            assert link.ended()
    passed = time.monotonic() - begun
    processes = len(broker.pids())
    assert len(broker.output().splitlines()) - before <= (passed + 1) * processes + 2


def test_urgent_data(port):
    with Link(port) as link:
        link.socket.send(b"!", socket.MSG_OOB)
        link.send(requests.api_versions())
        link.answer()
        assert link.ended()


@pytest.mark.skipif(KAFKA, reason="of ours")
def test_processes_gave_up_what_they_do_not_need(broker):
    """The sandbox holds for each thread; tests/netproc/test_sandbox.py says what that means."""
    seen = {}
    for pid in broker.pids():
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        for task in Path(f"/proc/{pid}/task").iterdir():
            said = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
            seen.setdefault(name, set()).add((said["Seccomp"], said["NoNewPrivs"]))
    children = {name: found for name, found in seen.items() if name.startswith("penstock-")}
    assert {"penstock-ctl", "penstock-io-0", "penstock-net-0"} <= children.keys(), seen
    assert set().union(*children.values()) == {("2", "1")}, children
