"""Counters of client quotas in shared memory: who has used how much in which window, and who waits.

One region of rows per process that counts; only that process writes there, everybody reads all.
A row is one meter: its kind and name, its limit, until when its clients are paused and since when
they are again and again, a bucket of tokens for the kind that is counted so, and one (slot, amount)
pair for each window. A meter's use
is the sum of the rows of its name over all regions. A region's `changed` word moves whenever one of
its rows was given to another meter, so a reader knows when to look for names again. A successor of
a dead process goes on with its rows.

Times are ms of the host's monotonic clock, limits in thousandths.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

DEFAULT_ROWS: Final = 1024
MOST_WINDOWS: Final = 3600

_HEADER: Final = 8  # one cache line per region
_COUNT: Final = 0
_CHANGED: Final = 1

_KIND: Final = 0
_LIMIT: Final = 1
_UNTIL: Final = 2
_USED_MS: Final = 3
_PAUSES: Final = 4
_LENGTH: Final = 5  # of the name, bytes
_DIGEST: Final = 6  # two words
_LEVEL: Final = 8
_TOKENS: Final = 9  # thousandths
_FILLED_MS: Final = 10
_SINCE_MS: Final = 11
_LAST_MS: Final = 12
_SAMPLES: Final = 13
_NAME_BYTES: Final = 192

NO_ROW: Final = -1


class Meter(NamedTuple):
    """The key of a quota counter. kind: number of the kind of quota; names as clients sent them."""

    kind: int
    user: str
    client_id: str


class QuotaRow(NamedTuple):
    """One meter in one region. limit: per second. name: for people, cut when it is long (whole
    says whether it is not). level: which entity's limit. tokens: left in the bucket. since_ms: when
    the pauses began that have come one after the other; last_ms: how long the last one was told to
    be."""

    digest: bytes
    kind: int
    name: str
    limit: float
    until_ms: int
    used_ms: int
    pauses: int
    since_ms: int
    last_ms: int
    total: int
    level: int
    whole: bool
    tokens: float
    filled_ms: int


def digest_of(meter: Meter) -> bytes:
    """16 bytes that stand for a meter in every process."""
    user, client = meter.user.encode(), meter.client_id.encode()
    head = b"%d %d " % (meter.kind, len(user))
    return blake2b(head + user + client, digest_size=16).digest()


class QuotaTable:
    """The table over `bytes_needed(...)` bytes, all zero at first; untouched rows cost nothing."""

    __slots__ = ("_memory", "_region", "_row", "_words", "regions", "rows", "windows")

    def __init__(
        self, memory: memoryview, regions: int, windows: int, rows: int = DEFAULT_ROWS
    ) -> None:
        assert 1 <= windows <= MOST_WINDOWS
        size = self.bytes_needed(regions, windows, rows)
        assert len(memory) >= size
        self.regions, self.windows, self.rows = regions, windows, rows
        self._row = _row_words(windows)
        self._region = _HEADER + rows * self._row
        self._memory = memory
        self._words = memory[:size].cast("q")

    @staticmethod
    def bytes_needed(regions: int, windows: int, rows: int = DEFAULT_ROWS) -> int:
        """Size of the table's memory in bytes."""
        return regions * (_HEADER + rows * _row_words(windows)) * 8

    # Its own process writes -----------------------------------------------------------------------

    def claim(self, region: int, meter: Meter) -> tuple[int, int]:
        """A row for a meter that has none in this region: a fresh one, else the one that was used
        least recently. Returns (the row, by how many ms another one was used later; -1 for a fresh
        one)."""
        start = region * self._region
        words = self._words
        count = words[start + _COUNT]
        behind_ms = -1
        if count < self.rows:
            at = self._at(region, count)
        else:
            used = [words[self._at(region, row) + _USED_MS] for row in range(count)]
            oldest = min(used)
            at = self._at(region, used.index(oldest))
            behind_ms = max(used) - oldest
        for word in range(at, at + self._row):
            words[word] = 0
        name = f"{meter.user}\0{meter.client_id}".encode()[:_NAME_BYTES]
        name_at = (at + self._row) * 8 - _NAME_BYTES
        self._memory[name_at : name_at + len(name)] = name
        words[at + _LENGTH] = len(name)
        words[at + _KIND] = meter.kind
        self._memory[(at + _DIGEST) * 8 : (at + _LEVEL) * 8] = digest_of(meter)
        if count < self.rows:
            words[start + _COUNT] = count + 1
        words[start + _CHANGED] += 1
        return at, behind_ms

    def add(self, at: int, slot: int, amount: int, now_ms: int) -> None:
        """Count for the window `slot`; a negative amount takes back."""
        words = self._words
        sample = at + _SAMPLES + slot % self.windows * 2
        if words[sample] != slot:
            words[sample + 1] = 0  # before the new slot shows: old use must not count as new
            words[sample] = slot
        words[sample + 1] += amount
        words[at + _USED_MS] = now_ms

    def set_limit(self, at: int, limit: float, level: int) -> None:
        """Writes the limit of this meter, per second, and its level."""
        self._words[at + _LIMIT] = min(int(limit * 1000), 2**63 - 1)
        self._words[at + _LEVEL] = level

    def bucket(self, at: int) -> tuple[float, int]:
        """(tokens, when they were counted in ms; 0: never) of a meter that is counted so."""
        return self._words[at + _TOKENS] / 1000, self._words[at + _FILLED_MS]

    def set_bucket(self, at: int, tokens: float, now_ms: int) -> None:
        """Writes the tokens left in the bucket."""
        self._words[at + _TOKENS] = max(-(2**62), min(round(tokens * 1000), 2**62))
        self._words[at + _FILLED_MS] = now_ms

    def pause(self, at: int, now_ms: int, pause_ms: int, lull_ms: int) -> None:
        """Its client waits for so long. lull_ms: how long after a pause another one still belongs
        to the same trouble."""
        words = self._words
        if now_ms > words[at + _UNTIL] + lull_ms or not words[at + _PAUSES]:
            words[at + _SINCE_MS] = now_ms
        words[at + _LAST_MS] = pause_ms
        words[at + _UNTIL] = max(now_ms + pause_ms, words[at + _UNTIL])
        words[at + _PAUSES] += 1

    # For all --------------------------------------------------------------------------------------

    def changed(self, region: int) -> int:
        """Moves when a row of the region was given to another meter."""
        return self._words[region * self._region + _CHANGED]

    def names(self, region: int) -> dict[bytes, int]:
        """The rows of a region by the digest of their meter."""
        return {self._digest(at): at for at in self._rows_of(region)}

    def sample(self, at: int, slot: int) -> int:
        """Returns the count of a row in window `slot` alone."""
        sample = at + _SAMPLES + slot % self.windows * 2
        return self._words[sample + 1] if self._words[sample] == slot else 0

    def total(self, at: int, slot: int) -> int:
        """Returns the count of a row in window `slot` and the earlier windows that still count."""
        words = self._words
        oldest = slot - self.windows
        total = 0
        for sample in range(at + _SAMPLES, at + _SAMPLES + 2 * self.windows, 2):
            if oldest < words[sample] <= slot:
                total += words[sample + 1]
        return total

    def read(self, slot: int) -> Iterator[QuotaRow]:
        """Every row of every region: what is used and who waits, without asking anybody."""
        for region in range(self.regions):
            for at in self._rows_of(region):
                words = self._words
                name_at = (at + self._row) * 8 - _NAME_BYTES
                name = bytes(self._memory[name_at : name_at + words[at + _LENGTH]])
                yield QuotaRow(
                    digest=self._digest(at),
                    kind=words[at + _KIND],
                    name=name.decode(errors="replace"),
                    limit=words[at + _LIMIT] / 1000,
                    until_ms=words[at + _UNTIL],
                    used_ms=words[at + _USED_MS],
                    pauses=words[at + _PAUSES],
                    since_ms=words[at + _SINCE_MS],
                    last_ms=words[at + _LAST_MS],
                    total=self.total(at, slot),
                    level=words[at + _LEVEL],
                    whole=words[at + _LENGTH] < _NAME_BYTES,
                    tokens=words[at + _TOKENS] / 1000,
                    filled_ms=words[at + _FILLED_MS],
                )

    def _at(self, region: int, row: int) -> int:
        return region * self._region + _HEADER + row * self._row

    def _rows_of(self, region: int) -> Iterator[int]:
        count = self._words[region * self._region + _COUNT]
        return (self._at(region, row) for row in range(count))

    def _digest(self, at: int) -> bytes:
        return bytes(self._memory[(at + _DIGEST) * 8 : (at + _LEVEL) * 8])


def _row_words(windows: int) -> int:
    """Whole cache lines."""
    return -(-(_SAMPLES + 2 * windows + _NAME_BYTES // 8) // 8) * 8
