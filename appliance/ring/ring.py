"""A single-producer single-consumer ring of fixed slots over any writable memoryview.

The writer fills slots, then publishes one aligned native 8-byte counter; the reader reads that
counter once, copies the slots, checks the copies and publishes its own counter. Each counter has
one writer and a cache line of its own. x86-64 store order is assumed (stores become visible in
program order); the byte order is native.

A slot is accepted only with the sequence that must come next in this generation, so what a dead or
hostile peer left behind is refused, never followed: `RingBroken`, and the ring is discarded whole.
Payloads are bytes that a message carries; they lie in an area behind the slots and are freed in the
order of their slots.

Called by `shell/links.py`, which decides when to publish and which generation is live.
"""

from collections import deque
from functools import partial
from operator import itemgetter
from struct import Struct
from typing import Final

from appliance.ring.messages import (
    APPEND,
    OPERATIONS,
    SLOT,
    SLOT_SIZE,
    WATCH,
    WATCHED_BYTES,
    WITH_ARENA,
    WITH_PAYLOAD,
    Message,
)

DEFAULT_CAPACITY: Final = 1024
PIECES: Final = 4
"""What is longer than a payload area divided by this goes in pieces: so many are under way at
once."""
GENERATIONS: Final = 1 << 16
_HEAD: Final = 0  # word of the writer's counter
_TAIL: Final = 8  # word of the reader's counter, one cache line further
_SLOTS_AT: Final = 128
_WORDS_PER_SLOT: Final = SLOT_SIZE // 8
_FEW: Final = 4  # up to here checking slot by slot is cheaper than in bulk

# The same slot without its sequence, and with an empty payload at the end: what a Message is made
# of.
_BODY: Final = Struct("<8xHHIQqqqqqqqqii0s")
assert _BODY.size == SLOT_SIZE

_pack = SLOT.pack_into
_unpack = SLOT.unpack_from
_message = partial(tuple.__new__, Message)
_op = itemgetter(0)
_handle = itemgetter(2)
_NO_PAYLOAD: Final = (b"",)
_NOTHING: Final[list[Message]] = []


class RingBroken(Exception):
    """The peer's half of a ring says what it cannot say: discard the ring, follow nothing in it."""


def ring_bytes(capacity: int = DEFAULT_CAPACITY, payload_bytes: int = 0) -> int:
    """Memory that a ring of `capacity` slots (a power of two) and its payload area take."""
    assert capacity > 0 and capacity & (capacity - 1) == 0, "capacity is a power of two"
    return _SLOTS_AT + capacity * SLOT_SIZE + payload_bytes


def clear_ring(memory: memoryview, capacity: int = DEFAULT_CAPACITY) -> None:
    """Forget everything in a ring that nobody uses at this moment (the supervisor, after a
    death)."""
    size = ring_bytes(capacity)
    memory[:size] = bytes(size)


def _words(memory: memoryview) -> memoryview:
    assert not memory.readonly and memory.contiguous and memory.itemsize == 1
    return memory[:_SLOTS_AT].cast("Q")


class RingWriter:
    """The producer's end. A closed writer takes nothing; `reset` opens it for a generation.

    head: slots pushed so far. published: how many of them the peer can see. broken: why the ring
    is, "" when it is not. Read them only: they tell whether `publish` has anything to do."""

    __slots__ = (
        "_capacity",
        "_in_flight",
        "_limit",
        "_mask",
        "_memory",
        "_open",
        "_payload_at",
        "_payload_head",
        "_payload_size",
        "_payload_tail",
        "_stamp",
        "_tail",
        "_words",
        "broken",
        "head",
        "published",
    )

    def __init__(
        self, memory: memoryview, generation: int, *, capacity: int = DEFAULT_CAPACITY
    ) -> None:
        self._memory = memory
        self._words = _words(memory)
        self._capacity = capacity
        self._mask = capacity - 1
        self._payload_at = ring_bytes(capacity)
        self._payload_size = len(memory) - self._payload_at
        assert self._payload_size >= 0, "the memory is smaller than its slots"
        self.reset(generation)

    def reset(self, generation: int) -> None:
        """Start again at the first slot of a cleared ring, as `generation` (0 … 65,535)."""
        assert 0 <= generation < GENERATIONS
        self._stamp = generation << 48
        self.head = self.published = self._tail = 0
        self._limit = self._capacity
        self._open = True
        self.broken = ""
        self._in_flight: deque[tuple[int, int]] = deque()  # (slot after it, payload byte after it)
        self._payload_head = self._payload_tail = 0

    def close(self) -> None:
        """Take nothing more: every push answers False until the next `reset`."""
        self._open = False
        self._limit = self.published = self.head

    def push(
        self,
        op: int,
        flags: int,
        handle: int,
        token: int,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
        g: int = 0,
        h: int = 0,
        i: int = 0,
        j: int = 0,
        e: int = 0,
        f: int = 0,
    ) -> bool:
        """Fill the next slot; the peer sees it after `publish`. False: the ring is full or
        closed."""
        head = self.head
        if head == self._limit and not self._free_slots():
            return False
        _pack(
            self._memory,
            _SLOTS_AT + (head & self._mask) * SLOT_SIZE,
            self._stamp + head,
            op,
            flags,
            handle,
            token,
            a,
            b,
            c,
            d,
            g,
            h,
            i,
            j,
            e,
            f,
        )
        self.head = head + 1
        return True

    def push_with_payload(
        self,
        op: int,
        flags: int,
        handle: int,
        token: int,
        a: int = 0,
        b: int = 0,
        e: int = 0,
        f: int = 0,
        *,
        payload: bytes | bytearray | memoryview,
    ) -> bool:
        """Like `push`, carrying `payload` (at most `max_payload` bytes). False: no room for it
        now."""
        assert op in WITH_PAYLOAD, "only these operations carry bytes"
        length = len(payload)
        if length > self._payload_size:
            raise ValueError(
                f"payload of {length} bytes in an area of {self._payload_size}: send it in pieces"
            )
        if self.head == self._limit and not self._free_slots():
            return False
        position = self._place(length)
        if position < 0:
            return False
        at = self._payload_at + position
        self._memory[at : at + length] = payload
        pushed = self.push(op, flags, handle, token, a, b, i=position, j=length, e=e, f=f)
        assert pushed, "room was checked above"
        return True

    def publish(self) -> bool:
        """Show everything pushed so far to the peer. Returns whether there was anything new.
        Raises RingBroken when the peer's counter was found impossible (the ring is closed then)."""
        if self.broken:
            raise RingBroken(self.broken)
        if self.head == self.published:
            return False
        self._words[_HEAD] = self.published = self.head
        return True

    @property
    def max_payload(self) -> int:
        """The longest payload in bytes that an empty ring takes."""
        return self._payload_size

    def _free_slots(self) -> bool:
        """Read the reader's counter; whether a slot is free now."""
        if not self._open:
            return False
        tail = self._words[_TAIL]
        if not self._tail <= tail <= self.published:
            self.broken = (
                f"reader's counter went from {self._tail} to {tail}, published {self.published}"
            )
            self.close()
            return False
        self._tail = tail
        self._limit = tail + self._capacity
        in_flight = self._in_flight
        while in_flight and in_flight[0][0] <= tail:
            self._payload_tail = in_flight.popleft()[1]
        return self.head < self._limit

    def _place(self, length: int) -> int:
        """Reserve `length` contiguous payload bytes for the next slot: their place, or -1."""
        self._free_slots()
        if not self._in_flight:
            self._payload_head = self._payload_tail = 0
        start = self._payload_head
        place = start % self._payload_size if self._payload_size else 0
        if place + length > self._payload_size:
            start += self._payload_size - place
            place = 0
        if start + length - self._payload_tail > self._payload_size:
            return -1
        self._payload_head = start + length
        self._in_flight.append((self.head + 1, self._payload_head))
        return place


class RingReader:
    """The consumer's end. `handles` and `arena_bytes` bound what its messages may name (0: nothing
    to check), `operations` what they may be. While words[0] is `tail` there is nothing to drain:
    read them only."""

    __slots__ = (
        "_append",
        "_arena_bytes",
        "_capacity",
        "_handles",
        "_memory",
        "_open",
        "_operations",
        "_payload_at",
        "_payload_size",
        "_plain",
        "_stamp",
        "tail",
        "words",
    )

    def __init__(
        self,
        memory: memoryview,
        generation: int,
        *,
        capacity: int = DEFAULT_CAPACITY,
        handles: int = 0,
        arena_bytes: int = 0,
        operations: frozenset[int] = OPERATIONS,
    ) -> None:
        self._memory = memory
        self.words = _words(memory)
        self._capacity = capacity
        self._payload_at = ring_bytes(capacity)
        self._payload_size = len(memory) - self._payload_at
        self._handles = handles or 1 << 32
        self._arena_bytes = arena_bytes
        self._operations = operations
        self._plain = operations - WITH_ARENA - WITH_PAYLOAD
        self._append = APPEND if APPEND in operations else -1
        self.reset(generation)

    def reset(self, generation: int) -> None:
        """Start again at the first slot of a cleared ring, as `generation` (0 … 65,535)."""
        assert 0 <= generation < GENERATIONS
        self._stamp = generation << 48
        self.tail = 0
        self._open = True

    def close(self) -> None:
        """Read nothing more until the next `reset`."""
        self._open = False

    @property
    def is_open(self) -> bool:
        """True between `reset` and `close`, unless what was read was wrong."""
        return self._open

    def pending(self) -> bool:
        """True if the peer has published messages that are not drained; one read, nothing is
        checked."""
        return self._open and bool(self.words[_HEAD] != self.tail)

    def drain(self, limit: int = DEFAULT_CAPACITY) -> list[Message]:
        """At most `limit` messages, oldest first, copied and checked. Raises RingBroken, and
        closes, if one is wrong."""
        if not self._open:
            return _NOTHING
        tail = self.tail
        ready: int = self.words[_HEAD] - tail
        if ready == 0:
            return _NOTHING
        mask, handles, arena_bytes = self._capacity - 1, self._handles, self._arena_bytes
        plain, append = self._plain, self._append
        try:
            if not 0 < ready <= self._capacity:
                raise RingBroken(f"writer's counter is {ready} slots ahead of {tail}")
            count = min(ready, limit)
            messages = [] if count <= _FEW else self._copy_many(tail, count)
            for index in range(tail, tail + count - len(messages)):
                slot = _unpack(self._memory, _SLOTS_AT + (index & mask) * SLOT_SIZE)
                if slot[0] != self._stamp + index:
                    raise self._out_of_sequence(index, slot[0])
                message = _message(slot[1:] + _NO_PAYLOAD)
                op = slot[1]
                if slot[3] < handles and (
                    op in plain
                    or (op == append and slot[5] >= 0 and 0 < slot[13] <= arena_bytes - slot[5])
                ):
                    messages.append(message)
                else:
                    messages += self._check([message])
        except RingBroken:
            self._open = False
            raise
        self.words[_TAIL] = self.tail = tail + count
        return messages

    def _copy_many(self, tail: int, count: int) -> list[Message]:
        """Copy in bulk, at most two contiguous parts, and check."""
        first = tail & (self._capacity - 1)
        contiguous = min(count, self._capacity - first)
        at = _SLOTS_AT + first * SLOT_SIZE
        copy = bytes(self._memory[at : at + contiguous * SLOT_SIZE])
        sequences = memoryview(copy).cast("Q")[::_WORDS_PER_SLOT].tolist()
        expected = self._stamp + tail
        if sequences != list(range(expected, expected + contiguous)):
            wrong = next(n for n in range(contiguous) if sequences[n] != expected + n)
            raise self._out_of_sequence(tail + wrong, sequences[wrong])
        messages = self._check(list(map(_message, _BODY.iter_unpack(copy))))
        if contiguous < count:
            messages += self._copy_many(tail + contiguous, count - contiguous)
        return messages

    def _out_of_sequence(self, index: int, found: int) -> RingBroken:
        return RingBroken(
            f"slot {index} of generation {self._stamp >> 48} holds sequence "
            f"{found & (1 << 48) - 1} of generation {found >> 48}"
        )

    def _check(self, messages: list[Message]) -> list[Message]:
        """Operations, handles and places against their bounds; payloads are put in place."""
        operations = set(map(_op, messages))
        if not operations <= self._operations:
            raise RingBroken(f"operations {sorted(operations - self._operations)} do not exist")
        if max(map(_handle, messages)) >= self._handles:
            raise RingBroken(f"a handle is not below {self._handles}")
        if self._arena_bytes and not operations.isdisjoint(WITH_ARENA):
            arena_bytes = self._arena_bytes
            for m in messages:
                op, _, _, _, a, _, _, _, _, _, _, _, e, _, _ = m
                if op in WITH_ARENA and not (a >= 0 and e > 0 and a + e <= arena_bytes):
                    raise RingBroken(f"bytes {a} + {e} are not within an arena of {arena_bytes}")
        if not operations.isdisjoint(WITH_PAYLOAD):
            for index, m in enumerate(messages):
                if m[0] in WITH_PAYLOAD:
                    messages[index] = self._with_payload(m)
        return messages

    def _with_payload(self, message: Message) -> Message:
        position, length = message.i, message.j
        if position < 0 or length < 0 or position + length > self._payload_size:
            raise RingBroken(
                f"payload {position} + {length} is not within its area of {self._payload_size}"
            )
        if message.op == WATCH and length % WATCHED_BYTES:
            raise RingBroken(f"{length} bytes are no rows to watch")
        at = self._payload_at + position
        return message._replace(i=0, j=0, payload=bytes(self._memory[at : at + length]))
