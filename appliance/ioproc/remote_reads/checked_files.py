"""Brings pieces of a remote segment into files of the local cache: an index whole, the log in
chunks.

Runs in the process that talks to the store, never on a loop. Invariant: a file has its name only
when all of it is there and makes sense: whole batches with right checksums, entries that ascend.
So a reader of the cache checks nothing again.
"""

from dataclasses import dataclass
from typing import Final

from appliance.base.disk import Disk
from appliance.logstore import aborted
from appliance.logstore.indexes import OFFSET_ENTRY, OffsetIndex
from appliance.logstore.scan import Scan
from appliance.remotelog.objects import OFFSET_INDEX, TRANSACTION_INDEX, RemoteObjects
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord

_PART: Final = ".part"


class RemoteGarbage(Exception):
    """The store answered bytes that are not what was written."""


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file of the cache. size: bytes. end_offset: behind the last record of a chunk, -1 for an
    index."""

    size: int
    end_offset: int = -1


def fetch_index(
    objects: RemoteObjects,
    disk: Disk,
    one: RemoteLogSegmentMetadataRecord,
    kind: str,
    path: str,
) -> FetchedFile:
    """Brings an index file of a segment to `path`. Raises RemoteGarbage, StorageFailed, and what
    the store raises."""
    data = objects.fetch_index(one, kind)
    if kind == OFFSET_INDEX:
        _check_offset_index(one, data)
    elif kind == TRANSACTION_INDEX and aborted.ENTRY * len(list(aborted.decode(data))) != len(data):
        raise RemoteGarbage(f"the transaction index of {_name(one)} does not ascend")
    _write(disk, path, data)
    return FetchedFile(len(data))


def fetch_chunk(
    objects: RemoteObjects,
    disk: Disk,
    one: RemoteLogSegmentMetadataRecord,
    begin: int,
    end: int,
    path: str,
) -> FetchedFile:
    """Brings the bytes from `begin` to `end` of a segment's log to `path`: whole batches. Raises
    RemoteGarbage, StorageFailed, RemoteFilesMissing and what the store raises."""
    assert 0 <= begin < end <= one.segment_size_in_bytes
    data = objects.fetch_range(one, begin, end - begin)
    part = path + _PART
    _write(disk, part, data, rename=False)
    file = disk.open_file(part)
    try:
        scan = Scan(file, 0, len(data), one.start_offset, gaps=True)
        for _ in scan.chunks():
            pass
    finally:
        file.close()
    if scan.problem or scan.next_offset > one.end_offset + 1:
        disk.unlink(part)
        problem = scan.problem or f"offset {scan.next_offset - 1} is behind its end"
        raise RemoteGarbage(f"{_name(one)} at byte {begin + scan.position}: {problem}")
    disk.rename(part, path)
    return FetchedFile(len(data), scan.next_offset)


def _check_offset_index(one: RemoteLogSegmentMetadataRecord, data: bytes) -> None:
    index = OffsetIndex(data)
    entries = len(index.offsets)
    index.keep_sound(one.segment_size_in_bytes)
    last = index.offsets[-1] if index.offsets else 0
    whole = len(data) % OFFSET_ENTRY == 0
    if not whole or len(index.offsets) != entries or last > one.end_offset - one.start_offset:
        raise RemoteGarbage(f"the offset index of {_name(one)} makes no sense")


def _write(disk: Disk, path: str, data: bytes, *, rename: bool = True) -> None:
    """A cache need not survive a power cut, so nothing is synced."""
    part = path + _PART if rename else path
    if disk.exists(part):
        disk.unlink(part)
    file = disk.create(part)
    try:
        file.pwritev([data], 0)
    except BaseException:
        disk.unlink(part)
        raise
    finally:
        file.close()
    if rename:
        disk.rename(part, path)


def _name(one: RemoteLogSegmentMetadataRecord) -> str:
    owner = one.remote_log_segment_id.topic_id_partition
    return f"segment {one.start_offset} of {owner.name}-{owner.partition}"
