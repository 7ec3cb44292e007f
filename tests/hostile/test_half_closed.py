"""Clients that end their side of a connection and go on reading (shutdown(SHUT_WR)), as in Apache
Kafka: every request that has come whole is answered in its order, then the connection ends."""

import socket
import time
from struct import unpack_from

import pytest
from hostile_client import LIMIT_S, Link

from benchmarks import batches, requests

WAIT_MS = 400


@pytest.fixture
def link(port):
    with Link(port) as one:
        yield one


def numbers(link):
    """Correlation ids of all answers until the connection ends."""
    found = []
    while (answer := link.answer()) is not None:
        found += unpack_from(">i", answer)
    return found


def records():
    return batches.uniform(10, 100, 1_700_000_000_000)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_is_answered(link, acks):
    link.send(requests.produce("target", 0, records(), acks, 5))
    link.socket.shutdown(socket.SHUT_WR)
    assert numbers(link) == [5]


def test_all_that_was_asked_is_answered_in_its_order(link):
    link.send(
        requests.api_versions(1),
        requests.produce("target", 0, records(), -1, 2),
        requests.fetch("target", 0, 10**6, 1000, 3, max_wait_ms=WAIT_MS),
        requests.metadata(["target"], 4),
        requests.fetch("tailed", 0, 0, 1000, 5, max_wait_ms=WAIT_MS),
        requests.produce("target", 0, records(), 1, 6)[:-7],
    )
    link.socket.shutdown(socket.SHUT_WR)
    assert numbers(link) == [1, 2, 3, 4, 5]


def test_what_was_sent_without_wishing_an_answer_is_kept(port):
    shape = requests.fetch_shape("stamped", 4)
    with Link(port) as reader:

        def end():
            reader.send(requests.fetch("stamped", 0, 0, 1, 9, max_wait_ms=0))
            return shape.fields.unpack_from(reader.answer(), shape.at - 4)[1]

        before = end()
        with Link(port) as link:
            link.send(*[requests.produce("stamped", 0, records(), 0, n) for n in range(20)])
            link.socket.shutdown(socket.SHUT_WR)
            assert numbers(link) == []
        give_up = time.monotonic() + LIMIT_S
        while end() < before + 200:  # nothing says when it is appended
            assert time.monotonic() < give_up
            time.sleep(0.001)
