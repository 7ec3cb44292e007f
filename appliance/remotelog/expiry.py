"""Which of a partition's remote segments are over: retention of the whole log (KIP-405).

The oldest go first, and none is left out between two that stay.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from appliance.remotelog.records import RemoteLogSegmentMetadataRecord


class WholeRetention(NamedTuple):
    """The rules that keep segments of a log. retention_ms, retention_bytes: -1 for no limit.
    local_bytes: of segments that were not copied. over: nothing is kept."""

    log_start: int
    retention_ms: int
    retention_bytes: int
    local_bytes: int
    over: bool = False


def select_expired(
    finished: Sequence[RemoteLogSegmentMetadataRecord], rules: WholeRetention, now_ms: int
) -> list[RemoteLogSegmentMetadataRecord]:
    """Those that nothing keeps. finished: by start offset. now_ms: by which records are old."""
    found = []
    total = rules.local_bytes + sum(one.segment_size_in_bytes for one in finished)
    too_much = total - rules.retention_bytes
    for one in finished:
        by_size = rules.retention_bytes >= 0 and too_much >= one.segment_size_in_bytes
        by_time = 0 <= rules.retention_ms < now_ms - _newest_ms(one, now_ms)
        if not (rules.over or one.end_offset < rules.log_start or by_size or by_time):
            break
        found.append(one)
        too_much -= one.segment_size_in_bytes
    return found


def _newest_ms(one: RemoteLogSegmentMetadataRecord, now_ms: int) -> int:
    """The time of the newest record. Without one, or with one from the future, the time of the last
    change counts, as for local segments."""
    newest = one.max_timestamp_ms
    return newest if 0 <= newest <= now_ms else one.event_timestamp_ms


def whole_end(one: RemoteLogSegmentMetadataRecord) -> int:
    """The offset behind a segment."""
    return one.end_offset + 1


def select_chain(
    finished: Sequence[RemoteLogSegmentMetadataRecord],
    log_start: int,
    end_of: Callable[[RemoteLogSegmentMetadataRecord], int] = whole_end,
) -> tuple[int, int]:
    """(first offset, offset behind the last one) of what the store has from the log start on
    without a gap; (0, 0) for nothing. finished: by start offset. end_of: the offset behind what a
    segment has of the log."""
    start = end = 0
    for one in finished:
        behind = end_of(one)
        if behind <= max(log_start, one.start_offset):
            continue
        if not end:
            start = one.start_offset
        elif one.start_offset > end:
            break
        end = max(end, behind)
    return start, end


def select_chain_to(finished: Sequence[RemoteLogSegmentMetadataRecord], offset: int) -> int:
    """The first offset from which on the store has all up to `offset` without a gap. finished: by
    start offset."""
    start = offset
    for one in reversed(finished):
        if one.start_offset < start <= one.end_offset + 1:
            start = one.start_offset
    return start
