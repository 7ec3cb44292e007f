"""How often each process has reached each of the bounds of `config/bounds.py`, and when last.

One region for each process, which alone writes it. A row has its name, so a reader of another
version knows what was counted.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.config.bounds import PLACES
from appliance.ring.event_ring import SUPERVISOR
from appliance.ring.process_table import peers_of
from appliance.ring.security_table import EXPORTER

_COUNT: Final = 0
_LAST_MS: Final = 1
_NAME_AT: Final = 2
_NAME_WORDS: Final = 4
_NAME_BYTES: Final = 8 * _NAME_WORDS
_ROW: Final = _NAME_AT + _NAME_WORDS
_ROWS: Final = 64
_REGION: Final = _ROWS * _ROW * 8
assert len(PLACES) <= _ROWS
assert all(len(name) <= _NAME_BYTES and name.isascii() for name in PLACES)


class ReachedBound(NamedTuple):
    """times: since the start of the appliance. last_ms: wall clock."""

    name: str
    times: int
    last_ms: int


class BoundRegion:
    """The region of one process."""

    __slots__ = ("_memory", "_words")

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._words = memory.cast("q")

    def count(self, name: str, now_ms: int) -> None:
        """Count one more. now_ms: wall clock."""
        at = PLACES[name] * _ROW
        words = self._words
        if not words[at + _COUNT]:
            text = (at + _NAME_AT) * 8
            self._memory[text : text + _NAME_BYTES] = name.encode().ljust(_NAME_BYTES, b"\0")
        words[at + _LAST_MS] = now_ms
        words[at + _COUNT] += 1

    def reached(self) -> Iterator[ReachedBound]:
        """Those that have counted something."""
        for at in range(0, _ROWS * _ROW, _ROW):
            if times := self._words[at + _COUNT]:
                text = (at + _NAME_AT) * 8
                name = bytes(self._memory[text : text + _NAME_BYTES]).rstrip(b"\0")
                yield ReachedBound(name.decode("ascii", "replace"), times, self._words[at + 1])


class BoundTable:
    """A region for the supervisor, the exporter and each place of a process, over
    `bytes_needed(...)` bytes, all zero at first."""

    __slots__ = ("regions",)

    def __init__(self, memory: memoryview, *, ioprocs: int, netprocs: int) -> None:
        assert len(memory) >= self.bytes_needed(ioprocs, netprocs)
        names = (SUPERVISOR, EXPORTER, *map(str, peers_of(ioprocs, netprocs)))
        self.regions = {
            name: BoundRegion(memory[n * _REGION : (n + 1) * _REGION])
            for n, name in enumerate(names)
        }

    @staticmethod
    def bytes_needed(ioprocs: int, netprocs: int) -> int:
        """Size of the table's memory in bytes."""
        return (3 + ioprocs + netprocs) * _REGION

    def reached(self) -> list[ReachedBound]:
        """Sums over all processes, by name."""
        sums: dict[str, ReachedBound] = {}
        for region in self.regions.values():
            for one in region.reached():
                before = sums.get(one.name, ReachedBound(one.name, 0, 0))
                last_ms = max(before.last_ms, one.last_ms)
                sums[one.name] = ReachedBound(one.name, before.times + one.times, last_ms)
        return [sums[name] for name in sorted(sums)]
