"""Random, mutated and lying frames: an answer or an end, and everybody else is served."""

import os
from struct import pack, pack_into

import pytest
from hostile_client import Link, ask, captured, framed, supported, throw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker_process import KAFKA

FRAMES = [frame for *_, frame in captured()]
EXTREMES = [0x7FFFFFFF, 0x7FFFFFFE, -1, -2, -(1 << 31), 0x00FFFFFF, 1 << 30, 0]
NOT_ASKED = {18, 71, 72}  # telemetry is taken though it is not offered, as by Kafka
relentless = settings(
    max_examples=int(os.environ.get("PENSTOCK_HOSTILE_EXAMPLES", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@relentless
@given(st.binary(max_size=300))
def test_random_bytes(port, data):
    throw(port, data)


@relentless
@given(st.binary(max_size=300))
def test_random_frames(port, data):
    throw(port, framed(data))


@relentless
@given(key=st.integers(-2, 95), version=st.integers(-1, 20), body=st.binary(max_size=200))
def test_random_bodies_of_every_api(port, key, version, body):
    throw(port, framed(pack(">hhih", key, version, 5, 3) + b"bad" + body))


@st.composite
def mutated(draw):
    """A real request with bytes changed, cut out or put in; its length is honest, or not."""
    frame = bytearray(draw(st.sampled_from(FRAMES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(4, len(frame) - 5))
        change = draw(st.integers(0, 4))
        if change == 0:
            frame[at] = draw(st.integers(0, 255))
        elif change == 1:
            pack_into(">i", frame, at, draw(st.sampled_from(EXTREMES)))
        elif change == 2:
            del frame[at : at + draw(st.integers(1, 20))]
            frame += bytes(max(0, 12 - len(frame)))
        elif change == 3:
            frame[at:at] = draw(st.binary(min_size=1, max_size=20))
        else:
            frame[at : at + 5] = b"\xff\xff\xff\xff\x0f"
    if draw(st.booleans()):
        pack_into(">i", frame, 0, len(frame) - 4)
    return bytes(frame)


@relentless
@given(st.lists(mutated(), min_size=1, max_size=3))
def test_mutated_requests(port, frames):
    throw(port, *frames)


@pytest.mark.parametrize("value", [0x7FFFFFFF, -2, -(1 << 31)])
def test_every_number_of_every_request_lies(port, value):
    """Each four bytes of each captured request in turn become a count that cannot be."""
    for frame in FRAMES:
        for at in range(12, min(len(frame) - 4, 160)):
            lying = bytearray(frame)
            pack_into(">i", lying, at, value)
            throw(port, bytes(lying))


@pytest.mark.parametrize("overflow", [b"\xff" * 10, b"\xff\xff\xff\xff\x7f", b"\x80" * 9 + b"\x01"])
def test_varints_that_overflow(port, overflow):
    for frame in FRAMES:
        for at in range(12, min(len(frame), 120), 2):
            body = frame[4:at] + overflow + frame[at:]
            throw(port, framed(body))


@pytest.mark.parametrize("length", [-1, -(1 << 31), 0, 1, 7, 0x7FFFFFFF, 104857601, 0x47455420])
def test_frame_lengths(port, length):
    with Link(port) as link:
        link.send(pack(">i", length) + bytes(16))
        assert link.ended()


def test_a_huge_frame_is_refused_before_it_comes(port):
    """The broker closes at the length; it does not wait for two gigabytes."""
    with Link(port) as link:
        link.send(pack(">i", 0x7FFFFFFF))
        assert link.closed_by_peer()


def test_versions_that_do_not_exist(port):
    ranges = supported(port)
    for key in [*range(-1, 100), 32767, -32768]:
        low, high = ranges.get(key, (0, -1))
        for version in (-1, low - 1, high + 1, 99, 32767):
            if key in NOT_ASKED or low <= version <= high:
                continue
            with Link(port) as link:
                link.send(framed(pack(">hhihB", key, version, 5, -1, 0) + bytes(64)))
                assert link.closed_by_peer(), (key, version)


@pytest.mark.parametrize("version", [5, 6, 99, 32767])
def test_api_versions_of_the_future_is_told_what_there_is(port, version):
    """KIP-511: a version 0 body, error 35, and the range of ApiVersions itself."""
    head = pack(">hhih", 18, version, 6, 1) + b"c\0"
    answer = ask(port, framed(head + b"\2n\2v\0"))
    assert answer is not None
    assert answer[:6] == pack(">ih", 6, 35)
    assert answer[6:] == pack(">ihhh", 1, 18, 0, 4)


def test_a_client_name_that_is_not_text(port):
    for name in (b"\xff\xfe\xfd", b"\0" * 30_000, b"\xc3("):
        throw(port, framed(pack(">hhih", 18, 0, 1, len(name)) + name))


@pytest.mark.skipif(KAFKA, reason="it answers with an error")
@pytest.mark.parametrize(("kind", "key", "version"), [(0, 8, 7), (0, 11, 5), (1, 24, 2)])
def test_what_only_its_coordinator_reads_is_refused_by_it(port, kind, key, version):
    """While the client waits: it is hung up upon, and nobody else notices."""
    name = pack(">h", 4) + b"mine"
    find = framed(pack(">hhih", 10, 1, 1, -1) + name + pack(">b", kind))
    while ask(port, find)[8:10] != bytes(2):
        pass  # its topic is being made
    lying = framed(pack(">hhih", key, version, 1, -1) + name + b"\x7f" * 40)
    assert ask(port, lying) is None
