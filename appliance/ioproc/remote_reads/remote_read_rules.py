"""Answers reads below the local log start from segments of the remote store (KIP-405).

As `partitions/read_rules.py` does for local segments: a completion names bytes of a file, here one
of the cache (`remote_files.py`). Invariant: whole batches, never above the high watermark, because
only what lies below the last stable offset is copied. Called by `requests/reads.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.ioproc.netproc_peer import Completion, refusal
from appliance.ioproc.partitions import read_rules
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote_reads.file_cache import CachedFile
from appliance.ioproc.remote_reads.lineage import lineage_end
from appliance.ioproc.remote_reads.remote_files import FileOnItsWay, RemoteFiles, RemoteReadFailed
from appliance.ioproc.remote_reads.segment_chunks import SegmentChunks
from appliance.logstore import aborted, lookup
from appliance.logstore.indexes import TimeIndex
from appliance.logstore.segment import Segment
from appliance.remotelog.objects import TIME_INDEX, TRANSACTION_INDEX
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord
from appliance.remotelog.segments import RemoteSegments
from appliance.ring.messages import (
    FOUND,
    LISTED,
    READ_COMMITTED,
    READ_REPLICA,
    READ_WAIT,
    REMOTE_COMES,
)
from appliance.ring.slots import pack_listed
from appliance.wire.batch_header import INT64
from appliance.wire.ranges import NEVER, Batch, NotABatch, Read, cut_sparsely, seek

LATEST_TIERED: Final = -5
EARLIEST_PENDING: Final = -6
OF_TIERS: Final = (LATEST_TIERED, EARLIEST_PENDING)
LIST_WAIT_MS: Final = 30_000
_READ: Final = 16 << 10

SegmentsOf = Callable[[Partition], RemoteSegments | None]
"""The remote segments of a partition; None while they are not known yet, or there can be none."""


class RemoteReads:
    """files: of remote segments, and the cache of them. list_wait_ms: how long a search by time may
    take, as it is now."""

    __slots__ = ("_segments_of", "files", "list_wait_ms")

    def __init__(
        self,
        files: RemoteFiles,
        segments_of: SegmentsOf,
        list_wait_ms: Callable[[], int] = lambda: LIST_WAIT_MS,
    ) -> None:
        self.files = files
        self.list_wait_ms = list_wait_ms
        self._segments_of = segments_of

    # Fetch ----------------------------------------------------------------------------------------

    def find_bytes(
        self, partition: Partition, token: int, flags: int, offset: int, epoch: int, max_bytes: int
    ) -> Completion | None:
        """As `read_rules.find_bytes`, for an offset before the first local segment. None: the bytes
        are on their way and the read may wait. Where it may not, the answer says so by its layout
        (REMOTE_COMES), and the next read finds them."""
        log, progress = partition.log, partition.progress
        code = errors.NONE
        if epoch != -1 and epoch != partition.leader_epoch:
            code = read_rules.stale(partition, epoch)
        elif offset < log.log_start_offset:
            code = errors.OFFSET_OUT_OF_RANGE
        elif flags & READ_REPLICA:
            code = errors.OFFSET_MOVED_TO_TIERED_STORAGE
        position = length = first = layout = 0
        if not code:
            try:
                found = self._locate(partition, offset, max_bytes)
                if found is None:  # nothing but a gap lies between it and the local log
                    local, enough = log.segments[0].base, 0
                    return read_rules.find_bytes(
                        partition, token, flags & ~READ_WAIT, local, epoch, max_bytes, enough
                    )
                number, position, length, first = found
                layout = -number
                if flags & READ_COMMITTED:
                    self._transactions(partition, offset, self._end_of(layout, position, length))
            except FileOnItsWay:
                if flags & READ_WAIT:
                    return None
                position = length = first = 0
                layout = REMOTE_COMES
            except RemoteReadFailed as failed:
                code = failed.code
                position = length = first = layout = 0
            except StorageFailed:  # the cache is not what it was: the next read fetches anew
                code = errors.KAFKA_STORAGE_ERROR
                position = length = first = layout = 0
        return (
            FOUND,
            code + 1,
            partition.handle,
            token,
            progress.high_watermark,
            progress.last_stable,
            log.log_start_offset,
            0,
            position,
            partition.leader_epoch,
            layout,
            0,
            length,
            first,
        )

    def transactions_of(
        self, partition: Partition, offset: int, answer: Completion
    ) -> list[tuple[int, int]]:
        """The aborted transactions in the range that `find_bytes` answered in this turn: producer
        id and first offset of each."""
        _, _, _, _, _, _, _, _, position, _, layout, _, length, _ = answer
        if not length:
            return []
        return self._transactions(partition, offset, self._end_of(layout, position, length))

    def _segments(self, partition: Partition) -> RemoteSegments:
        known = self._segments_of(partition)
        if known is None:
            text = "the metadata of its remote segments is not read yet"
            raise RemoteReadFailed(errors.KAFKA_STORAGE_ERROR, text)
        return known

    def _locate(
        self, partition: Partition, offset: int, max_bytes: int
    ) -> tuple[int, int, int, int] | None:
        """(number of the file, position in it, length, length of the first batch), from the batch
        with `offset` on; None: it is not below the local log."""
        segments, log = self._segments(partition), partition.log
        local = log.segments[0].base
        while offset < local:
            one = segments.find_segment(log.epochs.epoch_of(offset), offset)
            if one is None:
                text = f"offset {offset} is in no segment of the remote store"
                raise RemoteReadFailed(errors.OFFSET_OUT_OF_RANGE, text)
            found = self._locate_in(partition, one, offset, max_bytes)
            if found is not None:
                return found
            offset = _behind(partition, one)
        return None

    def _locate_in(
        self,
        partition: Partition,
        one: RemoteLogSegmentMetadataRecord,
        offset: int,
        max_bytes: int,
    ) -> tuple[int, int, int, int] | None:
        files = self.files
        limit = _behind(partition, one)
        if offset >= limit:
            text = f"offset {offset} was written by a leader whose records were lost"
            raise RemoteReadFailed(errors.OFFSET_OUT_OF_RANGE, text)
        chunks = files.chunks_of(partition, one)
        number = chunks.first_of(offset)
        while number < len(chunks):
            file = files.chunk(partition, one, chunks, number)
            if offset < file.end_offset:
                begin = chunks.bounds(number)[0]
                near = max(chunks.index.position(offset - one.start_offset), begin)
                try:
                    found = self._cut(file, chunks, begin, near, (offset, limit), max_bytes)
                except (StorageFailed, NotABatch):  # somebody changed the cache
                    files.discard(file)
                    continue
                self._fetch_ahead(partition, one, chunks, number)
                return file.number, *found
            number += 1
        return None

    def _cut(
        self,
        file: CachedFile,
        chunks: SegmentChunks,
        begin: int,
        near: int,
        wanted: tuple[int, int],
        max_bytes: int,
    ) -> tuple[int, int, int]:
        """(position in the file, length, length of the first batch). begin: of the chunk, near:
        where a batch begins that is not behind the first wanted one, both in the segment. wanted:
        from an offset on, below another one."""
        offset, limit = wanted
        opened = self.files.open_file(file)
        try:
            end = begin + file.size

            def read(length: int, position: int) -> bytes:
                return opened.pread(length, position - begin)

            found = _seek_soundly(read, begin, near, end, offset)
            if limit < file.end_offset:  # records that the log lost do not follow its own
                end = _seek_soundly(read, begin, near, end, limit)[0]
            positions = chunks.index.positions
            length = cut_sparsely(read, positions, found, end - found[0], max_bytes, _READ)
            return found[0] - begin, length, found[2]
        finally:
            opened.close()

    def _fetch_ahead(
        self,
        partition: Partition,
        one: RemoteLogSegmentMetadataRecord,
        chunks: SegmentChunks,
        number: int,
    ) -> None:
        """Fetch what a sequential reader wants next: one that read the chunk before this one, or
        begins with a segment."""
        chunks.served.add(number)
        if number and number - 1 not in chunks.served:
            return
        with suppress(FileOnItsWay, RemoteReadFailed):
            if self.files.fetch_ahead(partition, one, number + 1):
                return
            following = next(self._from(partition, one.end_offset + 1), None)
            if following is not None:
                self.files.fetch_ahead(partition, following, 0)

    # Aborted transactions -------------------------------------------------------------------------

    def _end_of(self, layout: int, position: int, length: int) -> int:
        """The offset behind the records of a range of a chunk. Raises FileOnItsWay."""
        file = self.files.cache.numbered(-layout)
        assert file is not None, "it was found in this turn"
        if position + length >= file.size:
            return file.end_offset
        opened = self.files.open_file(file)
        try:
            (end,) = INT64.unpack(opened.pread(INT64.size, position + length))
        finally:
            opened.close()
        return int(end)

    def _transactions(self, partition: Partition, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted ones with records from `start` on and below
        `end`. Raises FileOnItsWay, RemoteReadFailed."""
        found: list[tuple[int, int]] = []
        before = start - 1
        for producer, first, last, stable in self._aborted(partition, start):
            if last <= before:
                continue  # of a segment that lies here, too
            before = last
            if first < end:
                found.append((producer, first))
            if stable >= end:
                break  # all that began below `end` had ended then
        return found

    def _aborted(self, partition: Partition, start: int) -> Iterator[aborted.Aborted]:
        """All from the segment with `start` on, by the offset of their markers; local ones last."""
        for one in self._from(partition, start):
            if not one.txn_index_empty:
                yield from aborted.decode(self.files.index_bytes(partition, one, TRANSACTION_INDEX))
        yield from read_rules.known_aborted(partition)

    def _from(self, partition: Partition, offset: int) -> Iterator[RemoteLogSegmentMetadataRecord]:
        """The segments from the one with `offset` on up to the local log, as its epochs go."""
        segments, log = self._segments(partition), partition.log
        local = log.segments[0].base
        while offset < local:
            one = segments.find_segment(log.epochs.epoch_of(offset), offset)
            if one is None:
                return
            yield one
            offset = max(_behind(partition, one), offset + 1)

    # ListOffsets ----------------------------------------------------------------------------------

    def has_part(self, partition: Partition, timestamp: int) -> bool:
        """True if remote segments decide which offset a timestamp has."""
        if timestamp in OF_TIERS:
            return True
        log = partition.log
        searches = timestamp >= 0 or timestamp == read_rules.MAX_TIMESTAMP
        return searches and log.log_start_offset < log.local_start

    def list_offset(
        self, partition: Partition, token: int, flags: int, timestamp: int, epoch: int
    ) -> Completion:
        """As `read_rules.list_offset`, where remote segments have a part. Raises FileOnItsWay."""
        if epoch != -1 and epoch != partition.leader_epoch:
            return refusal(LISTED, read_rules.stale(partition, epoch), partition.handle, token)
        if timestamp in OF_TIERS:
            return self._list_tiered(partition, token, timestamp)
        try:
            found = self._by_time(partition, timestamp)
        except RemoteReadFailed as failed:
            return refusal(LISTED, failed.code, partition.handle, token)
        if found is None:
            return read_rules.list_offset(partition, token, flags, timestamp, epoch)
        return pack_listed(partition.handle, token, *found)

    def _list_tiered(self, partition: Partition, token: int, timestamp: int) -> Completion:
        """The last offset that was copied, or the first that was not (KIP-405, KIP-1023)."""
        log, segments = partition.log, self._segments_of(partition)
        offset = -1 if segments is None else _highest(partition, segments)
        if timestamp == EARLIEST_PENDING:
            if offset >= 0:
                offset = max(offset + 1, log.log_start_offset)
            elif segments is not None and log.segments[0].base <= log.log_start_offset:
                offset = log.log_start_offset
        epoch = log.epochs.epoch_of(offset) if offset >= 0 else -1
        return pack_listed(partition.handle, token, -1, offset, epoch)

    def _by_time(self, partition: Partition, timestamp: int) -> tuple[int, int, int] | None:
        """(timestamp, offset, epoch) of the first remote record that is not older, or with
        MAX_TIMESTAMP of the first of the newest ones; None: a local one is."""
        log = partition.log
        every = list(self._from(partition, log.log_start_offset))
        if timestamp == read_rules.MAX_TIMESTAMP:
            timestamp = max((one.max_timestamp_ms for one in every), default=-1)
            found = log.max_timestamp()
            if timestamp < 0 or (found is not None and found[0] > timestamp):
                return None
        for one in every:
            if one.max_timestamp_ms >= timestamp:
                found = self._by_time_in(partition, one, timestamp)
                if found is not None:
                    return found
        return None

    def _by_time_in(
        self, partition: Partition, one: RemoteLogSegmentMetadataRecord, timestamp: int
    ) -> tuple[int, int, int] | None:
        files, start = self.files, partition.log.log_start_offset
        times = TimeIndex(files.index_bytes(partition, one, TIME_INDEX))
        chunks = files.chunks_of(partition, one)
        position = chunks.index.position(times.offset_before(timestamp))
        for number in range(chunks.number_of(position), len(chunks)):
            file = files.chunk(partition, one, chunks, number)
            begin = chunks.bounds(number)[0]
            segment = Segment(files.cache.folder, one.start_offset, file.size)
            found = None
            try:
                segment.file = files.open_file(file)
                at = max(0, position - begin)
                found = lookup.search_batches(segment, at, timestamp, NEVER, start)
            except StorageFailed:  # somebody changed the cache
                files.discard(file)
                files.chunk(partition, one, chunks, number)
            finally:
                segment.rest_file()
            if found is not None:
                return found
        return None


def _seek_soundly(read: Read, begin: int, near: int, end: int, offset: int) -> Batch:
    """The first batch that ends at or behind `offset`: from `near` on, and from the chunk's begin
    where the index had a wrong entry. Raises NotABatch where there is none."""
    with suppress(NotABatch):
        found = seek(read, near, end, offset, NEVER, _READ, NEVER)
        if found[0] >= 0 and found[1] <= offset:
            return found
    found = seek(read, begin, end, offset, NEVER, _READ, NEVER)
    if found[0] < 0:
        raise NotABatch(end, "the chunk ends before the batch")
    return found


def _behind(partition: Partition, one: RemoteLogSegmentMetadataRecord) -> int:
    """The offset behind what a segment has of the log."""
    return lineage_end(one, partition.log.epochs, partition.log.end_offset)


def _highest(partition: Partition, segments: RemoteSegments) -> int:
    """The last offset in the remote store that this log's epochs know, -1: there is none."""
    for epoch in reversed(partition.log.epochs.epochs):
        highest = segments.highest_offset(epoch)
        if highest >= 0:
            return highest
    return -1
