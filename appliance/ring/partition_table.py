"""One row of aligned 8-byte columns per partition, in shared memory, read by everyone without
asking.

Three areas: identity (topic id, partition, in use), written by control when a partition is created
or deleted, the row count published last; state (offsets, sizes, counters), written by the home
ioproc of the partition; what was served of it, written by each netproc in a part of its own. A
handle is the number of a row and, above ROW_BITS, how often the row was given
to another partition: a message that was meant for the one before names nobody.

A single column is read plainly: aligned native stores never tear. Several columns that must belong
together are read with `read_row`, which repeats while the writer is between `begin` and `end` (a
seqlock; x86-64 order assumed).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.base.ids import Handle, TopicId

DEFAULT_ROWS: Final = 16_384
NO_HANDLE: Final = -1
ROW_BITS: Final = 20
ROW_MASK: Final = (1 << ROW_BITS) - 1
GENERATIONS: Final = 1 << 32 - ROW_BITS
"""How often a row changes hands before a handle comes again: handles are 32 bits wide."""

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
VISIBLE_POSITION: Final = 9
"""Bytes of VISIBLE_SEGMENT that lie below the high watermark."""
BYTES_IN: Final = 10
RECORDS_IN: Final = 11
STATUS: Final = 12
DIRECTORY: Final = 13
"""Number of the log folder that the partition lies in."""
FUTURE: Final = 14
"""While the partition moves to another folder: the log end of the copy there, times 256, and the
number of that folder plus 1. Else 0."""
FUTURE_BYTES: Final = 15
LAYOUT: Final = 16
"""Moves before full segments are replaced by compacted ones: a position in a segment that was named
for another layout means nothing, and a file that was opened for it may be either."""
CLEANED_TO: Final = 17
"""Of a compacted log: end offset of what was compacted."""
UNCLEANABLE: Final = 18
"""How often in a row the log could not be compacted."""
RETIRED_AT: Final = 19
"""Of a row that no partition has any more: the end of the metadata that removed its last one.
Written by control."""
BATCHES_IN: Final = 20
"""Like BYTES_IN and RECORDS_IN: what was appended since the appliance started."""
VISIBLE_SEGMENT: Final = 23
"""Base offset of the segment in which the high watermark lies; -1: that is not known. All of the
segments before it is visible."""
STABLE_SEGMENT: Final = 21
"""The same of the last stable offset, for readers with read_committed."""
STABLE_POSITION: Final = 22
"""Bytes of STABLE_SEGMENT that lie below the last stable offset."""
ABORTED_TO: Final = 24
"""1 and the offset behind its last aborted transaction (0: there is none); 0: not known yet."""
LEADERS_MARK: Final = 25
"""Of a partition that follows: the leader's high watermark, as its last answer told it."""
REPLICATED: Final = 26
"""Bytes of batches that were taken from leaders since the appliance started."""
CLEANING_MS: Final = 27
"""How long the last compaction of the log took."""
CLEANING_LATE_MS: Final = 28
"""For how long records of the log have waited for compaction beyond max.compaction.lag.ms."""
COLUMNS: Final = 32  # four cache lines
_STATE: Final = (
    *(VERSION, LOG_START, HIGH_WATERMARK, LAST_STABLE, LOG_END, RECOVERY_POINT, SIZE_BYTES),
    *(LEADER_EPOCH, END_SEGMENT, VISIBLE_SEGMENT, VISIBLE_POSITION, STABLE_SEGMENT),
    *(STABLE_POSITION, BYTES_IN, RECORDS_IN, BATCHES_IN, STATUS, DIRECTORY, FUTURE, FUTURE_BYTES),
    *(LAYOUT, CLEANED_TO, UNCLEANABLE, RETIRED_AT, ABORTED_TO),
)
assert sorted(_STATE) == list(range(len(_STATE))) and len(_STATE) <= COLUMNS, (
    "every column has a place of its own"
)

# Columns of a netproc's part of the served area.
FETCHES: Final = 0
"""Answers to fetches in which there were records of the partition."""
BYTES_OUT: Final = 1
SERVED_COLUMNS: Final = 2
TO_FOLLOWERS: Final = -8
"""Where in each netproc's part, from its end, the same two words are about what was sent to other
nodes' replicas: a cache line of its own, behind all rows."""

# Values of STATUS.
NOT_OPEN: Final = 0
ONLINE: Final = 1
OFFLINE: Final = 2
FOLLOWING: Final = 3
"""It is served here, and another node leads it: its home says so to whoever asks."""

_HEADER_WORDS: Final = 8
_ROW_COUNT: Final = 0
_GIVEN: Final = 1
_IDENTITY_WORDS: Final = 4
_PARTITION: Final = 2
_IN_USE: Final = 3
"""Generation of the row, times two, and 1 while a partition has it."""
_TRIES: Final = 1000


def _word(row: int, word: int) -> int:
    """Where a word of a row's identity is."""
    return _HEADER_WORDS + row * _IDENTITY_WORDS + word


def _served_words(rows: int) -> int:
    """Whole cache lines for one netproc, and one for what is not of a row."""
    return -(-rows * SERVED_COLUMNS // 8) * 8 - TO_FOLLOWERS


class Row(NamedTuple):
    """Identity of a partition and where its row is."""

    handle: Handle
    topic_id: TopicId
    partition: int


class PartitionTable:
    """The table over a memory of `bytes_needed(…)` bytes, all zero at first (untouched rows cost
    nothing). Over memory that cannot be written it is only read."""

    __slots__ = ("_identity", "_journal", "_memory", "rows", "served", "state")

    def __init__(self, memory: memoryview, rows: int = DEFAULT_ROWS, netprocs: int = 1) -> None:
        size = self.bytes_needed(rows, netprocs)
        assert len(memory) >= size
        assert rows <= 1 << ROW_BITS
        split = (_HEADER_WORDS + rows * (_IDENTITY_WORDS + 1)) * 8
        self._journal = _HEADER_WORDS + rows * _IDENTITY_WORDS
        self.rows = rows
        self._memory = memory
        self._identity = memory[:split].cast("q")
        served = split + rows * COLUMNS * 8
        self.state = memory[split:served].cast("q")
        """Hot paths read and write `state[(handle & ROW_MASK) * COLUMNS + HIGH_WATERMARK]`
        themselves."""
        part = _served_words(rows)
        words = memory[served:size].cast("q")
        self.served = tuple(words[n * part : (n + 1) * part] for n in range(netprocs))
        """Of each netproc: `served[n][(handle & ROW_MASK) * SERVED_COLUMNS + BYTES_OUT]`."""

    @staticmethod
    def bytes_needed(rows: int = DEFAULT_ROWS, netprocs: int = 1) -> int:
        """Size of the table's memory in bytes."""
        assert rows % 2 == 0, "the state area begins at a cache line"
        words = _HEADER_WORDS + rows * (_IDENTITY_WORDS + 1 + COLUMNS)
        return (words + netprocs * _served_words(rows)) * 8

    # Identity: control writes ---------------------------------------------------------------------

    @property
    def row_count(self) -> int:
        """Rows below it have an identity, in use or no longer."""
        return self._identity[_ROW_COUNT]

    def add(self, topic_id: TopicId, partition: int) -> int:
        """A row for a new partition: its handle, or NO_HANDLE when every row was given away."""
        row = self._identity[_ROW_COUNT]
        if row >= self.rows:
            return NO_HANDLE
        handle = self._give(row, 0, topic_id, partition)
        self._identity[_ROW_COUNT] = row + 1
        return handle

    def reuse(self, row: int, topic_id: TopicId, partition: int) -> int:
        """A retired row for a new partition: its handle. The caller knows that nobody reads or
        writes the row any more for the partition that had it."""
        used = self._identity[_word(row, _IN_USE)]
        assert row < self.row_count and not used & 1, "the row is in use"
        begin = row * COLUMNS
        for column in range(COLUMNS):
            self.state[begin + column] = 0
        begin = row * SERVED_COLUMNS
        for part in self.served:
            for column in range(SERVED_COLUMNS):
                part[begin + column] = 0
        return self._give(row, ((used >> 1) + 1) % GENERATIONS, topic_id, partition)

    def _give(self, row: int, generation: int, topic_id: TopicId, partition: int) -> int:
        assert len(topic_id) == 16
        identity = self._identity
        at = _word(row, 0)
        self._memory[at * 8 : at * 8 + 16] = topic_id
        identity[at + _PARTITION] = partition
        identity[at + _IN_USE] = generation << 1 | 1
        given = identity[_GIVEN]
        identity[self._journal + given % self.rows] = row
        identity[_GIVEN] = given + 1
        return generation << ROW_BITS | row

    def retire(self, handle: int, offset: int) -> None:
        """The partition was deleted: nobody finds the row any more. offset: the end of the metadata
        that says so."""
        self.set(handle, RETIRED_AT, offset)
        self._identity[_word(handle & ROW_MASK, _IN_USE)] &= ~1

    def in_use(self, handle: int) -> bool:
        """True if the row's partition exists."""
        row = handle & ROW_MASK
        used = (handle >> ROW_BITS) << 1 | 1
        return handle >= 0 and row < self.row_count and self._identity[_word(row, _IN_USE)] == used

    def holder(self, handle: int) -> Row | None:
        """Returns the partition with this handle, None if it is gone."""
        return self._row(handle & ROW_MASK) if self.in_use(handle) else None

    def _row(self, row: int) -> Row | None:
        """Returns the partition of the row; None if it is free or changes hands now."""
        at = _word(row, 0)
        used = self._identity[at + _IN_USE]
        topic_id = TopicId(bytes(self._memory[at * 8 : at * 8 + 16]))
        partition = self._identity[at + _PARTITION]
        if not used & 1 or self._identity[at + _IN_USE] != used:
            return None
        return Row(Handle((used >> 1) << ROW_BITS | row), topic_id, partition)

    def live_rows(self, first: int = 0, last: int | None = None) -> Iterator[Row]:
        """Every partition that exists, in the order of their rows: of all of them, or of those from
        `first` up to `last`, which is not among them. A successor of control finds its handles
        so."""
        for row in range(first, self.row_count if last is None else last):
            found = self._row(row)
            if found is not None:
                yield found

    def memory_of(self, first: int, last: int) -> tuple[memoryview, ...]:
        """The words of rows from `first` up to `last`, which is not among them: identity, state,
        and what each netproc served. Who compares them sees whether anything has changed."""
        return (
            self._identity[_word(first, 0) : _word(last, 0)],
            self.state[first * COLUMNS : last * COLUMNS],
            *(part[first * SERVED_COLUMNS : last * SERVED_COLUMNS] for part in self.served),
        )

    def idle_rows(self) -> list[tuple[int, int]]:
        """Rows that no partition has any more, after the offset at which they were retired."""
        return sorted(
            (self.read_column(row, RETIRED_AT), row)
            for row in range(self.row_count)
            if not self._identity[_word(row, _IN_USE)] & 1
        )

    @property
    def given(self) -> int:
        """How often a row was given to a partition."""
        return self._identity[_GIVEN]

    def given_since(self, seen: int, until: int | None = None) -> Iterator[Row]:
        """Rows given to partitions since `given` was `seen`, and before it was `until` (none: is
        now), those of them that exist; all that exist when more were given than there are."""
        given = self.given
        if given - seen > self.rows:
            yield from self.live_rows()
            return
        for number in range(seen, given if until is None else until):
            found = self._row(self._identity[self._journal + number % self.rows])
            if found is not None:
                yield found

    # State: the home ioproc writes ----------------------------------------------------------------

    def read_column(self, handle: int, column: int) -> int:
        """One column of one row."""
        return self.state[(handle & ROW_MASK) * COLUMNS + column]

    def set(self, handle: int, column: int, value: int) -> None:
        """One column of one row; readers see the old or the new value."""
        self.state[(handle & ROW_MASK) * COLUMNS + column] = value

    def column(self, column: int) -> list[int]:
        """One column of every row below `row_count`."""
        rows: list[int] = self.state[column : self.row_count * COLUMNS : COLUMNS].tolist()
        return rows

    def holders(self) -> list[int]:
        """Returns the generation of every row below `row_count`: it differs for another partition,
        and is odd while the row is in use."""
        end = _word(self.row_count, 0)
        rows: list[int] = self._identity[_word(0, _IN_USE) : end : _IDENTITY_WORDS].tolist()
        return rows

    def topics(self) -> int:
        """How many topics have a partition here."""
        end = _word(self.row_count, 0)
        first = self._identity[_word(0, 0) : end : _IDENTITY_WORDS].tolist()
        second = self._identity[_word(0, 1) : end : _IDENTITY_WORDS].tolist()
        rows = zip(first, second, self.holders(), strict=True)
        return len({(one, two) for one, two, holder in rows if holder & 1})

    def topic_of(self, row: int) -> TopicId:
        """Returns the topic id of the row's current or last partition."""
        at = _word(row, 0) * 8
        return TopicId(bytes(self._memory[at : at + 16]))

    def served_of(self, handle: int) -> tuple[int, int]:
        """(FETCHES, BYTES_OUT) of all netprocs together."""
        at = (handle & ROW_MASK) * SERVED_COLUMNS
        fetches = sum(part[at + FETCHES] for part in self.served)
        return fetches, sum(part[at + BYTES_OUT] for part in self.served)

    def begin_change(self, handle: int) -> None:
        """Columns that belong together are about to change. A predecessor may have died in
        between."""
        at = (handle & ROW_MASK) * COLUMNS + VERSION
        version = self.state[at]
        self.state[at] = version + 1 + (version & 1)

    def end_change(self, handle: int) -> None:
        """They belong together again."""
        at = (handle & ROW_MASK) * COLUMNS + VERSION
        assert self.state[at] & 1, "end without begin"
        self.state[at] += 1

    def read_row(self, handle: int) -> list[int]:
        """All columns as they were at one moment. If the writer died between begin and end, each
        column is still a value that was true, only not all of them at the same moment."""
        at = (handle & ROW_MASK) * COLUMNS
        state = self.state
        row: list[int] = []
        for _ in range(_TRIES):
            row = state[at : at + COLUMNS].tolist()
            if not row[VERSION] & 1 and state[at] == row[VERSION]:
                break
        return row
