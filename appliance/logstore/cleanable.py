"""Which part of a log may be compacted now, and whether it is worth it.

Invariant: nothing above the high watermark, the last stable offset or the recovery point, never the
active segment, nothing younger than min.compaction.lag.ms. Called by the I/O process now and then;
costs a step per segment.
"""

from typing import NamedTuple

from appliance.config.log_config import NEVER
from appliance.logstore import lookup
from appliance.logstore.compaction import Work
from appliance.logstore.log import PartitionLog
from appliance.logstore.segment import Segment


class Cleanable(NamedTuple):
    """segments: those that a cleaning may look at, oldest first. first_dirty: below it an earlier
    one has been. upper: where the last of them ends. clean, dirty: bytes.
    late_ms: for how long max.compaction.lag.ms has been over, 0 while it is not."""

    segments: list[Segment]
    first_dirty: int
    upper: int
    clean: int
    dirty: int
    late_ms: int

    @property
    def ratio(self) -> float:
        """The dirty part of all."""
        return self.dirty / max(self.clean + self.dirty, 1)


def measure_dirty(log: PartitionLog, cleaned_to: int, stable: int, now_ms: int) -> Cleanable:
    """Measures the dirty part of a log. cleaned_to: end offset of the last cleaning. stable: the
    last stable offset or the high watermark. Raises StorageFailed.
    """
    first_dirty = cleaned_to if log.log_start_offset <= cleaned_to <= log.end_offset else 0
    first_dirty = max(first_dirty, log.log_start_offset)
    limit = min(stable, log.recovery_point)
    clean = dirty = 0
    upper = log.segments[0].base
    segments: list[Segment] = []
    oldest: Segment | None = None
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        behind = following.base
        if behind > limit or not log.is_synced(segment):
            break
        if behind > first_dirty:
            if _too_young(log, segment, now_ms):
                break
            dirty += segment.size
            oldest = oldest or segment
        else:
            clean += segment.size
        segments.append(segment)
        upper = behind
    late_ms = 0 if oldest is None else _late_ms(log, oldest, now_ms)
    return Cleanable(segments, first_dirty, upper, clean, dirty, late_ms)


def work(
    log: PartitionLog, found: Cleanable, now_ms: int, memory: int, load: float, chunk: int
) -> Work:
    """A cleaning of all of it. memory: bytes for keys. load: how full they may get, 0 to 1. chunk:
    bytes per read."""
    config = log.config
    producers = {
        producer_id: (known.epoch, known.batches[-1][1] if known.batches else -1)
        for producer_id, known in log.producers.producers.items()
    }
    return Work(
        folder=log.path,
        segments=[(segment.base, segment.size) for segment in found.segments],
        first_dirty=found.first_dirty,
        upper=found.upper,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        producers=producers,
        memory=memory,
        load_factor=load,
        chunk=chunk,
    )


def _too_young(log: PartitionLog, segment: Segment, now_ms: int) -> bool:
    lag = log.config.min_compaction_lag_ms
    if lag <= 0:
        return False
    newest = lookup.newest_of(log.order, segment)
    if newest < 0:  # no record has a timestamp: the last write counts, as in Kafka
        newest = log.disk.modified_ms(segment.path)
    return newest > now_ms - lag


def _late_ms(log: PartitionLog, segment: Segment, now_ms: int) -> int:
    lag = log.config.max_compaction_lag_ms
    if lag >= NEVER:
        return 0
    first = lookup.first_timestamp(log.order, segment)
    return max(now_ms - lag - first, 0) if first >= 0 else 0
