"""Frames out of a byte stream, whatever the pieces in which it comes, and none of them moved or
written over while somebody uses it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.netproc.connections.framing import FrameRefused, Framing
from appliance.netproc.memory.admission import ASIDE, AddressShare, Admission
from appliance.ring.arena import UNIT, Arena


class Line:
    """A framing, fed by hand; keeps the slab of every `hold`-th frame."""

    def __init__(self, units=64, hold=0):
        self.arena = Arena(units * UNIT)
        self.admission = Admission(self.arena, units * UNIT)
        self.memory = memoryview(bytearray(units * UNIT))
        self.framing = self.another()
        self.frames = []
        self.held = []
        self.hold = hold

    def another(self):
        """A framing of another address."""
        return Framing(self.admission, self.memory, len(self.memory) // 2, AddressShare())

    def feed(self, data):
        """Bytes, as they may come: at most what there is room for."""
        while data:
            room = self.framing.room()
            if room is None:
                self.release()
                assert self.framing.settle_bytes(), "the arena is used up by whom?"
                self.take()
                continue
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.framing.arrived(count)
            if not self.framing.settle_bytes():
                self.release()
                assert self.framing.settle_bytes(), "the arena is used up by whom?"
            self.take()

    def take(self):
        waiting = self.framing.waiting()
        while end := self.framing.next():
            assert waiting
            body = self.framing.body
            self.frames.append(bytes(self.memory[body:end]))
            if self.hold and len(self.frames) % self.hold == 0:
                self.held.append((self.framing.slab.hold_slab(), body, end, self.frames[-1]))
            waiting = self.framing.waiting()
        assert not waiting

    def release(self):
        for slab, body, end, frame in self.held:
            assert bytes(self.memory[body:end]) == frame, "held bytes were written over"
            slab.let_go()
        self.held.clear()


def framed(bodies):
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(
        st.integers(8, 300) | st.integers(60_000, 70_000) | st.just(500_000), max_size=12
    ),
    pieces=st.lists(st.integers(1, 200) | st.integers(1000, 300_000), min_size=1, max_size=20),
    hold=st.integers(0, 3),
)
def test_frames_are_what_was_sent(sizes, pieces, hold):
    line = Line(hold=hold)
    bodies = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    data, turn = framed(bodies), 0
    least = len(data) // 500
    while data:
        size = max(least, pieces[turn % len(pieces)])
        turn += 1
        line.feed(data[:size])
        data = data[size:]
    assert line.frames == bodies
    line.release()
    line.framing.rest()
    assert line.arena.used == 0, "every slab went back"
    line.arena.invariants()


def test_byte_by_byte():
    line = Line()
    for byte in framed([b"12345678", b"abcdefghij"]):
        line.feed(bytes([byte]))
    assert line.frames == [b"12345678", b"abcdefghij"]


def test_memory_that_nobody_uses_is_used_again_from_its_start():
    line = Line()
    line.feed(framed([b"12345678"]))
    first = line.framing.body
    line.feed(framed([b"abcdefgh"]))
    assert line.framing.body == first
    line.hold = 1
    line.feed(framed([b"ABCDEFGH"]))
    line.feed(framed([b"87654321"]))
    assert line.framing.body > first
    line.release()


@pytest.mark.parametrize("length", [0x7FFFFFFF, -1, 0, 7, 32 * UNIT + 1])
def test_a_length_that_no_request_has_is_refused(length):
    line = Line()
    head = length.to_bytes(4, "big", signed=True)
    with pytest.raises(FrameRefused) as refused:
        line.feed(head + bytes(4))
    assert (refused.value.length, refused.value.head) == (length, head)


def test_a_large_length_alone_reserves_little():
    line = Line(units=1024)
    line.feed((30_000_000).to_bytes(4, "big") + b"x" * 100)
    line.feed(b"x")
    assert line.arena.used < 1_000_000


def fill(arena):
    taken = []
    while (position := arena.allocate(UNIT)) >= 0:
        taken.append(position)
    return taken


def put(framing, data):
    room = framing.room()
    room[: len(data)] = data
    framing.arrived(len(data))
    return framing.settle_bytes()


def test_without_memory_there_is_no_room_and_nothing_is_lost():
    line = Line(units=8)
    line.feed(framed([b"x" * 100])[:50])
    others = fill(line.arena)
    line.framing.rest()
    assert line.arena.allocate(UNIT) >= 0, "half a small request leaves the arena"
    assert not put(line.framing, framed([b"x" * 100])[50:])
    line.arena.free_slab(others.pop())
    assert line.framing.settle_bytes()
    line.take()
    assert line.frames == [b"x" * 100]


def test_first_bytes_stay_outside_an_arena_that_is_short():
    line = Line(units=64)
    others = fill(line.arena)
    for begun in (b"\0", b"\0\0\xea\x60", b"\0\0\xea\x60" + b"x" * (ASIDE - 5)):
        framing = line.another()
        assert put(framing, begun) and framing.slab is None and framing.unfinished() == len(begun)
    assert not put(framing, b"x") and framing.room() is None
    line.arena.free_slab(others.pop())
    assert framing.settle_bytes() and framing.received() == begun + b"x"


def test_the_last_units_are_for_addresses_that_hold_little():
    line = Line(units=128)
    greedy = AddressShare()
    crowd = [Framing(line.admission, line.memory, UNIT, greedy) for _ in range(128)]
    body = b"\0\0\xea\x60" + b"x" * (ASIDE - 4)
    served = [put(one, body) for one in crowd]
    assert not all(served)
    assert line.arena.used < 128 * UNIT
    assert put(line.another(), framed([b"12345678"]))


def test_a_long_frame_takes_all_that_it_needs_at_once():
    line = Line(units=128)
    long = framed([bytes(40 * UNIT)])
    line.feed(long[: UNIT + 1])
    slab = line.framing.slab
    line.feed(long[UNIT + 1 :])
    assert line.framing.slab is slab and len(line.frames) == 1


def test_those_with_long_frames_are_served_in_their_order():
    line = Line(units=64)
    first, second, third = (line.another() for _ in range(3))
    begun = (30 * UNIT).to_bytes(4, "big") + bytes(ASIDE - 4)
    fill_some = [line.arena.allocate(20 * UNIT)]
    assert put(first, begun)
    line.admission.in_line = True
    assert not put(second, begun)
    short = (2 * UNIT).to_bytes(4, "big") + bytes(ASIDE - 4)
    assert not put(third, short), "there is room for it, but others came before"
    line.arena.free_slab(fill_some.pop())
    first.drop()
    line.admission.head = True
    assert second.settle_bytes()
    line.admission.head = False
    assert not third.settle_bytes()
    line.admission.in_line = False
    assert third.settle_bytes()
    for framing in (second, third):
        framing.drop()
    assert line.arena.used == 0
