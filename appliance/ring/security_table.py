"""Logins, denials and changes of each process in shared memory: counters, and a ring of audit
entries.

One region for each process, which alone writes its counters and its ring (`event_ring.py`). Control
alone writes how far it has read each ring, so that its successor goes on there. Nothing else goes
into these rings, and each kind of entry has a limit (`shell/audit.py`), so a stranger's requests
cannot push out an entry before it is read; entries beyond the limit are counted by kind.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.ring.event_ring import RING, SUPERVISOR, EventReader, EventWriter, NotedEvent
from appliance.ring.process_table import peers_of

LOGIN: Final = 0
LOGIN_FAILED: Final = 1
ACCESS_DENIED: Final = 2
CHANGED: Final = 3
EVENTS: Final = ("login", "login-failed", "access-denied", "changed")
"""Names of the kinds of audit entries, by their numbers."""
LOST: Final = len(EVENTS)
"""Counts entries that were overwritten before control read them."""

EXPORTER: Final = "exporter"
MECHANISMS: Final = (
    "other", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "SSL", "BASIC",
)  # fmt: skip
"""Names of the ways to log in, by their numbers."""
SUCCEEDED: Final = 0
FAILED: Final = 1
AGAIN: Final = 2
AGAIN_FAILED: Final = 3
OUTCOMES: Final = 4
LISTENERS: Final = 16
"""Listeners that are counted; those behind count as the last one."""

_LEFT_OUT: Final = 0  # words, one for each kind
_POSITION: Final = 8
_NUMBER: Final = 9
_TOLD: Final = 10  # words, one for each kind and LOST
_LOGINS: Final = 16
_NAME_WORDS: Final = 4
_NAME_BYTES: Final = 8 * _NAME_WORDS
_MECHANISMS: Final = 8
_LISTENER: Final = _NAME_WORDS + _MECHANISMS * OUTCOMES
_DENIALS: Final = _LOGINS + LISTENERS * _LISTENER
_OPERATIONS: Final = 16
_KINDS: Final = 8
_WORDS: Final = 1024
_REGION: Final = _WORDS * 8 + 16 * 8 + RING
assert _DENIALS + _OPERATIONS * _KINDS <= _WORDS and len(MECHANISMS) <= _MECHANISMS
assert _TOLD + LOST < _LOGINS


class LoginCount(NamedTuple):
    """Logins at a listener by a mechanism since the start. again: re-authentications."""

    listener: str
    mechanism: str
    succeeded: int
    failed: int
    again: int
    again_failed: int


class SecurityRegion:
    """The region of one process."""

    __slots__ = ("_memory", "_names", "_words")

    def __init__(self, memory: memoryview) -> None:
        self._words = memory[: _WORDS * 8].cast("q")
        self._names = memory[_LOGINS * 8 : _DENIALS * 8]
        self._memory = memory[_WORDS * 8 :]

    # The process itself ---------------------------------------------------------------------------

    def writer(self) -> EventWriter:
        """The ring, for its process alone."""
        return EventWriter(self._memory)

    def leave_out(self, kind: int) -> None:
        """Count an entry that is not written."""
        self._words[_LEFT_OUT + kind] += 1

    def count_login(self, number: int, listener: str, mechanism: str, outcome: int) -> None:
        """Count a login at the listener of this number and name."""
        at = min(number, LISTENERS - 1) * _LISTENER
        name = listener.encode()[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0")
        self._names[at * 8 : at * 8 + _NAME_BYTES] = name
        one = MECHANISMS.index(mechanism) if mechanism in MECHANISMS else 0
        self._words[_LOGINS + at + _NAME_WORDS + one * OUTCOMES + outcome] += 1

    def count_denial(self, operation: int, kind: int) -> None:
        """Count a denial by the numbers of operation and kind of resource."""
        if 0 <= operation < _OPERATIONS and 0 <= kind < _KINDS:
            self._words[_DENIALS + operation * _KINDS + kind] += 1

    # Control --------------------------------------------------------------------------------------

    def reader(self) -> EventReader:
        """Reads on where control, or its predecessor, has read up to."""
        return EventReader(self._memory, self._words[_POSITION], self._words[_NUMBER])

    def left_out(self) -> list[tuple[int, int]]:
        """(kind, entries not written that control has not told yet)."""
        words = self._words
        found = [(kind, words[_LEFT_OUT + kind] - words[_TOLD + kind]) for kind in range(LOST)]
        return [(kind, count) for kind, count in found if count > 0]

    def mark_read(self, reader: EventReader, told: list[tuple[int, int]]) -> None:
        """Note that the file has the entries of `reader` and `left_out`."""
        self._words[_POSITION], self._words[_NUMBER] = reader.position, reader.number
        for kind, count in told:
            self._words[_TOLD + kind] += count

    # Anybody --------------------------------------------------------------------------------------

    def logins(self) -> Iterator[LoginCount]:
        """Counters of listeners and mechanisms that have counted something."""
        for listener in range(LISTENERS):
            at = listener * _LISTENER
            raw = bytes(self._names[at * 8 : at * 8 + _NAME_BYTES]).rstrip(b"\0")
            for number, mechanism in enumerate(MECHANISMS):
                first = _LOGINS + at + _NAME_WORDS + number * OUTCOMES
                counts = self._words[first : first + OUTCOMES].tolist()
                if raw and any(counts):
                    yield LoginCount(raw.decode(errors="replace"), mechanism, *counts)

    def denials(self) -> Iterator[tuple[int, int, int]]:
        """(operation, kind of resource, count) of those that have counted something."""
        for n, count in enumerate(self._words[_DENIALS : _DENIALS + _OPERATIONS * _KINDS]):
            if count:
                yield n // _KINDS, n % _KINDS, count


class SecurityTable:
    """A region for the supervisor, the exporter and each place of a process, over
    `bytes_needed(...)` bytes, all zero at first."""

    __slots__ = ("regions",)

    def __init__(self, memory: memoryview, *, ioprocs: int, netprocs: int) -> None:
        assert len(memory) >= self.bytes_needed(ioprocs, netprocs)
        names = (SUPERVISOR, EXPORTER, *map(str, peers_of(ioprocs, netprocs)))
        self.regions = {
            name: SecurityRegion(memory[n * _REGION : (n + 1) * _REGION])
            for n, name in enumerate(names)
        }

    @staticmethod
    def bytes_needed(ioprocs: int, netprocs: int) -> int:
        """Size of the table's memory in bytes."""
        return (3 + ioprocs + netprocs) * _REGION

    def logins(self) -> list[LoginCount]:
        """Sums over all processes, by listener and mechanism."""
        sums: dict[tuple[str, str], list[int]] = {}
        for region in self.regions.values():
            for one in region.logins():
                row = sums.setdefault(one[:2], [0] * OUTCOMES)
                row[:] = [a + b for a, b in zip(row, one[2:], strict=True)]
        return [LoginCount(*who, *row) for who, row in sorted(sums.items())]

    def denials(self) -> dict[tuple[int, int], int]:
        """Sums over all processes, by operation and kind of resource."""
        sums: dict[tuple[int, int], int] = {}
        for region in self.regions.values():
            for operation, kind, count in region.denials():
                sums[operation, kind] = sums.get((operation, kind), 0) + count
        return sums


class Unread:
    """Entries that control has not written yet, over all regions; its reader ends with it."""

    def __init__(self, table: SecurityTable) -> None:
        self._regions = table.regions
        self._readers = {name: one.reader() for name, one in table.regions.items()}
        self._taken: dict[str, list[tuple[int, int]]] = {}

    def take_all(self) -> list[tuple[str, NotedEvent | tuple[int, int]]]:
        """(process, entry, or kind and number of those left out), entries by time.
        A successor of this process takes them again, until `mark_taken`."""
        entries: list[tuple[str, NotedEvent]] = []
        counts: list[tuple[str, tuple[int, int]]] = []
        for name, region in self._regions.items():
            found, missed = self._readers[name].read_events()
            entries += [(name, one) for one in found]
            self._taken[name] = told = region.left_out()
            counts += [(name, one) for one in told]
            if missed:
                counts.append((name, (LOST, missed)))
        entries.sort(key=lambda one: one[1].at_ms)
        return [*entries, *counts]

    def mark_taken(self) -> None:
        """Note that the file has the taken entries."""
        for name, region in self._regions.items():
            region.mark_read(self._readers[name], self._taken.get(name, []))
        self._taken.clear()
