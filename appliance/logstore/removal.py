"""Letting go of old segments and of whole partitions: renamed now, removed after
file.delete.delay.ms.

Invariant: only segments that lie wholly below the high watermark and the recovery point go, oldest
first. The log start is never behind the first one that is left, except that a log with segments in
a remote store keeps its log start, and drops only what was copied. What a crash leaves renamed is
removed by the next opening.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from appliance.base.disk import Disk
from appliance.base.errors import DiskFull
from appliance.config.log_config import NEVER
from appliance.logstore import files, lookup
from appliance.logstore.parts import LogParts
from appliance.logstore.segment import Segment
from appliance.logstore.segments import LogSegments

FOLLOWS: Final = -2
"""The local limit that is retention.ms or retention.bytes."""


class Removal(NamedTuple):
    """Something renamed that can be removed when the wall clock says `due_ms`. folder: all of it,
    if not empty."""

    due_ms: int
    paths: tuple[str, ...]
    folder: str = ""

    def run(self, disk: Disk) -> None:
        """Remove it; on any thread. What is gone already is no error. Raises StorageFailed."""
        for path in self.paths:
            if disk.exists(path):
                disk.unlink(path)
        if self.folder and disk.exists(self.folder):
            for name in disk.listdir(self.folder):
                disk.unlink(f"{self.folder}/{name}")
            disk.rmdir(self.folder)


def retain(log: LogParts, now_ms: int, high_watermark: int) -> list[Removal]:
    """Drop whole segments by Kafka's rules and move the log start; what to remove later.

    A log without the cleanup policy "delete" loses only what lies below its log start. When even
    the active segment has expired it is rolled; the old one goes with the first call after its
    sync. An active segment whose records wait for compaction longer than max.compaction.lag.ms is
    rolled, too: without that a log that nobody writes to would keep them for ever.
    """
    segments, limit = log.order, min(high_watermark, log.recovery_point)
    if _waits_too_long(log, now_ms):
        with suppress(DiskFull):
            log.roll(now_ms)
    every = segments.all
    tiered = log.copied_end >= 0
    count = sum(1 for _ in (_expired_locally if tiered else _expired)(log, now_ms))
    rolls = count == len(every) or (tiered and _active_is_old(log, now_ms))
    if rolls and log.active.size:
        with suppress(DiskFull):  # the older ones can go all the same
            log.roll(now_ms)
    dropped: list[Segment] = []
    while len(dropped) < count and len(every) > 1:
        if every[1].base > limit or every[0] in log.unsynced.rolled:
            break
        dropped.append(segments.drop_oldest())
    if not dropped:
        return []
    due_ms = now_ms + log.config.file_delete_delay_ms
    if not tiered:
        log.advance_log_start(every[0].base)
    log.unsynced.folders_changed((log.path,))
    return [Removal(due_ms, rename_away(segments.disk, segment)) for segment in dropped]


def _waits_too_long(log: LogParts, now_ms: int) -> bool:
    config, active = log.config, log.active
    if not config.compact or config.max_compaction_lag_ms >= NEVER or not active.size:
        return False
    return now_ms - active.begun_ms > config.max_compaction_lag_ms


def _expired(log: LogParts, now_ms: int) -> Iterator[Segment]:
    """The oldest segments that nothing keeps."""
    segments, config = log.order, log.config
    every = segments.all
    too_much = segments.closed_size + every[-1].size - config.retention_bytes
    for number, segment in enumerate(every):
        behind = every[number + 1].base if number + 1 < len(every) else log.active.end_offset
        if behind <= log.log_start_offset:
            pass
        elif config.delete and config.retention_bytes >= 0 and too_much >= segment.size:
            too_much -= segment.size
        elif (
            not config.delete
            or config.retention_ms < 0
            or not _too_old(segments, segment, config.retention_ms, now_ms)
        ):
            return
        yield segment


def _expired_locally(log: LogParts, now_ms: int) -> Iterator[Segment]:
    """The oldest segments of a tiered log that nothing keeps here (KIP-405): below the log start,
    or copied and beyond local retention."""
    segments, config = log.order, log.config
    every = segments.all
    keep_bytes = local_limit(config.local_retention_bytes, config.retention_bytes)
    keep_ms = local_limit(config.local_retention_ms, config.retention_ms)
    too_much = segments.closed_size + every[-1].size - keep_bytes
    for number, segment in enumerate(every):
        behind = every[number + 1].base if number + 1 < len(every) else log.active.end_offset
        if behind > log.log_start_offset:
            if behind > log.copied_end:
                return
            if keep_bytes >= 0 and too_much >= segment.size:
                pass
            elif keep_ms < 0 or not _too_old(segments, segment, keep_ms, now_ms):
                return
        too_much -= segment.size
        yield segment


def _active_is_old(log: LogParts, now_ms: int) -> bool:
    """True if the active segment could go if it were copied, which only full ones are."""
    keep_ms = local_limit(log.config.local_retention_ms, log.config.retention_ms)
    active = log.active
    return active.size > 0 and keep_ms >= 0 and _too_old(log.order, active, keep_ms, now_ms)


def local_limit(local: int, whole: int) -> int:
    """A limit of local retention; FOLLOWS stands for that of the whole log."""
    return whole if local == FOLLOWS else local


def _too_old(segments: LogSegments, segment: Segment, retention_ms: int, now_ms: int) -> bool:
    """True if the newest record is older than the retention time. Without a timestamp, or with one
    from the future, the time of the last write counts: one wrong clock must not keep a segment for
    ever.
    """
    newest = lookup.newest_of(segments, segment)
    if newest < 0 or newest > now_ms:
        newest = segments.disk.modified_ms(segment.path)
    return now_ms - newest > retention_ms


def rename_away(disk: Disk, segment: Segment) -> tuple[str, ...]:
    """Mark the files of a segment as deleted; their new names. Where a longer name finds no room
    the file goes at once."""
    renamed = []
    for suffix in files.SEGMENT_SUFFIXES:
        path = segment.stem + suffix
        if disk.exists(path):
            try:
                disk.rename(path, path + files.DELETED)
            except DiskFull:
                disk.unlink(path)
            else:
                renamed.append(path + files.DELETED)
    return tuple(renamed)


def delete(disk: Disk, path: str, unique: str, due_ms: int, *, sync: bool) -> Removal:
    """Rename the folder of a log whose files are let go."""
    folder = files.deleted_folder(path, unique)
    disk.rename(path, folder)
    if sync:
        disk.sync_dir(folder.rpartition("/")[0])
    return Removal(due_ms, (), folder)
