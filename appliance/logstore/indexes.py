"""The two sparse indexes of a segment, in memory as arrays and on disk as Kafka writes them.

Offset index: 8 bytes per entry, int32 offset relative to the base and int32 position of the batch
that ends with it. Time index: 12 bytes, int64 timestamp in ms and int32 relative offset: no record
up to that offset is newer. Both are derived from the log: what is missing or damaged is built
again, so their bytes may reach the disk late. `written` says how many entries the file has, and
`stored` how many bytes, -1: there is none; the log asks for `pending` bytes now and then.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

OFFSET_ENTRY: Final = 8
TIME_ENTRY: Final = 12
INDEX_WRITE: Final = 512
"""Index entries gathered before they are written to the files."""

_TIME: Final = Struct(">qi")
assert _TIME.size == TIME_ENTRY
assert array("i").itemsize == 4


class OffsetIndex:
    """Relative offset → position, ascending in both."""

    __slots__ = ("offsets", "positions", "stored", "written")

    def __init__(self, data: bytes | None = b"") -> None:
        """data: what the file holds, None: there is none. Zeros at the end (space that Kafka
        reserved) and half entries are dropped."""
        self.stored = -1 if data is None else len(data)
        data = data or b""
        numbers = array("i", data[: len(data) // OFFSET_ENTRY * OFFSET_ENTRY])
        if sys.byteorder == "little":
            numbers.byteswap()
        self.offsets = numbers[0::2]
        self.positions = numbers[1::2]
        count = len(self.offsets)
        while count and not self.offsets[count - 1] and not self.positions[count - 1]:
            count -= 1
        self.written = len(self.offsets)
        self.keep_entries(count)

    def keep_sound(self, size: int) -> None:
        """Drop what lies behind a segment of `size` bytes, and everything if it does not ascend."""
        offsets, positions = self.offsets, self.positions
        if offsets and not (
            offsets[0] >= 0
            and positions[0] >= 0
            and all(map(int.__lt__, offsets, offsets[1:]))
            and all(map(int.__lt__, positions, positions[1:]))
        ):
            self.keep_entries(0)
        self.keep_entries(bisect_left(positions, size))

    def is_stored(self) -> bool:
        """True if the file has exactly these entries."""
        return self.stored == self.written * OFFSET_ENTRY and self.written == len(self.offsets)

    def append(self, relative: int, position: int) -> None:
        self.offsets.append(relative)
        self.positions.append(position)

    def position(self, relative: int) -> int:
        """Where to start looking for a relative offset: never behind its batch."""
        # An entry names the last offset of its batch: an equal one is that batch itself.
        at = bisect_right(self.offsets, relative) - 1
        return self.positions[at] if at >= 0 else 0

    def keep_entries(self, count: int) -> None:
        """Drop all but the first `count` entries."""
        del self.offsets[count:], self.positions[count:]
        self.written = min(self.written, count)

    def count_to(self, relative: int) -> int:
        """How many entries there are up to and with a relative offset."""
        return bisect_right(self.offsets, relative)

    def pending(self) -> bytes:
        """The entries that the file does not have yet, encoded."""
        numbers = array("i")
        for pair in zip(self.offsets[self.written :], self.positions[self.written :], strict=True):
            numbers.extend(pair)
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()


class TimeIndex:
    """Timestamp → relative offset, ascending in both."""

    __slots__ = ("offsets", "stored", "timestamps", "written")

    def __init__(self, data: bytes | None = b"") -> None:
        """data: what the file holds, None: there is none. Zeros at the end and half entries are
        dropped."""
        self.stored = -1 if data is None else len(data)
        data = data or b""
        self.timestamps = array("q")
        self.offsets = array("i")
        last = -1
        whole = data[: len(data) // TIME_ENTRY * TIME_ENTRY]
        for timestamp, relative in _TIME.iter_unpack(whole):
            if timestamp <= last or relative < 0:
                break
            self.timestamps.append(timestamp)
            self.offsets.append(relative)
            last = timestamp
        self.written = len(self.timestamps)

    def is_stored(self) -> bool:
        """True if the file has exactly these entries."""
        return self.stored == self.written * TIME_ENTRY and self.written == len(self.offsets)

    def append(self, timestamp: int, relative: int) -> None:
        """Note the newest timestamp so far; nothing happens unless it is newer than the last
        entry's."""
        timestamps = self.timestamps
        if timestamp >= 0 and (not timestamps or timestamp > timestamps[-1]):
            timestamps.append(timestamp)
            self.offsets.append(relative)

    def newest(self) -> tuple[int, int]:
        """The last entry: timestamp and relative offset; (-1, 0) when there is none."""
        if not self.timestamps:
            return -1, 0
        return self.timestamps[-1], self.offsets[-1]

    def offset_before(self, timestamp: int) -> int:
        """A relative offset up to which every record is older than `timestamp`; 0 when none is
        known."""
        at = bisect_left(self.timestamps, timestamp) - 1
        return self.offsets[at] if at >= 0 else 0

    def keep_to(self, relative: int) -> None:
        """Drop the entries behind a relative offset."""
        count = bisect_right(self.offsets, relative)
        del self.offsets[count:], self.timestamps[count:]
        self.written = min(self.written, count)

    def pending(self) -> bytes:
        """The entries that the file does not have yet, encoded."""
        start = self.written
        return b"".join(
            _TIME.pack(*pair)
            for pair in zip(self.timestamps[start:], self.offsets[start:], strict=True)
        )
