"""Compaction of full segments (KIP-58, KIP-280's default strategy, KIP-534): the newest record of
every key stays.

`read_keys` notes the newest offset of each key in the dirty part, as far as memory reaches; `clean`
then writes the segments up to there anew, without what was replaced, into `.cleaned` files, synced.
Invariant: what is written keeps its offset, its time and its order; nothing that readers look at is
changed here. Not for the loop of an I/O process: the cost is per record. Caller: the cleaner's
process (`ioproc/retention/cleaner_process.py`).
"""

import errno
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from appliance.base.crc import crc32c
from appliance.base.disk import Disk
from appliance.base.errors import PeerError, StorageFailed
from appliance.logstore.aborted import AbortedTransactions
from appliance.logstore.compacted_batch import empty, filtered, opened
from appliance.logstore.compacted_segment import Cleaned, SegmentWriter
from appliance.logstore.files import LOG, stem
from appliance.logstore.offset_map import OffsetMap
from appliance.logstore.scan import HeaderFields
from appliance.logstore.transactions_seen import TransactionsSeen
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX,
    MAGIC,
    TRANSACTIONAL_BIT,
)
from appliance.wire.record_keys import Place, places

_FARTHEST: Final = (1 << 31) - 1

Source = tuple[int, int]
"""A full segment: base offset and bytes."""

Spent = Callable[[int], None]
"""Told how many bytes were read or written; may wait to keep a rate."""


class Work(NamedTuple):
    """One cleaning of one log. segments: all that are full and may be cleaned, oldest first.
    first_dirty: below it an earlier cleaning has been. upper: no record from there on is looked
    at. producers: id → (epoch, last offset or -1) of those that are active. memory: bytes for
    keys. load_factor: how full they may get, 0 to 1. chunk: bytes per read. Times in ms."""

    folder: str
    segments: list[Source]
    first_dirty: int
    upper: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    producers: dict[int, tuple[int, int]]
    memory: int
    load_factor: float
    chunk: int


class Compactor:
    """One cleaning. end_offset: where the part ends whose keys were read; `first_dirty` of the next
    cleaning. records_read, records_kept: of the segments that were written anew."""

    __slots__ = (
        "_disk",
        "_offsets",
        "_seen",
        "_spent",
        "_work",
        "end_offset",
        "records_kept",
        "records_read",
    )

    def __init__(self, disk: Disk, work: Work, spent: Spent) -> None:
        self._disk = disk
        self._work = work
        self._spent = spent
        self._offsets = OffsetMap(work.memory, work.load_factor)
        self._seen: TransactionsSeen | None = None
        self.end_offset = work.first_dirty
        self.records_read = self.records_kept = 0

    # The keys of the dirty part -------------------------------------------------------------------

    def read_keys(self) -> None:
        """Note the newest offset of every key, batch by batch, until the memory is used up.

        Raises StorageFailed, also for a damaged batch.
        """
        work, offsets = self._work, self._offsets
        for base, size in self._dirty():
            for header, batch in self._batches(base, size):
                behind = header[0] + header[6] + 1
                if behind <= work.first_dirty:
                    continue
                if behind > work.upper or (offsets.full and self.end_offset > work.first_dirty):
                    return
                if header[12] and not header[5] & CONTROL_BIT and not self._aborted(header):
                    found = self._places(header, batch)[1]
                    offsets.note_batch(found, header[0], work.first_dirty - header[0])
                self.end_offset = behind
        if self.end_offset < work.upper and not offsets.full:
            self.end_offset = work.upper  # the last batches were compacted away

    def _dirty(self) -> Iterator[Source]:
        segments = self._work.segments
        for number, (base, size) in enumerate(segments):
            following = segments[number + 1][0] if number + 1 < len(segments) else self._work.upper
            if following > self._work.first_dirty:
                yield base, size

    def _transactions(self) -> TransactionsSeen:
        """Which transactions were aborted; read when the first batch of one comes."""
        if self._seen is None:
            self._seen = TransactionsSeen(
                AbortedTransactions(self._disk, self._work.folder, layout=0)
            )
        return self._seen

    def _aborted(self, header: HeaderFields) -> bool:
        return bool(header[5] & TRANSACTIONAL_BIT) and self._transactions().aborted(header)

    # Which segments become one --------------------------------------------------------------------

    def groups(self) -> list[list[Source]]:
        """The segments to write anew, those together that fit one segment and its index."""
        work = self._work
        groups: list[list[Source]] = []
        total = index = 0
        for base, size in work.segments:
            if base >= self.end_offset:
                break
            entries = size // max(work.index_interval_bytes, 1) * 12
            if (
                groups
                and total + size <= work.segment_bytes
                and index + entries <= work.segment_index_bytes
                and self._following(base) - groups[-1][0][0] <= _FARTHEST
            ):
                groups[-1].append((base, size))
                total, index = total + size, index + entries
            else:
                groups.append([(base, size)])
                total, index = size, entries
        return groups

    def _following(self, base: int) -> int:
        bases = [found for found, _ in self._work.segments if found > base]
        return bases[0] if bases else self._work.upper

    # Writing anew ---------------------------------------------------------------------------------

    def clean(self, group: list[Source]) -> Cleaned:
        """Write what stays of a group into `.cleaned` files of its first base offset, durably.

        Groups must come in order. Raises StorageFailed.
        """
        work = self._work
        writer = SegmentWriter(self._disk, work.folder, group[0][0], work.index_interval_bytes)
        try:
            for base, size in group:
                for header, batch in self._batches(base, size):
                    self.records_read += header[12]
                    kept = self._kept(header, batch, writer)
                    if kept is not None:
                        writer.add(kept)
                        self._spent(len(kept))
            return writer.finish()
        finally:
            writer.close()

    def _kept(
        self, header: HeaderFields, batch: memoryview, writer: SegmentWriter
    ) -> bytes | memoryview | None:
        """The retained form of a batch: all of it, a smaller one, its empty header, or None. The
        transaction index keeps an aborted transaction while some of it is left.
        """
        attributes, behind = header[5], header[0] + header[6] + 1
        discard = False
        if attributes & TRANSACTIONAL_BIT:
            discard = self._transactions().discards(header)
            if attributes & CONTROL_BIT and not discard:
                writer.note_marker(self._transactions().entry(header))
        horizon = header[7] if attributes & DELETE_HORIZON_BIT else None
        over = horizon is not None and horizon <= self._work.now_ms
        control = bool(attributes & CONTROL_BIT)
        body, found = self._places(header, batch)
        if discard and (over or not control):
            kept: list[Place] = []
        elif control:
            kept = found
        else:
            kept = self._newest(header[0], found, drop_tombstones=over)
        self.records_kept += len(kept)
        wants_horizon = horizon is None and bool(kept)
        if wants_horizon:
            wants_horizon = discard if control else not all(place[4] for place in kept)
        if len(kept) == len(found) and kept and not wants_horizon:
            return batch
        if kept:
            new = self._work.now_ms + self._work.delete_retention_ms if wants_horizon else None
            return filtered(header, body, kept, new)
        if behind == self.end_offset or self._is_last_of_producer(header):
            return empty(header)
        return None

    def _newest(self, base: int, found: list[Place], *, drop_tombstones: bool) -> list[Place]:
        newest, end = self._offsets.newest, self.end_offset
        kept = []
        for place in found:
            _, _, delta, key, has_value = place
            offset = base + delta
            if offset < end:
                if key is None:
                    continue
                if newest(key) > offset or (drop_tombstones and not has_value):
                    continue
            kept.append(place)
        return kept

    def _is_last_of_producer(self, header: HeaderFields) -> bool:
        """Its sequence number must outlive its records (KIP-98)."""
        known = self._work.producers.get(header[9]) if header[9] >= 0 else None
        if known is None:
            return False
        epoch, last_offset = known
        if last_offset < 0:
            return bool(header[5] & CONTROL_BIT) and header[10] == epoch
        return header[0] + header[6] == last_offset

    # Reading --------------------------------------------------------------------------------------

    def _places(self, header: HeaderFields, batch: memoryview) -> tuple[bytes, list[Place]]:
        try:
            body = opened(header, batch)
            return body, places(body, header[12])
        except PeerError as error:
            raise self._corrupt(header[0], error.message) from error

    def _corrupt(self, offset: int, text: str) -> StorageFailed:
        return StorageFailed(
            self._work.folder, errno.EBADMSG, f"corrupt at offset {offset}: {text}; not compacted"
        )

    def _batches(self, base: int, size: int) -> Iterator[tuple[HeaderFields, memoryview]]:
        """Header and bytes of every batch of a segment, checked. The bytes hold until the next."""
        file = self._disk.open_file(stem(self._work.folder, base) + LOG)
        try:
            position, need, next_offset = 0, self._work.chunk, base
            while position < size:
                asked = min(need, size - position)
                data = memoryview(file.pread(asked, position))
                if len(data) < asked:
                    raise self._corrupt(next_offset, "the segment has lost its end")
                self._spent(asked)
                at, need = 0, self._work.chunk
                while at + HEADER_SIZE <= asked:
                    header = HEADER.unpack_from(data, at)
                    length = header[1] + LENGTH_PREFIX
                    if header[3] != MAGIC or header[0] < next_offset or length < HEADER_SIZE:
                        raise self._corrupt(next_offset, "there is no batch of format 2")
                    if at + length > asked:
                        need = max(need, length)
                        break
                    if crc32c(data[at + ATTRIBUTES_AT : at + length]) != header[4]:
                        raise self._corrupt(header[0], "the CRC32C does not match")
                    yield header, data[at : at + length]
                    at, next_offset = at + length, header[0] + header[6] + 1
                if not at and asked == size - position:
                    raise self._corrupt(next_offset, "the segment ends inside a batch")
                position += at
        finally:
            file.close()
