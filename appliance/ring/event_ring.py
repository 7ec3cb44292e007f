"""Recent events of each process in shared memory: a byte ring for each, in which the newest event
overwrites the oldest.

One process writes a ring; whoever looks reads along and is never waited for. `oldest` moves before
bytes are taken, `end` after they are there (x86-64 order), so a reader that compares `oldest` after
it copied knows what of the copy holds; by the numbers of events it knows how many it missed. What a
dead process wrote stays, and its successor goes on behind it. No length in the memory is believed.

An event is words and then texts: its size, its number, ms of the wall clock, its priority; its
name, then keys and values in turn, each behind two bytes of its length.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from appliance.ring.process_table import peers_of

RING: Final = 1 << 17
"""Bytes of each: some 700 events."""
LONGEST_TEXT: Final = 2048
LONGEST_EVENT: Final = 8192
"""Bytes; of what is longer the middle is left out, of too many fields the last."""
SUPERVISOR: Final = "supervisor"

_END: Final = 0
"""How many bytes were written since the start, words: the writer's next place."""
_OLDEST: Final = 8
"""Where the oldest event begins that is still whole; on a cache line of its own."""
_WORDS: Final = 16
_HEAD: Final = 32
_LENGTH: Final = 2
_GAP: Final = b" ... "


class NotedEvent(NamedTuple):
    """number: 1, 2, … of its process, also over its restarts. at_ms: wall clock. priority:
    syslog's. fields: (key, value) in their order."""

    number: int
    at_ms: int
    priority: int
    event: str
    fields: tuple[tuple[str, str], ...]


class EventWriter:
    """The ring of one process, as that process writes it. The caller sees to it that one thread
    writes at a time."""

    __slots__ = ("_bytes", "_number", "_words")

    def __init__(self, memory: memoryview) -> None:
        self._words = memory[: _WORDS * 8].cast("q")
        self._bytes = memory[_WORDS * 8 : _WORDS * 8 + RING]
        self._number = 0

    def write_event(self, at_ms: int, priority: int, event: str, fields: Mapping[str, str]) -> None:
        """Add an event. Values that are no UTF-8 are written with escapes."""
        if not self._number:
            self._number = self._last_number()
        self._number += 1
        texts = _texts(event, fields)
        size = _HEAD + len(texts)
        head = struct.pack("<4q", size, self._number, at_ms, priority)
        entry = head + texts + bytes(-size % 8)
        words = self._words
        end = words[_END]
        self._make_room(end, len(entry))
        at = end % RING
        first = min(len(entry), RING - at)
        self._bytes[at : at + first] = entry[:first]
        self._bytes[: len(entry) - first] = entry[first:]
        words[_END] = end + len(entry)

    def _make_room(self, end: int, size: int) -> None:
        words = self._words
        oldest = words[_OLDEST]
        while end + size - oldest > RING:
            oldest += _taken(self._size_at(oldest), end - oldest)
        words[_OLDEST] = oldest

    def _size_at(self, position: int) -> int:
        at = position % RING  # words never lie across the end
        return int.from_bytes(self._bytes[at : at + 8], "little", signed=True)

    def _last_number(self) -> int:
        """Returns the number of the last event of a predecessor."""
        found = _entries(self._words, self._bytes, 0)
        return found.events[-1].number if found.events else 0


class EventsRead(NamedTuple):
    """end: where the next look begins. events: the oldest first."""

    end: int
    events: list[NotedEvent]


class EventReader:
    """Reads along one ring from where it begins to look."""

    __slots__ = ("_bytes", "_words", "number", "position")

    def __init__(self, memory: memoryview, position: int = 0, number: int = 0) -> None:
        """position, number: of an earlier reader, which this one goes on for."""
        self._words = memory[: _WORDS * 8].cast("q")
        self._bytes = memory[_WORDS * 8 : _WORDS * 8 + RING]
        self.position = position
        self.number = number

    def read_events(self) -> tuple[list[NotedEvent], int]:
        """(events since the last look, at first all that are there; how many were missed in between
        because they were overwritten)."""
        found = _entries(self._words, self._bytes, self.position)
        self.position = found.end
        missed = 0
        for one in found.events:
            if self.number and one.number > self.number:
                missed += one.number - self.number - 1
            self.number = one.number
        return found.events, missed


class EventTable:
    """A ring for the supervisor and for each place of a process, by their names, over
    `bytes_needed(...)` bytes, all zero at first; what was never written costs nothing."""

    __slots__ = ("_rings",)

    def __init__(self, memory: memoryview, *, ioprocs: int, netprocs: int) -> None:
        assert len(memory) >= self.bytes_needed(ioprocs, netprocs)
        size = _WORDS * 8 + RING
        names = (SUPERVISOR, *map(str, peers_of(ioprocs, netprocs)))
        self._rings = {name: memory[n * size : (n + 1) * size] for n, name in enumerate(names)}

    @staticmethod
    def bytes_needed(ioprocs: int, netprocs: int) -> int:
        """Size of the table's memory in bytes."""
        return (2 + ioprocs + netprocs) * (_WORDS * 8 + RING)

    @property
    def names(self) -> Sequence[str]:
        """Returns the names of the processes: the supervisor, then as in the process table."""
        return tuple(self._rings)

    def writer(self, process: str) -> EventWriter:
        """For that process alone."""
        return EventWriter(self._rings[process])

    def reader(self, process: str) -> EventReader:
        """For anybody; it begins with the oldest event."""
        return EventReader(self._rings[process])


def _texts(event: str, fields: Mapping[str, str]) -> bytes:
    """As many fields as an event may have."""
    found = _text(event)
    for key, value in fields.items():
        more = _text(key) + _text(value)
        if _HEAD + len(found) + len(more) > LONGEST_EVENT:
            break
        found += more
    return found


def _text(text: str) -> bytes:
    """Encodes a text; a long one keeps its end, because an exception's last line names it."""
    if len(text) > 2 * LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + text[-LONGEST_TEXT:]
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) > LONGEST_TEXT:
        begin = LONGEST_TEXT // 4
        encoded = encoded[:begin] + _GAP + encoded[-(LONGEST_TEXT - begin - len(_GAP)) :]
    return len(encoded).to_bytes(_LENGTH, "little") + encoded


def _taken(size: int, left: int) -> int:
    """How much of the ring an event of this size has; all that is left where none can be so."""
    taken = size + -size % 8
    return taken if size >= _HEAD and taken <= left else left


def _entries(words: memoryview, ring: memoryview, begin: int) -> EventsRead:
    """The events from position `begin` on that were whole while they were read."""
    end, oldest = words[_END], words[_OLDEST]
    start = max(begin, oldest) if begin <= end else oldest
    if not 0 <= end - start <= RING:
        return EventsRead(end, [])
    at = start % RING
    first = min(end - start, RING - at)
    copy = bytes(ring[at : at + first]) + bytes(ring[: end - start - first])
    taken = max(words[_OLDEST] - start, 0)  # meanwhile, for newer ones
    return EventsRead(end, _read(copy[taken:]))


def _read(copy: bytes) -> list[NotedEvent]:
    found = []
    at = 0
    while at + _HEAD <= len(copy):
        size, number, at_ms, priority = struct.unpack_from("<4q", copy, at)
        taken = _taken(size, len(copy) - at)
        told = _told(copy[at + _HEAD : at + size])
        if told and number > 0:
            found.append(
                NotedEvent(
                    number,
                    at_ms,
                    priority,
                    told[0],
                    tuple(zip(told[1::2], told[2::2], strict=False)),
                )
            )
        at += taken
    return found


def _told(texts: bytes) -> list[str]:
    found = []
    at = 0
    while at + _LENGTH <= len(texts):
        length = int.from_bytes(texts[at : at + _LENGTH], "little")
        at += _LENGTH
        found.append(texts[at : at + length].decode(errors="replace"))
        at += length
    return found
