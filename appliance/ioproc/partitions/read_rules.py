"""Answers READ, LIST_OFFSET, EPOCH_END and DELETE_RECORDS: Kafka's rules over one partition.

Invariant: a completion names bytes of a segment file below the high watermark (for another replica
below the log end), never memory. A
function returns a whole completion; `find` returns None when the read should wait. Called by the
core.
"""

import errno
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.ioproc.netproc_peer import Completion, refusal
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore.aborted import AbortedTransactions
from appliance.logstore.files import LOG, stem
from appliance.logstore.scan import Scan
from appliance.ring.messages import (
    DELETED,
    EPOCH_ENDED,
    FOUND,
    LISTED,
    READ_COMMITTED,
    READ_GONE,
    READ_REPLICA,
    READ_WAIT,
)
from appliance.ring.slots import pack_deleted, pack_epoch_ended, pack_listed
from appliance.wire import aborted, producers
from appliance.wire.batch_header import INT64

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
PRODUCERS_A_SLICE: Final = 250
CHECKED: Final = 64 << 10
"""A follower takes so many bytes at a time, all of them or none, or one batch."""


def find_bytes(
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
    whole. Raises StorageFailed when a file cannot be read or, with READ_GONE, is not there.
    """
    log = partition.log
    progress = partition.progress
    high_watermark, stable = progress.high_watermark, progress.last_stable
    limit = stable if flags & READ_COMMITTED else high_watermark
    if flags & READ_REPLICA:
        limit = progress.log_end
    log_start = log.log_start_offset
    code = errors.NONE
    if epoch != -1 and epoch != partition.leader_epoch:
        code = stale(partition, epoch)
    elif not log_start <= offset <= log.active.end_offset:
        code = errors.OFFSET_OUT_OF_RANGE
    segment = position = length = first = 0
    if not code:
        found = None
        if offset < limit:
            found = log.active.locate(offset, max_bytes, limit)
            if found is None:
                found = log.locate(offset, max_bytes, limit)
        if found is not None and found[2]:
            segment, position, length, first = found
            if flags & READ_GONE:
                _look_for(partition, segment)
        if length < enough and flags & READ_WAIT:
            return None
    return (
        FOUND,
        code + 1,
        partition.handle,
        token,
        high_watermark,
        stable,
        log_start,
        segment,
        position,
        partition.leader_epoch,
        log.layout,
        0,
        length,
        first,
    )


def goes_with(partition: Partition, offset: int, answer: Completion) -> bytes:
    """The aborted transactions in the range that `find` answered, for a reader with READ_COMMITTED
    (`wire/aborted.py`). Raises StorageFailed.
    """
    _, _, _, _, _, _, _, base, position, _, _, _, length, _ = answer
    log = partition.log
    known = known_aborted(partition)
    if not length or offset >= known.end:
        return b""
    segment = log.order.all[log.order.number(base)]
    behind = segment.reader(log.disk).pread(INT64.size, position + length)
    end = INT64.unpack(behind)[0] if len(behind) == INT64.size else known.end
    return aborted.encode(known.within(offset, end))


def known_aborted(partition: Partition) -> AbortedTransactions:
    """The aborted transactions of its local segments. Raises StorageFailed."""
    log, known = partition.log, partition.aborted
    if known is None or known.layout != log.layout:
        partition.aborted = known = AbortedTransactions(log.disk, log.path, log.layout)
    return known


def check(partition: Partition, answer: Completion) -> None:
    """Look at the checksums of what a follower is about to be given. Raises StorageFailed where
    they are wrong: as far as it takes at a time, and the first batch whole."""
    _, _, _, _, _, _, _, base, position, _, _, _, length, first = answer
    log = partition.log
    segment = log.order.all[log.order.number(base)]
    end = position + max(first, min(length, CHECKED))
    scan = Scan(segment.reader(log.disk), position, position + length, 0, gaps=True, chunk=CHECKED)
    for _ in scan.chunks():
        if scan.position >= end:
            return
    if scan.problem:
        raise segment.corrupt(scan.position, scan.problem)


def _look_for(partition: Partition, base: int) -> None:
    """Raise StorageFailed when a segment's file is gone, though we may have it open ourselves."""
    path = stem(partition.log.path, base) + LOG
    if not partition.log.disk.exists(path):
        raise StorageFailed(path, errno.ENOENT, "the file is gone")


def diverging(partition: Partition, token: int, offset: int, last_epoch: int) -> Completion | None:
    """The answer to a replica whose last record, before `offset` and of leader epoch `last_epoch`,
    is not in this log (KIP-595): the largest epoch up to that one that is, and its end. None: it
    is, or the offset is below the log start.
    """
    log, progress = partition.log, partition.progress
    epoch, end = log.epoch_end(last_epoch)
    if epoch < 0 or end < 0:
        return refusal(FOUND, errors.OFFSET_OUT_OF_RANGE, partition.handle, token)
    if offset < log.log_start_offset or (epoch >= last_epoch and end >= offset):
        return None
    return (
        FOUND, 1, partition.handle, token, progress.high_watermark, progress.last_stable,
        log.log_start_offset, epoch, end, partition.leader_epoch, log.layout, 1,
    )  # fmt: skip


def stale(partition: Partition, epoch: int) -> int:
    """The error of a client whose current leader epoch is not ours (KIP-320)."""
    if epoch < partition.leader_epoch:
        return errors.FENCED_LEADER_EPOCH
    return errors.UNKNOWN_LEADER_EPOCH


def list_offset(
    partition: Partition, token: int, flags: int, timestamp: int, epoch: int
) -> Completion:
    """Offset for a timestamp in ms, or for one of the special ones (LIST_OFFSET)."""
    log = partition.log
    progress = partition.progress
    limit = progress.last_stable if flags & READ_COMMITTED else progress.high_watermark
    if flags & READ_REPLICA:
        limit = progress.log_end
    if epoch != -1 and epoch != partition.leader_epoch:
        return refusal(LISTED, stale(partition, epoch), partition.handle, token)
    found_time, offset, found_epoch = -1, -1, -1
    lags = progress.behind_its_epoch and not flags & READ_REPLICA  # as KIP-207 has it
    if timestamp == LATEST and lags:
        return refusal(LISTED, errors.OFFSET_NOT_AVAILABLE, partition.handle, token)
    if timestamp == LATEST:
        offset, found_epoch = limit, partition.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = log.log_start_offset
        if timestamp == EARLIEST_LOCAL:  # what lies before it is in the remote store
            offset = log.local_start
        at = bisect_right(log.epochs.starts, offset) - 1
        found_epoch = log.epochs.epochs[at] if at >= 0 else -1
    elif timestamp == MAX_TIMESTAMP or timestamp >= 0:
        if timestamp == MAX_TIMESTAMP:
            found = log.max_timestamp()
        else:
            found = log.offset_for_timestamp(timestamp, limit)
        if found is not None and found[1] < limit:
            found_time, offset, found_epoch = found
        elif lags:
            return refusal(LISTED, errors.OFFSET_NOT_AVAILABLE, partition.handle, token)
    return pack_listed(partition.handle, token, found_time, offset, found_epoch)


def epoch_end(partition: Partition, token: int, asked: int, epoch: int) -> Completion:
    """Where leader epoch `asked` ended (EPOCH_END; KIP-101, KIP-279)."""
    if epoch != -1 and epoch != partition.leader_epoch:
        return refusal(EPOCH_ENDED, stale(partition, epoch), partition.handle, token)
    end_epoch, end_offset = partition.log.epoch_end(asked)
    return pack_epoch_ended(partition.handle, token, end_offset, end_epoch)


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
    return pack_deleted(partition.handle, token, log.log_start_offset), moved


def describe_producers(partition: Partition) -> Iterator[bytes]:
    """The producers of the partition (DESCRIBE_PRODUCERS), as `wire/producers.py` has them: in
    slices, each as of when it is asked for.
    """
    states = partition.log.producers
    known, opened = states.producers, states.open
    every = list(known)
    for at in range(0, len(every), PRODUCERS_A_SLICE):
        slice_ = every[at : at + PRODUCERS_A_SLICE]
        there = [(one, known[one]) for one in slice_ if one in known]  # some have expired
        if there:
            yield producers.encode(
                (
                    one,
                    state.epoch,
                    state.batches[-1][0] if state.batches else -1,
                    state.last_timestamp,
                    state.coordinator_epoch,
                    opened.get(one, -1),
                )
                for one, state in there
            )
