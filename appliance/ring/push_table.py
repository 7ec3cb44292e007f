"""Last pushed client metrics (KIP-714) in shared memory: a region for each netproc, a row for each
client instance.

Only that netproc writes there, and it writes what came as it came: who looks opens it. A row is
read whole or not at all (a seqlock, x86-64 order). There are so many rows; when there are more
clients, the one that has been silent longest gives its row away. A netproc that dies leaves its
rows; its successor begins with none. Times are ms of the host's monotonic clock.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.ring.regions import regions

DEFAULT_ROWS: Final = 256
PAYLOAD: Final = 64 << 10
"""Most bytes of one push, as they come."""
PATIENCE: Final = 2
"""Who has not pushed for so many intervals has gone, or says nothing any more."""

_HEADER: Final = 8
_COUNT: Final = 0
_PUSHED_OUT: Final = 1

# Columns of a row.
_VERSION: Final = 0
_PUSHED: Final = 1
_INTERVAL: Final = 2
_CODEC: Final = 3
_PUSHES: Final = 4
_ENDED: Final = 5
_SIZE: Final = 6
_LENGTHS: Final = 7
"""Bytes of each text, eight bits each."""
_INSTANCE: Final = 8
_TEXTS_AT: Final = 10
_ROOMS: Final = (60, 70, 46, 32, 32)
"""Bytes for principal, client id, address, software, its version; what is longer is cut."""
_PAYLOAD_AT: Final = _TEXTS_AT + sum(_ROOMS) // 8
_ROW: Final = _PAYLOAD_AT + PAYLOAD // 8
_TRIES: Final = 100

assert sum(_ROOMS) % 8 == 0 and max(_ROOMS) < 256 and len(_ROOMS) <= 7


class PushingClient(NamedTuple):
    """The pushing client. software, version: as ApiVersions told (KIP-511)."""

    principal: str
    client_id: str
    address: str
    software: str
    version: str


class Pushed(NamedTuple):
    """The last push of one client. instance: its id. codec: that payload is compressed with, an
    attribute of batches. interval_ms: how often it is to push. pushes: how often it did. ended: it
    said that this was its last one. payload: an OTLP MetricsData."""

    netproc: int
    row: int
    instance: bytes
    who: PushingClient
    pushed_ms: int
    interval_ms: int
    codec: int
    pushes: int
    ended: bool
    payload: bytes

    def fresh(self, now_ms: int) -> bool:
        """True if the push is not outdated."""
        return not self.ended and now_ms - self.pushed_ms < PATIENCE * self.interval_ms


class PushRows:
    """The region of one netproc, as that netproc writes it."""

    __slots__ = ("_memory", "_most", "_rows", "_words")

    def __init__(self, words: memoryview, memory: memoryview, most: int = DEFAULT_ROWS) -> None:
        self._words = words
        self._most = most
        self._memory = memory
        self._rows: dict[bytes, int] = {}

    def clear_rows(self) -> None:
        """A new netproc takes the place: it knows of nobody."""
        self._rows.clear()
        self._words[_COUNT] = 0
        self._words[_PUSHED_OUT] = 0

    def write_push(
        self,
        instance: bytes,
        who: PushingClient,
        now_ms: int,
        interval_ms: int,
        codec: int,
        ended: bool,
        payload: bytes | memoryview,
    ) -> bool:
        """This is what it says now. instance: 16 bytes. payload: at most PAYLOAD bytes. Returns
        whether the row was of another one, which had not been silent for long."""
        assert len(instance) == 16 and len(payload) <= PAYLOAD
        before = self._words[_PUSHED_OUT]
        row = self._row(instance, now_ms)
        words, at = self._words, _at(row)
        pushes = words[at + _PUSHES] + 1
        words[at + _VERSION] += 1 + (words[at + _VERSION] & 1)
        words[at + _PUSHED] = now_ms
        words[at + _INTERVAL] = interval_ms
        words[at + _CODEC] = codec
        words[at + _PUSHES] = pushes
        words[at + _ENDED] = ended
        words[at + _SIZE] = len(payload)
        self._say(at, who)
        start = (at + _INSTANCE) * 8
        self._memory[start : start + 16] = instance
        start = (at + _PAYLOAD_AT) * 8
        self._memory[start : start + len(payload)] = payload
        words[at + _VERSION] += 1
        if row == words[_COUNT]:
            words[_COUNT] = row + 1
        return bool(words[_PUSHED_OUT] != before)

    def _row(self, instance: bytes, now_ms: int) -> int:
        row = self._rows.get(instance)
        if row is None:
            row = int(self._words[_COUNT])
            if row == self._most:
                row = self._silent_longest(now_ms)
            self._words[_at(row) + _PUSHES] = 0
            self._rows[instance] = row
        return row

    def _silent_longest(self, now_ms: int) -> int:
        words = self._words
        pushed = words[_HEADER + _PUSHED : _at(self._most) : _ROW].tolist()
        row = pushed.index(min(pushed))
        del self._rows[next(one for one, its in self._rows.items() if its == row)]
        at = _at(row)
        if not words[at + _ENDED] and now_ms - min(pushed) < PATIENCE * words[at + _INTERVAL]:
            words[_PUSHED_OUT] += 1
        return row

    def _say(self, at: int, who: PushingClient) -> None:
        start = (at + _TEXTS_AT) * 8
        lengths = 0
        for which, (room, text) in enumerate(zip(_ROOMS, who, strict=True)):
            told = text.encode(errors="replace")[:room]
            self._memory[start : start + len(told)] = told
            lengths |= len(told) << 8 * which
            start += room
        self._words[at + _LENGTHS] = lengths


class PushTable:
    """The table over `bytes_needed(...)` bytes, all zero at first; untouched rows cost nothing.
    rows: of each netproc, for it to write. most: rows of each."""

    __slots__ = ("_most", "_regions", "rows")

    def __init__(self, memory: memoryview, netprocs: int, most: int = DEFAULT_ROWS) -> None:
        self._most = most
        self._regions = regions(memory, netprocs, self.bytes_needed(1, most))
        self.rows = tuple(PushRows(words, part, most) for words, part in self._regions)

    @staticmethod
    def bytes_needed(netprocs: int, most: int = DEFAULT_ROWS) -> int:
        """Size of the table's memory in bytes."""
        return netprocs * (_HEADER + most * _ROW) * 8

    @property
    def pushed_out(self) -> int:
        """How often the row of a client that was not silent was given to another one."""
        return sum(words[_PUSHED_OUT] for words, _ in self._regions)

    def read(self, now_ms: int) -> Iterator[Pushed]:
        """Yields the last push of each instance that is not outdated, from any netproc. now_ms:
        monotonic."""
        found: dict[bytes, Pushed] = {}
        for netproc, (words, memory) in enumerate(self._regions):
            for row in range(min(words[_COUNT], self._most)):
                one = _read(netproc, row, words, memory)
                if one is None:
                    continue
                other = found.get(one.instance)
                if other is None or other.pushed_ms <= one.pushed_ms:
                    found[one.instance] = one
        return (one for one in found.values() if one.fresh(now_ms))


def _read(netproc: int, row: int, words: memoryview, memory: memoryview) -> Pushed | None:
    """None while its netproc writes, or when it died of that."""
    at = _at(row)
    for _ in range(_TRIES):
        told = words[at : at + _INSTANCE].tolist()
        size = min(max(told[_SIZE], 0), PAYLOAD)
        seen = bytes(memory[(at + _INSTANCE) * 8 : (at + _PAYLOAD_AT) * 8 + size])
        if not told[_VERSION] & 1 and words[at] == told[_VERSION]:
            break
    else:
        return None
    texts = []
    start = 16
    for which, room in enumerate(_ROOMS):
        length = told[_LENGTHS] >> 8 * which & 255
        texts.append(seen[start : start + length].decode(errors="replace"))
        start += room
    return Pushed(
        netproc,
        row,
        seen[:16],
        PushingClient(*texts),
        told[_PUSHED],
        told[_INTERVAL],
        told[_CODEC],
        told[_PUSHES],
        bool(told[_ENDED]),
        seen[start:],
    )


def _at(row: int) -> int:
    return _HEADER + row * _ROW
