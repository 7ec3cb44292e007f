"""One row of aligned 8-byte columns per partition, in shared memory, read by everyone without
asking.

Two areas: identity (topic id, partition, in use), written by control when a partition is created or
deleted, the row count published last; state (offsets, sizes, counters), written by the home ioproc
of the partition. A handle is the number of a row and is never reused while the appliance runs.

A single column is read plainly: aligned native stores never tear. Several columns that must belong
together are read with `read_row`, which repeats while the writer is between `begin` and `end` (a
seqlock; x86-64 order assumed).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.base.ids import Handle, TopicId

DEFAULT_ROWS: Final = 16_384
NO_HANDLE: Final = -1

# Columns of the state area.
VERSION: Final = 0
"""The seqlock: odd while the home ioproc changes several columns."""
LOG_START: Final = 1
HIGH_WATERMARK: Final = 2
LAST_STABLE: Final = 3
LOG_END: Final = 4
RECOVERY_POINT: Final = 5
"""Offset below which everything has been synced to the disk."""
SIZE_BYTES: Final = 6
LEADER_EPOCH: Final = 7
END_SEGMENT: Final = 8
"""Base offset of the active segment."""
END_POSITION: Final = 9
"""Bytes of the active segment that were written whole: after the death of the process they need no
check."""
BYTES_IN: Final = 10
RECORDS_IN: Final = 11
STATUS: Final = 12
COLUMNS: Final = 16  # two cache lines

# Values of STATUS.
NOT_OPEN: Final = 0
ONLINE: Final = 1
OFFLINE: Final = 2

_HEADER_WORDS: Final = 8
_ROW_COUNT: Final = 0
_IDENTITY_WORDS: Final = 4
_PARTITION: Final = 2
_IN_USE: Final = 3
_TRIES: Final = 1000


class Row(NamedTuple):
    """Identity of a partition and where its row is."""

    handle: Handle
    topic_id: TopicId
    partition: int


class PartitionTable:
    """The table over a memory of `bytes_needed(rows)` bytes, all zero at first (untouched rows cost
    nothing)."""

    __slots__ = ("_identity", "_memory", "rows", "state")

    def __init__(self, memory: memoryview, rows: int = DEFAULT_ROWS) -> None:
        size = self.bytes_needed(rows)
        assert len(memory) >= size and not memory.readonly
        split = (_HEADER_WORDS + rows * _IDENTITY_WORDS) * 8
        self.rows = rows
        self._memory = memory
        self._identity = memory[:split].cast("q")
        self.state = memory[split:size].cast("q")
        """Hot paths read and write `state[handle * COLUMNS + HIGH_WATERMARK]` themselves."""

    @staticmethod
    def bytes_needed(rows: int = DEFAULT_ROWS) -> int:
        """Size of the table's memory in bytes."""
        assert rows % 2 == 0, "the state area begins at a cache line"
        return (_HEADER_WORDS + rows * (_IDENTITY_WORDS + COLUMNS)) * 8

    # Identity: control writes ---------------------------------------------------------------------

    @property
    def row_count(self) -> int:
        """Rows below it have an identity, in use or no longer."""
        return self._identity[_ROW_COUNT]

    def add(self, topic_id: TopicId, partition: int) -> int:
        """A row for a new partition: its handle, or NO_HANDLE when the table is full."""
        assert len(topic_id) == 16
        handle = self._identity[_ROW_COUNT]
        if handle >= self.rows:
            return NO_HANDLE
        at = _HEADER_WORDS + handle * _IDENTITY_WORDS
        self._memory[at * 8 : at * 8 + 16] = topic_id
        self._identity[at + _PARTITION] = partition
        self._identity[at + _IN_USE] = 1
        self._identity[_ROW_COUNT] = handle + 1
        return handle

    def retire(self, handle: int) -> None:
        """The partition was deleted: nobody finds the row any more."""
        self._identity[_HEADER_WORDS + handle * _IDENTITY_WORDS + _IN_USE] = 0

    def in_use(self, handle: int) -> bool:
        """Whether the row's partition exists."""
        return (
            0 <= handle < self.row_count
            and self._identity[_HEADER_WORDS + handle * _IDENTITY_WORDS + _IN_USE] != 0
        )

    def identity(self, handle: int) -> Row:
        """Topic id and partition of a row below `row_count`."""
        assert 0 <= handle < self.row_count
        at = _HEADER_WORDS + handle * _IDENTITY_WORDS
        topic_id = TopicId(bytes(self._memory[at * 8 : at * 8 + 16]))
        return Row(Handle(handle), topic_id, self._identity[at + _PARTITION])

    def live_rows(self, start: int = 0) -> Iterator[Row]:
        """Every partition that exists, from row `start` on. A successor of control finds its
        handles so."""
        for handle in range(start, self.row_count):
            if self.in_use(handle):
                yield self.identity(handle)

    # State: the home ioproc writes ----------------------------------------------------------------

    def get(self, handle: int, column: int) -> int:
        """One column of one row."""
        return self.state[handle * COLUMNS + column]

    def set(self, handle: int, column: int, value: int) -> None:
        """One column of one row; readers see the old or the new value."""
        self.state[handle * COLUMNS + column] = value

    def begin(self, handle: int) -> None:
        """Columns that belong together are about to change. A predecessor may have died in
        between."""
        at = handle * COLUMNS + VERSION
        version = self.state[at]
        self.state[at] = version + 1 + (version & 1)

    def end(self, handle: int) -> None:
        """They belong together again."""
        at = handle * COLUMNS + VERSION
        assert self.state[at] & 1, "end without begin"
        self.state[at] += 1

    def read_row(self, handle: int) -> list[int]:
        """All columns as they were at one moment. If the writer died between begin and end, each
        column is still a value that was true, only not all of them at the same moment."""
        at = handle * COLUMNS
        state = self.state
        row: list[int] = []
        for _ in range(_TRIES):
            row = state[at : at + COLUMNS].tolist()
            if not row[VERSION] & 1 and state[at] == row[VERSION]:
                break
        return row
