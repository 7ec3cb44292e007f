"""The records of one partition's remote segments in a file of its folder, `remote-log-metadata`.

A file and not a topic while one node has all of it (docs/decisions/0129). An entry is uint32 bytes,
uint32 CRC32C of them, and a record as on Kafka's `__remote_log_metadata`. Invariant: a record is
believed when its entry is on the disk, so only the last entry can be torn: one that is damaged with
whole ones behind it is a damaged file, and is never taken for the end.
"""

import errno
from collections.abc import Iterator
from dataclasses import replace
from struct import Struct
from typing import Final

from appliance.base.crc import crc32c
from appliance.base.disk import Disk, File, read_file
from appliance.base.errors import PeerError, StorageFailed
from appliance.remotelog.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    decode_record,
    encode_record,
)
from appliance.remotelog.segments import RemoteSegments, UnlawfulChange
from appliance.remotelog.states import COPY_SEGMENT_STARTED

NAME: Final = "remote-log-metadata"
_NEW: Final = NAME + ".new"
_HEAD: Final = Struct(">II")
_MOST: Final = 1 << 16
"""Bytes of a record at most."""
_SMALL: Final = 64 << 10
_SPARSE: Final = 4
_TYPICAL: Final = 300
"""A file is written anew when it has this many times what is needed, by bytes of a segment, and a
little more."""

Change = RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataUpdateRecord


def encode_entry(change: Change) -> bytes:
    """The bytes of an entry."""
    value = encode_record(change)
    assert len(value) <= _MOST
    return _HEAD.pack(len(value), crc32c(value)) + value


def _entry_at(data: bytes, at: int) -> bytes | None:
    """The record at a position; None when there is no whole one."""
    if len(data) - at < _HEAD.size:
        return None
    size, crc = _HEAD.unpack_from(data, at)
    value = data[at + _HEAD.size : at + _HEAD.size + size]
    if not 0 < size <= _MOST or len(value) != size or crc32c(value) != crc:
        return None
    return value


def read_journal(
    disk: Disk, folder: str, topic_id: bytes, partition: int
) -> tuple[RemoteSegments, int]:
    """Returns the segments of the file, and where it ends; none and 0 without one. Raises
    StorageFailed, with EBADMSG where it is damaged."""
    path = f"{folder}/{NAME}"
    data = read_file(disk, path) if disk.exists(path) else b""
    try:
        return decode_entries(data, topic_id, partition)
    except EntriesDamaged as why:
        raise StorageFailed(path, errno.EBADMSG, str(why)) from None


class EntriesDamaged(Exception):
    """Entries are not as they were written."""


def decode_entries(data: bytes, topic_id: bytes, partition: int) -> tuple[RemoteSegments, int]:
    """Returns the segments that entries say, and where the last whole one ends. Raises
    EntriesDamaged where a whole one lies behind damage, or makes no sense."""
    found, at = RemoteSegments(topic_id, partition), 0
    while (value := _entry_at(data, at)) is not None:
        try:
            found.replay(decode_record(value))
        except (PeerError, UnlawfulChange) as why:
            raise EntriesDamaged(f"corrupt at byte {at}: {why}") from None
        at += _HEAD.size + len(value)
    for behind in range(at + 1, len(data)):
        if _entry_at(data, behind) is not None:
            text = f"an entry is damaged, one at byte {behind} is whole"
            raise EntriesDamaged(f"corrupt at byte {at}: {text}")
    return found, at


class RemoteJournal:
    """The file of one partition. known: what it says; the owner replays into it what was written.
    One thread at a time writes."""

    def __init__(self, disk: Disk, folder: str, known: RemoteSegments, end: int) -> None:
        self._disk = disk
        self._folder = folder
        self.known = known
        self._end = end

    @classmethod
    def open_folder(
        cls, disk: Disk, folder: str, topic_id: bytes, partition: int
    ) -> "RemoteJournal":
        """The file as it is. Raises StorageFailed."""
        return cls(disk, folder, *read_journal(disk, folder, topic_id, partition))

    def write_change(self, change: Change) -> None:
        """A record on the disk at return. Raises StorageFailed: it may be there or not, and the
        next one takes its place."""
        entry, path = encode_entry(change), f"{self._folder}/{NAME}"
        if not self._disk.exists(path):
            self._append(self._disk.create(path), entry)
            self._disk.sync_dir(self._folder)
        else:
            self._append(self._disk.open_file(path, write=True), entry)
        self._end += len(entry)

    def _append(self, file: File, entry: bytes) -> None:
        try:
            if file.size() != self._end:  # of one that was cut off, or failed
                file.truncate(self._end)
            file.pwritev([entry], self._end)
            file.sync()
        finally:
            file.close()

    @property
    def is_sparse(self) -> bool:
        """True if most of the file says what is over."""
        needed = len(self.known.finished()) + len(self.known.unfinished())
        return self._end > _SMALL + _SPARSE * _TYPICAL * needed

    def encode_whole(self) -> bytes:
        """The bytes of a file that says the same by the fewest records."""
        return encode_entries(self.known)

    def replace_file(self, data: bytes) -> None:
        """Write the file anew, of `encode_whole`. Not while `write_change` is under way. Raises
        StorageFailed, and the file is the old one then."""
        new = f"{self._folder}/{_NEW}"
        if self._disk.exists(new):
            self._disk.unlink(new)
        file = self._disk.create(new)
        try:
            file.pwritev([data], 0)
            file.sync()
        finally:
            file.close()
        self._disk.rename(new, f"{self._folder}/{NAME}")
        self._disk.sync_dir(self._folder)
        self._end = len(data)


def encode_entries(
    known: RemoteSegments, then: RemoteLogSegmentMetadataUpdateRecord | None = None
) -> bytes:
    """The fewest entries that say what is known. then: a change that is added to it."""
    entries = [encode_entry(change) for change in _records_of(known)]
    if then is not None:
        entries.append(encode_entry(then))
    return b"".join(entries)


def _records_of(known: RemoteSegments) -> Iterator[Change]:
    """The fewest records that say the same."""
    for one in (*known.finished(), *known.unfinished()):
        yield replace(one, remote_log_segment_state=COPY_SEGMENT_STARTED)
        if one.remote_log_segment_state != COPY_SEGMENT_STARTED:
            yield update_of(one, one.remote_log_segment_state, one.event_timestamp_ms)


def update_of(
    one: RemoteLogSegmentMetadataRecord, state: int, now_ms: int
) -> RemoteLogSegmentMetadataUpdateRecord:
    """The record that gives a segment its next state."""
    return RemoteLogSegmentMetadataUpdateRecord(
        remote_log_segment_id=one.remote_log_segment_id,
        broker_id=one.broker_id,
        event_timestamp_ms=now_ms,
        custom_metadata=None,
        remote_log_segment_state=state,
    )
