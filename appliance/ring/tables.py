"""The tables of an appliance in one piece of memory, behind a head that says how it is cut.

Whoever makes the memory lays the tables out by their shape and publishes the head when they can be
read; whoever finds it reads the shape there. The head's first word is written last. Readers lay the
same classes over memory that they cannot write.
"""

from typing import Final, NamedTuple

from appliance.ring.bound_table import BoundTable
from appliance.ring.client_table import ClientTable
from appliance.ring.counters import Counters
from appliance.ring.event_ring import EventTable
from appliance.ring.lag_table import LagTable
from appliance.ring.partition_table import PartitionTable
from appliance.ring.process_table import ProcessTable
from appliance.ring.push_table import DEFAULT_ROWS as PUSH_ROWS
from appliance.ring.push_table import PushTable
from appliance.ring.quota_table import DEFAULT_ROWS as QUOTA_ROWS
from appliance.ring.quota_table import QuotaTable
from appliance.ring.security_table import SecurityTable

PAGE: Final = 4096
"""Every table begins on a page of its own, the first one behind the head."""

SEGMENT: Final = "penstock-tables-"
"""How the name of the shared memory begins that holds the tables."""

_MAGIC: Final = int.from_bytes(b"penstock", "little")
FORMAT: Final = 24
"""Raise it with every change of a table's columns: an older reader refuses then. A test holds it
against what they were (`tests/ring/test_tables.py`)."""
_HEAD: Final = 16  # words: magic, format, pid, start, and the shape


class Shape(NamedTuple):
    """Inputs of the tables' sizes."""

    ioprocs: int
    netprocs: int
    partition_rows: int
    quota_windows: int
    quota_rows: int = QUOTA_ROWS
    push_rows: int = PUSH_ROWS


class Head(NamedTuple):
    """pid: of the supervisor. started_ms: wall clock. size: bytes of head and tables."""

    pid: int
    started_ms: int
    shape: Shape
    size: int


class UnknownTables(ValueError):
    """The memory holds no tables, not yet, or those of another version."""


class Tables:
    """All of them over one memory of `bytes_needed(shape)` bytes, all zero at first."""

    __slots__ = (
        "_head",
        "bounds",
        "clients",
        "counters",
        "events",
        "lags",
        "partitions",
        "processes",
        "pushes",
        "quotas",
        "security",
        "shape",
    )

    def __init__(self, memory: memoryview, shape: Shape) -> None:
        assert len(memory) >= self.bytes_needed(shape)
        cut = []
        at = PAGE
        for size in _sizes(shape):
            cut.append(memory[at : at + size])
            at += size
        ioprocs, netprocs, rows, windows, quota_rows, push_rows = shape
        self.shape = shape
        self._head = memory[: _HEAD * 8].cast("q")
        self.processes = ProcessTable(cut[0], ioprocs=ioprocs, netprocs=netprocs)
        self.partitions = PartitionTable(cut[1], rows, netprocs)
        self.quotas = QuotaTable(cut[2], netprocs + 1, windows, quota_rows)
        self.counters = Counters(cut[3], ioprocs=ioprocs, netprocs=netprocs)
        self.clients = ClientTable(cut[4], netprocs)
        self.lags = LagTable(cut[5], ioprocs)
        self.events = EventTable(cut[6], ioprocs=ioprocs, netprocs=netprocs)
        self.pushes = PushTable(cut[7], netprocs, push_rows)
        self.security = SecurityTable(cut[8], ioprocs=ioprocs, netprocs=netprocs)
        self.bounds = BoundTable(cut[9], ioprocs=ioprocs, netprocs=netprocs)

    @staticmethod
    def bytes_needed(shape: Shape) -> int:
        """Size of the memory in bytes, whole pages."""
        return PAGE + sum(_sizes(shape))

    def publish(self, pid: int, started_ms: int) -> None:
        """From now on `read_head` finds them. pid: the supervisor's."""
        words = self._head
        for word, value in enumerate((FORMAT, pid, started_ms, *self.shape), 1):
            words[word] = value
        words[0] = _MAGIC


def _sizes(shape: Shape) -> list[int]:
    ioprocs, netprocs, rows, windows, quota_rows, push_rows = shape
    sizes = (
        ProcessTable.bytes_needed(ioprocs, netprocs),
        PartitionTable.bytes_needed(rows, netprocs),
        QuotaTable.bytes_needed(netprocs + 1, windows, quota_rows),
        Counters.bytes_needed(ioprocs, netprocs),
        ClientTable.bytes_needed(netprocs),
        LagTable.bytes_needed(ioprocs),
        EventTable.bytes_needed(ioprocs, netprocs),
        PushTable.bytes_needed(netprocs, push_rows),
        SecurityTable.bytes_needed(ioprocs, netprocs),
        BoundTable.bytes_needed(ioprocs, netprocs),
    )
    return [-(-size // PAGE) * PAGE for size in sizes]


def read_head(memory: memoryview) -> Head:
    """Reads the head at the start of `memory`. Raises UnknownTables."""
    if len(memory) < PAGE:
        raise UnknownTables("it is too small")
    with memory[: _HEAD * 8] as part, part.cast("q") as view:
        words = view.tolist()
    if words[0] != _MAGIC:
        raise UnknownTables("the appliance is just starting")
    if words[1] != FORMAT:
        raise UnknownTables(f"its tables have format {words[1]}, this program reads {FORMAT}")
    shape = Shape(*words[4 : 4 + len(Shape._fields)])
    return Head(words[2], words[3], shape, Tables.bytes_needed(shape))
