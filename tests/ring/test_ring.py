"""The ring against a deque, over bytearrays; what a dead or hostile writer leaves is refused."""

import os
import struct
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.ring.messages import (
    ANSWERED,
    APPEND,
    FORWARD,
    OPERATIONS,
    READ,
    SLOT_SIZE,
    WATCH,
    WITH_PAYLOAD,
    Message,
)
from appliance.ring.ring import RingBroken, RingReader, RingWriter, clear_ring, ring_bytes

CAPACITY = 8
PAYLOAD = 64
SLOTS_AT = 128
TAIL_AT = 64
I64 = st.integers(-(2**63), 2**63 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
PLAIN = sorted(OPERATIONS - WITH_PAYLOAD)


def free_slots(writer):
    """How many slots can be pushed now."""
    writer._free_slots()
    return writer._limit - writer.head


def pair(generation=1, capacity=CAPACITY, payload=PAYLOAD, **bounds):
    memory = memoryview(bytearray(ring_bytes(capacity, payload)))
    writer = RingWriter(memory, generation, capacity=capacity)
    return memory, writer, RingReader(memory, generation, capacity=capacity, **bounds)


messages = st.builds(
    Message,
    op=st.sampled_from(PLAIN),
    flags=st.integers(0, 2**16 - 1),
    handle=st.integers(0, 2**32 - 1),
    token=st.integers(0, 2**64 - 1),
    **dict.fromkeys("abcdghij", I64),
    **dict.fromkeys("ef", I32),
    payload=st.just(b""),
)
carrying = st.builds(
    Message,
    op=st.sampled_from(sorted(WITH_PAYLOAD - {WATCH})),
    flags=st.integers(0, 2**16 - 1),
    handle=st.integers(0, 2**32 - 1),
    token=st.integers(0, 2**64 - 1),
    **dict.fromkeys("ab", I64),
    **dict.fromkeys("cdghij", st.just(0)),
    **dict.fromkeys("ef", I32),
    payload=st.binary(max_size=PAYLOAD),
)
steps = st.lists(
    st.one_of(messages, carrying, st.just("publish"), st.integers(1, 2 * CAPACITY)), max_size=120
)


@given(steps, st.integers(0, 2**16 - 1))
def test_ring_behaves_like_a_deque(steps, generation):
    _, writer, reader = pair(generation)
    pushed, visible = deque(), deque()
    for step in steps:
        if step == "publish":
            assert writer.publish() == bool(pushed)
            visible += pushed
            pushed.clear()
        elif isinstance(step, int):
            assert reader.pending() == bool(visible)
            expected = [visible.popleft() for _ in range(min(step, len(visible)))]
            assert reader.drain(step) == expected
        else:
            full = len(pushed) + len(visible) == CAPACITY
            if step.op in WITH_PAYLOAD:
                taken = writer.push_with_payload(
                    *step[:6], e=step.e, f=step.f, payload=step.payload
                )
                assert not (taken and full)
            else:
                taken = writer.push(*step[:14])
                assert taken == (not full)
            if taken:
                pushed.append(step)
        assert free_slots(writer) == CAPACITY - len(pushed) - len(visible)


@given(st.lists(st.binary(min_size=1, max_size=PAYLOAD), min_size=1, max_size=60))
def test_every_payload_passes_once_the_ring_is_drained(payloads):
    _, writer, reader = pair()
    arrived = []
    for payload in payloads:
        while not writer.push_with_payload(ANSWERED, 1, 0, 7, payload=payload):
            writer.publish()
            drained = reader.drain()
            assert drained, "an empty ring takes every payload"
            arrived += [m.payload for m in drained]
    writer.publish()
    arrived += [m.payload for m in reader.drain()]
    assert arrived == payloads


@given(
    st.integers(0, CAPACITY * 3),
    st.integers(1, CAPACITY),
    st.data(),
)
def test_one_flipped_byte_of_a_sequence_is_refused(before, count, data):
    memory, writer, reader = pair()
    for n in range(before):
        writer.push(READ, 0, 0, n)
        writer.publish()
        reader.drain()
    for n in range(count):
        writer.push(READ, 0, 0, n)
    writer.publish()
    slot = (before + data.draw(st.integers(0, count - 1))) % CAPACITY
    at = SLOTS_AT + slot * SLOT_SIZE + data.draw(st.integers(0, 7))
    memory[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(RingBroken, match="sequence"):
        reader.drain()
    assert not reader.pending()
    assert reader.drain() == []


@given(st.binary(min_size=CAPACITY * SLOT_SIZE, max_size=CAPACITY * SLOT_SIZE), I64)
def test_garbage_is_refused_or_bounded_never_followed(garbage, head):
    memory, _, reader = pair(handles=10, arena_bytes=1000)
    memory[SLOTS_AT : SLOTS_AT + len(garbage)] = garbage
    struct.pack_into("<q", memory, 0, head)
    if head == 0:
        assert reader.drain() == []
    else:
        with pytest.raises(RingBroken):
            reader.drain()


@given(st.lists(messages, min_size=1, max_size=CAPACITY))
def test_slots_of_another_generation_are_refused(old):
    memory, writer, _ = pair(generation=3)
    for message in old:
        writer.push(*message[:14])
    writer.publish()
    with pytest.raises(RingBroken, match="generation 3"):
        RingReader(memory, 4, capacity=CAPACITY).drain()


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"op": 0}, "operations"),
        ({"op": 999}, "operations"),
        ({"op": READ, "handle": 10}, "handle"),
        ({"op": APPEND, "a": -1, "e": 1}, "arena"),
        ({"op": APPEND, "a": 0, "e": 0}, "arena"),
        ({"op": APPEND, "a": 0, "e": -1}, "arena"),
        ({"op": APPEND, "a": 999, "e": 2}, "arena"),
        ({"op": FORWARD, "a": 2**63 - 1, "e": 2**31 - 1}, "arena"),
        ({"op": ANSWERED, "i": -1, "j": 1}, "payload"),
        ({"op": ANSWERED, "i": 0, "j": PAYLOAD + 1}, "payload"),
        ({"op": ANSWERED, "i": 0, "j": -1}, "payload"),
    ],
)
@pytest.mark.parametrize("others", [0, 6])
def test_fields_out_of_bounds_are_refused(fields, fault, others):
    _, writer, reader = pair(handles=10, arena_bytes=1000)
    for n in range(others):
        writer.push(READ, 0, 9, n)
    writer.push(**({"flags": 0, "handle": 0, "token": 1} | fields))
    writer.publish()
    with pytest.raises(RingBroken, match=fault):
        reader.drain()


@pytest.mark.parametrize("tail", [3, -1, 2**63 - 1])
def test_impossible_counter_of_the_reader_closes_the_writer(tail):
    memory, writer, _ = pair()
    writer.push(READ, 0, 0, 1)
    writer.publish()
    struct.pack_into("<q", memory, TAIL_AT, tail)
    assert free_slots(writer) == 0
    assert not writer.push(READ, 0, 0, 2)
    with pytest.raises(RingBroken, match="counter"):
        writer.publish()


def test_counter_of_the_reader_that_goes_back_closes_the_writer():
    memory, writer, reader = pair()
    for n in range(CAPACITY):
        writer.push(READ, 0, 0, n)
    writer.publish()
    reader.drain()
    assert free_slots(writer) == CAPACITY
    struct.pack_into("<Q", memory, TAIL_AT, 3)
    assert free_slots(writer) == 0


def test_closed_ends_pass_nothing_and_a_reset_begins_anew():
    memory, writer, reader = pair(generation=1)
    writer.push(READ, 0, 0, 1)
    writer.publish()
    writer.close()
    reader.close()
    assert not writer.push(READ, 0, 0, 2)
    assert not writer.push_with_payload(FORWARD, 0, 0, 2, payload=b"x")
    assert not writer.publish()
    assert reader.drain() == []
    clear_ring(memory, CAPACITY)
    writer.reset(2)
    reader.reset(2)
    assert writer.push(READ, 0, 0, 3)
    writer.publish()
    assert [m.token for m in reader.drain()] == [3]


def test_payload_longer_than_its_area_is_the_callers_mistake():
    _, writer, _ = pair()
    assert writer.max_payload == PAYLOAD
    with pytest.raises(ValueError, match="in pieces"):
        writer.push_with_payload(FORWARD, 0, 0, 1, payload=bytes(PAYLOAD + 1))


def test_two_processes_pass_every_message_in_order_under_pressure():
    """A child writes, this process reads: plain and carrying messages, a small ring, both
    spinning."""
    import mmap

    total = 20_000
    memory = memoryview(mmap.mmap(-1, ring_bytes(64, 4096)))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            writer = RingWriter(memory, 5, capacity=64)
            for n in range(total):
                body = n.to_bytes(4, "little") * (n % 50)
                while not (
                    writer.push(READ, 0, 1, n, n, -n)
                    if n % 3
                    else writer.push_with_payload(ANSWERED, 1, 0, n, n, payload=body)
                ):
                    writer.publish()
                    os.sched_yield()
                if n % 7 == 0:
                    writer.publish()
            writer.publish()
            status = 0
        finally:
            os._exit(status)
    reader = RingReader(memory, 5, capacity=64)
    expected = 0
    while expected < total:
        drained = reader.drain(40)
        if not drained:
            os.sched_yield()
        for m in drained:
            assert m.token == m.a == expected
            if expected % 3:
                assert m.b == -expected
            else:
                assert m.payload == expected.to_bytes(4, "little") * (expected % 50)
            expected += 1
    assert os.waitpid(child, 0)[1] == 0
    assert not reader.pending()
