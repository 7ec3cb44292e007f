"""What READ, LIST_OFFSET, EPOCH_END and DELETE_RECORDS answer: Kafka's rules over one partition.

Invariant: a completion names bytes of a segment file below the high watermark, never memory. Every
function returns a whole completion; `find` returns None when the read should wait. Called by the
core.
"""

from bisect import bisect_right
from typing import Final

from appliance.base import errors
from appliance.ioproc.asker import Completion, refusal
from appliance.ioproc.partition import Partition
from appliance.ring.messages import DELETED, EPOCH_ENDED, FOUND, LISTED, READ_WAIT

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4


def find(
    partition: Partition,
    token: int,
    flags: int,
    offset: int,
    epoch: int,
    max_bytes: int,
    enough: int,
) -> Completion | None:
    """Where the bytes from `offset` on are (READ); None: fewer than `enough` are there and the read
    may wait.

    epoch: the client's current leader epoch or -1. max_bytes: limit, but the first batch is found
    whole.
    """
    log = partition.log
    high_watermark = partition.high_watermark
    log_start = log.log_start_offset
    code = errors.NONE
    if epoch != -1 and epoch != partition.leader_epoch:
        code = stale(partition, epoch)
    elif not log_start <= offset <= log.end_offset:
        code = errors.OFFSET_OUT_OF_RANGE
    segment = position = length = first = 0
    if not code:
        found = log.locate(offset, max_bytes, high_watermark) if offset < high_watermark else None
        if found is not None:
            segment, position, length, first = found
        if length < enough and flags & READ_WAIT:
            return None
    return (
        FOUND,
        code + 1,
        partition.handle,
        token,
        high_watermark,
        high_watermark,
        log_start,
        segment,
        position,
        partition.leader_epoch,
        log.layout,
        0,
        length,
        first,
    )


def stale(partition: Partition, epoch: int) -> int:
    """The error of a client whose current leader epoch is not ours (KIP-320)."""
    if epoch < partition.leader_epoch:
        return errors.FENCED_LEADER_EPOCH
    return errors.UNKNOWN_LEADER_EPOCH


def list_offset(partition: Partition, token: int, timestamp: int, epoch: int) -> Completion:
    """Offset for a timestamp in ms, or for one of the special ones (LIST_OFFSET)."""
    log = partition.log
    if epoch != -1 and epoch != partition.leader_epoch:
        return refusal(LISTED, stale(partition, epoch), partition.handle, token)
    found_time, offset, found_epoch = -1, -1, -1
    if timestamp == LATEST:
        offset, found_epoch = partition.high_watermark, partition.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = log.log_start_offset
        at = bisect_right(log.epochs.starts, offset) - 1
        found_epoch = log.epochs.epochs[at] if at >= 0 else -1
    elif timestamp == MAX_TIMESTAMP or timestamp >= 0:
        limit = partition.high_watermark
        if timestamp == MAX_TIMESTAMP:
            found = log.max_timestamp()
        else:
            found = log.offset_for_timestamp(timestamp, limit)
        if found is not None and found[1] < limit:
            found_time, offset, found_epoch = found
    return (LISTED, 1, partition.handle, token, found_time, offset, found_epoch)


def epoch_end(partition: Partition, token: int, asked: int, epoch: int) -> Completion:
    """Where leader epoch `asked` ended (EPOCH_END; KIP-101, KIP-279)."""
    if epoch != -1 and epoch != partition.leader_epoch:
        return refusal(EPOCH_ENDED, stale(partition, epoch), partition.handle, token)
    end_epoch, end_offset = partition.log.epoch_end(asked)
    return (EPOCH_ENDED, 1, partition.handle, token, end_offset, end_epoch)


def delete_records(partition: Partition, token: int, offset: int) -> tuple[Completion, bool]:
    """Advance the log start offset (DELETE_RECORDS); whether it moved and must be made durable."""
    log = partition.log
    if not partition.rules.delete:
        return refusal(DELETED, errors.POLICY_VIOLATION, partition.handle, token), False
    target = partition.high_watermark if offset == -1 else offset
    if not 0 <= target <= partition.high_watermark:
        return refusal(DELETED, errors.OFFSET_OUT_OF_RANGE, partition.handle, token), False
    moved = target > log.log_start_offset
    if moved:
        log.advance_log_start(target)
    return (DELETED, 1, partition.handle, token, log.log_start_offset, 0), moved
