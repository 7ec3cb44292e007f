"""Table of client connections in shared memory: a region for each netproc, a row for each
connection.

Only that netproc writes there. What a client is called is written when it connects and when it says
who it is; what it does, once a second and when it hangs up; pauses when it is told of them. So a
row costs nothing while its connection is served. A row that is given back keeps its last counts
until it is given to somebody else, the one that was given back first: who looks once a second sees
how a short connection ended.

Several words of a row that belong together are read with `read`, which repeats while the netproc
writes (a seqlock, x86-64 order). A netproc that dies leaves its rows; its successor begins with
none. Times are ms of the host's monotonic clock.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from appliance.ring.regions import regions

ROWS: Final = 4096

_HEADER: Final = 8  # one cache line per region
_COUNT: Final = 0
"""Rows below it were given to a connection at some time."""
_LEFT_OUT: Final = 1

# Columns of a row.
VERSION: Final = 0
USE: Final = 1
"""How often the row was given to a connection, times two, and 1 while one has it."""
SINCE: Final = 2
REQUESTS: Final = 3
BYTES_IN: Final = 4
BYTES_OUT: Final = 5
PRODUCED: Final = 6
FETCHED: Final = 7
LAST_API: Final = 8
"""The key of the last answer, plus one."""
PAUSED_UNTIL: Final = 9
PAUSE_KIND: Final = 10
"""Number of the kind of quota that the last pause was for."""
PAUSED_MS: Final = 11
PAUSES: Final = 12
TOLD: Final = 13
"""When it was last told how much it has been."""
_LENGTHS: Final = 14
"""Bytes of each text, eight bits each."""
_TEXTS_AT: Final = 16

_ADDRESS, _LISTENER, _PRINCIPAL, _CLIENT_ID, _SOFTWARE, _NUMBER = range(6)
_ROOMS: Final = (46, 16, 60, 70, 32, 32)
"""Bytes for each of these; what is longer is cut."""
_ROW: Final = _TEXTS_AT + sum(_ROOMS) // 8
_TRIES: Final = 1000

NO_ROW: Final = -1

assert sum(_ROOMS) % 8 == 0 and max(_ROOMS) < 256 and _ROW % 8 == 0


class Connected(NamedTuple):
    """One connection. since_ms, paused_until_ms, told_ms (when its counts were written): monotonic.
    last_api: API key, -1 for none. pause_kind: number of the kind of quota that it was paused for
    last. software, version: as ApiVersions told (KIP-511), "" when it did not."""

    netproc: int
    row: int
    use: int
    since_ms: int
    requests: int
    bytes_in: int
    bytes_out: int
    produced: int
    fetched: int
    last_api: int
    paused_until_ms: int
    pause_kind: int
    paused_ms: int
    pauses: int
    told_ms: int
    address: str
    listener: str
    principal: str
    client_id: str
    software: str
    version: str


class ClientRows:
    """The region of one netproc, as that netproc writes it."""

    __slots__ = ("_free", "_memory", "_words")

    def __init__(self, words: memoryview, memory: memoryview) -> None:
        self._words = words
        self._memory = memory
        self._free: deque[int] = deque()

    def clear_rows(self) -> None:
        """A new netproc takes the place: nobody is connected to it."""
        words = self._words
        words[_LEFT_OUT] = 0
        self._free.clear()
        for row in range(words[_COUNT]):
            words[_at(row) + USE] &= ~1
            self._free.append(row)

    def claim(self, address: str, listener: str, now_ms: int) -> int:
        """A row for a new connection, NO_ROW when there is none left."""
        words = self._words
        if words[_COUNT] < ROWS:
            row = words[_COUNT]
        elif self._free:
            row = self._free.popleft()
        else:
            words[_LEFT_OUT] += 1
            return NO_ROW
        at = _at(row)
        words[at + VERSION] += 1
        for word in range(at + SINCE, at + _TEXTS_AT):
            words[word] = 0
        words[at + SINCE] = now_ms
        words[at + USE] = (words[at + USE] | 1) + 2
        self._say(row, _ADDRESS, address)
        self._say(row, _LISTENER, listener)
        words[at + VERSION] += 1
        if row == words[_COUNT]:
            words[_COUNT] = row + 1
        return row

    def release(self, row: int) -> None:
        """Its connection is closed."""
        if row == NO_ROW:
            self._words[_LEFT_OUT] -= 1
        else:
            self._words[_at(row) + USE] &= ~1
            self._free.append(row)

    def write_names(self, row: int, principal: str, client_id: str) -> None:
        """Writes the principal and client id of a connection."""
        if row != NO_ROW:
            at = _at(row) + VERSION
            self._words[at] += 1
            self._say(row, _PRINCIPAL, principal)
            self._say(row, _CLIENT_ID, client_id)
            self._words[at] += 1

    def software(self, row: int, name: str, version: str) -> None:
        """Writes the client software's name and version (KIP-511)."""
        if row != NO_ROW:
            at = _at(row) + VERSION
            self._words[at] += 1
            self._say(row, _SOFTWARE, name)
            self._say(row, _NUMBER, version)
            self._words[at] += 1

    def count(
        self,
        row: int,
        requests: int,
        bytes_in: int,
        bytes_out: int,
        produced: int,
        fetched: int,
        last_api: int,
        now_ms: int,
    ) -> None:
        """How much it has been until now."""
        if row != NO_ROW:
            words, at = self._words, _at(row)
            words[at + BYTES_IN] = bytes_in
            words[at + BYTES_OUT] = bytes_out
            words[at + PRODUCED] = produced
            words[at + FETCHED] = fetched
            words[at + LAST_API] = last_api + 1
            words[at + REQUESTS] = requests
            words[at + TOLD] = now_ms

    def pause(self, row: int, kind: int, until_ms: int, pause_ms: int) -> None:
        """It was told to wait, for a quota of this kind. What it was told while it waits counts as
        far as it makes that longer."""
        if row != NO_ROW:
            words, at = self._words, _at(row)
            begin_ms = max(words[at + PAUSED_UNTIL], until_ms - pause_ms)
            words[at + PAUSED_UNTIL] = max(until_ms, words[at + PAUSED_UNTIL])
            words[at + PAUSE_KIND] = kind
            words[at + PAUSED_MS] += max(until_ms - begin_ms, 0)
            words[at + PAUSES] += 1

    def count_open(self, address: str | None = None) -> int:
        """Returns how many connections are open, those without a row too; with an address only
        rows of that. Rows of a killed process count until it has a successor."""
        words = self._words
        end = _HEADER + words[_COUNT] * _ROW
        uses = words[_HEADER + USE : end : _ROW].tolist()
        if address is None:
            left_out: int = words[_LEFT_OUT]
            return sum(use & 1 for use in uses) + left_out
        told = address.encode(errors="replace")[: _ROOMS[_ADDRESS]]
        found = 0
        for row, use in enumerate(uses):
            if use & 1:
                start = (_at(row) + _TEXTS_AT) * 8
                same = self._memory[start : start + len(told)] == told
                found += same and words[_at(row) + _LENGTHS] & 255 == len(told)
        return found

    def _say(self, row: int, which: int, text: str) -> None:
        room = _ROOMS[which]
        told = text.encode(errors="replace")[:room]
        start = (_at(row) + _TEXTS_AT) * 8 + sum(_ROOMS[:which])
        self._memory[start : start + len(told)] = told
        lengths = _at(row) + _LENGTHS
        self._words[lengths] = self._words[lengths] & ~(255 << 8 * which) | len(told) << 8 * which


class OpenConnections:
    """Counts of the connections of some netprocs, in all and of one address; of those without a row
    only the number is known."""

    __slots__ = ("_rows",)

    def __init__(self, rows: "Sequence[ClientRows]", but: "ClientRows | None" = None) -> None:
        """but: not these."""
        self._rows = [one for one in rows if one is not but]

    def count_all(self) -> int:
        """The number of all."""
        return sum(one.count_open() for one in self._rows)

    def count_address(self, address: str) -> int:
        """The number of one address, which is compared as far as it is kept."""
        return sum(one.count_open(address) for one in self._rows)


class ClientTable:
    """The table over `bytes_needed(...)` bytes, all zero at first; untouched rows cost nothing.
    rows: of each netproc, for it to write."""

    __slots__ = ("_regions", "rows")

    def __init__(self, memory: memoryview, netprocs: int) -> None:
        self._regions = regions(memory, netprocs, self.bytes_needed(1))
        self.rows = tuple(ClientRows(words, part) for words, part in self._regions)

    @staticmethod
    def bytes_needed(netprocs: int) -> int:
        """Size of the table's memory in bytes."""
        return netprocs * (_HEADER + ROWS * _ROW) * 8

    @property
    def left_out(self) -> int:
        """Connections that have no row, because there are too many."""
        return sum(words[_LEFT_OUT] for words, _ in self._regions)

    def columns(self, *which: int) -> list[list[list[int]]]:
        """Returns these columns of each netproc for every row that was ever allocated, all of the
        same rows and connections."""
        return [_columns(words, which) for words, _ in self._regions]

    def connected(self) -> Iterator[Connected]:
        """Every connection that is open."""
        for netproc, (words, _) in enumerate(self._regions):
            for row in range(words[_COUNT]):
                if words[_at(row) + USE] & 1:
                    yield self.read(netproc, row)

    def version(self, netproc: int, row: int) -> int:
        """Another one when the row says another name."""
        version: int = self._regions[netproc][0][_at(row) + VERSION]
        return version

    def read(self, netproc: int, row: int) -> Connected:
        """One row, of the connection that has it or had it last."""
        words, memory = self._regions[netproc]
        at = _at(row)
        told: list[int] = []
        texts = b""
        for _ in range(_TRIES):
            told = words[at : at + _TEXTS_AT].tolist()
            texts = bytes(memory[(at + _TEXTS_AT) * 8 : (at + _ROW) * 8])
            if not told[VERSION] & 1 and words[at] == told[VERSION]:
                break
        names = []
        start = 0
        for which, room in enumerate(_ROOMS):
            length = told[_LENGTHS] >> 8 * which & 255
            names.append(texts[start : start + length].decode(errors="replace"))
            start += room
        last_api = told[LAST_API] - 1
        counts = [*told[USE:LAST_API], last_api, *told[PAUSED_UNTIL : TOLD + 1]]
        return Connected._make((netproc, row, *counts, *names))


def _columns(words: memoryview, which: tuple[int, ...]) -> list[list[int]]:
    uses: list[int] = []
    found: list[list[int]] = [[] for _ in which]
    for _ in range(_TRIES):
        end = _at(words[_COUNT])
        uses = words[_HEADER + USE : end : _ROW].tolist()
        found = [words[_HEADER + column : end : _ROW].tolist() for column in which]
        if words[_HEADER + USE : end : _ROW].tolist() == uses:
            break
    assert all(len(column) == len(uses) for column in found), "columns of the same rows"
    return found


def _at(row: int) -> int:
    return _HEADER + row * _ROW
