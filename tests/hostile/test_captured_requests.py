"""Requests of real clients, fed whole, byte by byte, several at once and with a tail."""

from struct import pack, pack_into, unpack_from

import pytest
from hostile_client import Link, captured, supported

CAPTURED = captured()
IDS = [name for name, *_ in CAPTURED]
cases = pytest.mark.parametrize(("key", "version", "frame"), [c[1:] for c in CAPTURED], ids=IDS)


@pytest.fixture(scope="session")
def ranges(port):
    return supported(port)


def known(ranges, key, version):
    low, high = ranges.get(key, (1, 0))
    return low <= version <= high


def numbered(frame, correlation):
    changed = bytearray(frame)
    pack_into(">i", changed, 8, correlation)
    return bytes(changed)


def check(link, ranges, key, version, *correlations):
    """Answers in order for a version that is offered, an end of the connection for any other."""
    if not known(ranges, key, version):
        assert link.closed_by_peer()
        return
    for correlation in correlations:
        answer = link.answer()
        assert answer is not None, "the connection ended instead of an answer"
        assert unpack_from(">i", answer)[0] == correlation


@cases
def test_whole(port, ranges, key, version, frame):
    with Link(port) as link:
        link.send(numbered(frame, 77))
        check(link, ranges, key, version, 77)


@cases
def test_byte_by_byte(port, ranges, key, version, frame):
    with Link(port) as link:
        link.send(*(bytes([byte]) for byte in numbered(frame, 78)))
        check(link, ranges, key, version, 78)


@cases
def test_several_at_once(port, ranges, key, version, frame):
    with Link(port) as link:
        link.send(b"".join(numbered(frame, i) for i in range(5)))
        check(link, ranges, key, version, *range(5))


@cases
def test_with_the_beginning_of_the_next(port, ranges, key, version, frame):
    with Link(port) as link:
        link.send(numbered(frame, 79) + frame[: len(frame) // 2])
        check(link, ranges, key, version, 79)
        assert link.ended()


@cases
def test_with_bytes_too_many(port, key, version, frame):
    """Kafka ignores them for some requests and closes for others; both are fine, silence is not."""
    with Link(port) as link:
        link.send(pack(">i", len(frame) - 4 + 9) + frame[4:] + b"\x01" * 9)
        link.answer()
        assert link.ended()


@cases
def test_cut_at_every_length(port, key, version, frame):
    """A frame whose length is honest about a body that stops too soon."""
    for end in range(8, min(len(frame), 260), 3):
        with Link(port) as link:
            link.send(pack(">i", end - 4) + frame[4:end])
            assert link.ended()
