"""Steps through the batches of a segment file in big reads: recovery, lookups behind an index
entry, timestamps.

Invariant: a batch that comes out lies whole inside the file, has format 2 and does not go back in
offsets; unless it is trusted, its CRC32C was checked and it follows the one before without a gap.
The first batch that does not hold ends the scan.
"""

from collections.abc import Iterator
from typing import Final

from appliance.base.crc import crc32c
from appliance.base.disk import File
from appliance.wire.batch_header import ATTRIBUTES_AT, HEADER, HEADER_SIZE, LENGTH_PREFIX, MAGIC

CHUNK: Final = 1 << 20
_SHORTEST: Final = HEADER_SIZE - LENGTH_PREFIX

HeaderFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
"""The fields of `BatchHeader` as plain tuple."""
Found = tuple[int, HeaderFields]
"""Position of a batch and its header."""


class Scan:
    """One pass over a file from `position` to `end`.

    next_offset: what the next batch must begin with (trusted batches may begin later: compaction
    leaves gaps). trust_offset, trust_position: a batch is trusted when it ends below this offset
    or begins below this position. gaps: whether a batch that is not trusted may begin later, too.
    chunk: bytes per read. After the last chunk `position` and `next_offset` say how far it went
    and `problem` why not further ("" at the end).
    """

    __slots__ = (
        "_buffer",
        "end",
        "file",
        "gaps",
        "next_offset",
        "position",
        "problem",
        "trust_offset",
        "trust_position",
    )

    def __init__(
        self,
        file: File,
        position: int,
        end: int,
        next_offset: int,
        *,
        trust_offset: int = 0,
        trust_position: int = 0,
        gaps: bool = False,
        chunk: int = CHUNK,
    ) -> None:
        self.file = file
        self._buffer = bytearray(min(chunk, max(end - position, HEADER_SIZE)))
        self.position = position
        self.end = end
        self.next_offset = next_offset
        self.trust_offset = trust_offset
        self.trust_position = trust_position
        self.gaps = gaps
        self.problem = ""

    def chunks(self) -> Iterator[list[Found]]:
        """The batches, as many at a time as one read gives. Raises StorageFailed when a read
        fails."""
        while self.position < self.end and not self.problem:
            got = self.file.preadinto(self._buffer, self.position)
            found, need = self._step(got)
            if need > len(self._buffer):
                self._buffer = bytearray(need)
            if found:
                yield found

    def _step(self, got: int) -> tuple[list[Found], int]:
        """Take what lies in the first `got` bytes of the buffer; also how many bytes the next read
        needs."""
        start, next_offset = self.position, self.next_offset
        trust_offset, trust_at = self.trust_offset, self.trust_position - start
        room = self.end - start
        cut_short = got < min(len(self._buffer), room)
        unpack = HEADER.unpack_from
        found: list[Found] = []
        at = need = 0
        with memoryview(self._buffer) as view:
            while at < room:
                if at + HEADER_SIZE > got:
                    if cut_short or room - at < HEADER_SIZE:
                        self.problem = "the header of a batch is cut off"
                    break
                header = unpack(view, at)
                base, length, _, magic, crc, _, last_delta, _, _, _, _, _, _ = header
                size = length + LENGTH_PREFIX
                if length < _SHORTEST or magic != MAGIC or base < next_offset or last_delta < 0:
                    self.problem = "there is no batch of format 2 that continues the log"
                    break
                if size > room - at:
                    self.problem = f"a batch of {size} bytes is cut off after {room - at}"
                    break
                if at >= trust_at and base + last_delta >= trust_offset:
                    if base != next_offset and not self.gaps:
                        self.problem = f"offset {next_offset} should follow, it is {base}"
                        break
                    if at + size > got:
                        need = size
                        if cut_short:
                            self.problem = f"a batch of {size} bytes is cut off"
                        break
                    if crc32c(view[at + ATTRIBUTES_AT : at + size]) != crc:
                        self.problem = "the CRC32C of a batch does not match its bytes"
                        break
                found.append((start + at, header))
                next_offset = base + last_delta + 1
                at += size
        self.position = start + at
        self.next_offset = next_offset
        return found, need
