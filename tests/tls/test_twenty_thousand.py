"""Twenty thousand connections of strangers that ask nothing, half of a request, or half of a
handshake: a newcomer of another address is served, in plaintext and over TLS."""

import contextlib
import resource
import socket
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from benchmarks import requests
from tests.broker_process import KAFKA
from tests.tls.raw import ByHand
from tests.tls.secured import HOST, Secured

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(KAFKA, reason="it has no shares of an address"),
]
MANY = 20_000
STRANGERS = ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
NEWCOMER = "127.0.0.77"
LIMIT_S = 60
HALF = b"\0\0\xea\x60\0\x12"


def test_a_newcomer_is_served_beside_twenty_thousand(tmp_path, pki):
    context = pki.context()
    with (
        Secured(tmp_path / "data", pki, ["SSL"]) as broker,
        ProcessPoolExecutor(len(STRANGERS), get_context("spawn")) as strangers,
    ):
        with ByHand(broker.address(), context) as one:
            hello = one.hello()[:50]
        took, pids = [served(broker, context)], broker.pids()
        kinds = [(broker.address(name), first) for name, first in (
            ("PLAINTEXT", b""), ("PLAINTEXT", HALF), ("SSL", b""), ("SSL", hello),
        )]  # fmt: skip
        opening = [strangers.submit(hold, source, kinds) for source in STRANGERS]
        while not all(one.done() for one in opening):
            took.append(served(broker, context))
        assert sum(one.result() for one in opening) == MANY
        took += [served(broker, context) for _ in range(100)]
        assert broker.pids() == pids, "a process died"
        memory = broker.memory() >> 20
    took.sort()
    print(f"{len(took)} newcomers: median {took[len(took) // 2] * 1000:.0f} ms, longest"
          f" {took[-1] * 1000:.0f} ms; {memory} MiB")  # fmt: skip


HELD = []
"""Connections of a process of strangers, for as long as it lives."""


def hold(source, kinds):
    """Opens a share of them. kinds: where, and what is sent. Returns how many it made."""
    resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE)[1:] * 2)
    for number in range(MANY // len(STRANGERS)):
        address, first = kinds[number % len(kinds)]
        sock = socket.create_connection(address, LIMIT_S, (source, 0))
        HELD.append(sock)
        with contextlib.suppress(ConnectionError):  # a share is used up
            sock.sendall(first)
    return len(HELD)


def served(broker, context):
    """Seconds until a newcomer has an answer in plaintext and one over TLS."""
    begun = time.monotonic()
    for listener in ("PLAINTEXT", "SSL"):
        plain = socket.create_connection(broker.address(listener), LIMIT_S, (NEWCOMER, 0))
        link = context.wrap_socket(plain, server_hostname=HOST) if listener == "SSL" else plain
        with link:
            link.sendall(requests.api_versions(7))
            answer = link.recv(8)
            assert answer[4:] == b"\0\0\0\7", answer
    return time.monotonic() - begun
