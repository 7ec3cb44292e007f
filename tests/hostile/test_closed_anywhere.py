"""Clients that end at any byte of a request, by shutdown(SHUT_WR), by a reset or by closing: what
came whole is answered or done, half of a request is nothing, and everybody else is served."""

import random
import socket
import struct
import time

import pytest
from hostile_client import LIMIT_S, Link, captured

from benchmarks import batches, requests
from tests.seeds import each_seed

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s
ENDS = ("half", "reset", "close")
FRAMES = [frame for _, key, _, frame in captured() if key != 18]


def records():
    return batches.uniform(3, 20, 1_700_000_000_000)


def end(link, how):
    """End this side; the correlation ids that were answered, None where nobody reads on."""
    if how == "half":
        link.socket.shutdown(socket.SHUT_WR)
        found = []
        while (answer := link.answer()) is not None:
            found += struct.unpack_from(">i", answer)
        return found
    if how == "reset":
        link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    link.socket.close()
    return None


def log_end(port):
    with Link(port) as link:
        link.send(requests.end_offset("target", 0))
        return struct.unpack(">q", link.answer()[-8:])[0]


def grown(port, before, by):
    """Wait until the log has so much more, and never more."""
    give_up = time.monotonic() + LIMIT_S
    while (now := log_end(port)) != before + by:  # nothing says when it is appended
        assert now < before + by, "half of a request was appended"
        assert time.monotonic() < give_up, f"{now - before} records of {by}"


@pytest.mark.parametrize("how", ENDS)
def test_a_produce_is_whole_or_nothing_at_every_byte(port, how):
    frame = requests.produce("target", 0, records(), 1, 5)
    before = log_end(port)
    for cut in range(len(frame)):
        with Link(port) as link:
            link.send(frame[:cut])
            assert not end(link, how)
    assert log_end(port) == before
    with Link(port) as link:
        link.send(frame, frame, frame[:-1])
        if how != "reset":  # what it has not read a reset may take with it
            assert end(link, how) in (None, [5, 5])
            grown(port, before, 6)


@each_seed(3000)
def test_requests_of_real_clients_end_anywhere(port, seed):
    """Several on each connection, in pieces, the last one cut: in order, and as many as came."""
    rng = random.Random(seed)
    for _ in range(12):
        how = rng.choice(ENDS)
        whole = [requests.api_versions(n) for n in range(rng.randrange(4))]
        last = rng.choice(FRAMES)
        data = b"".join(whole) + last[: rng.randrange(len(last))]
        with Link(port) as link:
            at = 0
            while at < len(data):
                size = rng.choice((1, 3, 4, 5, 11, 100, 5000))
                link.send(data[at : at + size])
                at += size
                if rng.random() < 0.1:
                    time.sleep(0)
            found = end(link, how)
            assert found in (None, list(range(len(whole))))


@each_seed(500)
def test_waiting_requests_are_left_anywhere(port, seed):
    """Fetches that wait, and answers that nobody takes, of a client that goes."""
    rng = random.Random(seed)
    links = []
    for _ in range(8):
        link = Link(port)
        asked = [
            requests.fetch("tailed", 0, 0, 1 << 20, n, max_wait_ms=rng.choice((0, 5, 60_000)))
            for n in range(rng.randrange(1, 5))
        ]
        asked += [requests.metadata(["target"], 9)] * rng.choice((0, 0, 200))
        data = b"".join(asked)
        link.send(data[: rng.randrange(len(data) // 2, len(data) + 1)])
        links.append(link)
    rng.shuffle(links)
    for link in links:
        how = rng.choice(("reset", "close", "shut"))
        if how == "shut":
            link.socket.shutdown(socket.SHUT_RDWR)
        else:
            end(link, how)
        link.socket.close()
