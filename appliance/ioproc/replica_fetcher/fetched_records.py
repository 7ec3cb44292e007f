"""Applies a leader's fetch response to a partition: appends its records, takes over its high
watermark and log start.

Invariant: a batch goes from the receive buffer to the file once, and only behind the log end;
whatever cannot be taken leaves the partition as it was, and is told by an exception or a file's
failure.
"""

from collections.abc import Callable
from typing import Final

from appliance.base.errors import DiskFull, PeerError, StorageFailed
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.turn.core import Core
from appliance.wire.batch_header import read_header
from appliance.wire.fetch_follower import FollowerPartitionAnswer

PIECE: Final = 64 << 10
"""Bytes that are taken at a time, or one batch: the smallest batches take a millisecond or two."""

LogStart = Callable[[Partition, Callable[[StorageFailed | None], None]], None]
"""(partition, whom to tell what became of it): begins to make its log start offset durable."""


class FetchedRecords:
    """checkpoint: how a log start that the leader moved is made durable."""

    __slots__ = ("_checkpoint", "_core", "_served")

    def __init__(self, core: Core, checkpoint: LogStart) -> None:
        self._core = core
        self._served = core.served
        self._checkpoint = checkpoint

    def records(self, partition: Partition, data: memoryview, now_ns: int, now_ms: int) -> int:
        """Write a piece of what the leader sent: how many bytes are done with. Raises PeerError
        when they cannot be taken, for want of room too; a failed file has failed the partition."""
        served = self._served
        if partition.space.low:
            served.starved[partition.handle] = None
            raise PeerError(0, "the disk is nearly full")
        try:
            taken = append_fetched(partition, data[:PIECE], now_ms)
            if not taken and len(data) > PIECE:
                taken = append_fetched(partition, data[: read_header(data).size], now_ms)
        except DiskFull as failure:
            partition.space.exhausted()
            served.starved[partition.handle] = None
            served.stirred = True
            raise PeerError(0, str(failure)) from failure
        except StorageFailed as failure:
            self._core.fail(partition, failure)
            return len(data)
        if not taken:
            raise PeerError(0, f"{len(data)} bytes hold no whole batch")
        served.syncing.wrote(partition, now_ns)
        served.rows.changed[partition] = None
        served.rows.replicated(partition, taken)
        if partition.space.wrote(taken):
            served.stirred = True
        return taken

    def ends(self, partition: Partition, answer: FollowerPartitionAnswer) -> None:
        """Applies the leader's offsets, once its records are appended."""
        progress = partition.progress
        self._served.rows.leads_to(partition, answer.high_watermark)
        if progress.on_leader_high_watermark(answer.high_watermark):
            partition.raise_visible()
            self._served.rows.changed[partition] = None
        start = min(answer.log_start, progress.high_watermark)
        if start > partition.log.log_start_offset:
            partition.log.advance_log_start(start)
            partition.start_unsaved = True
            partition.trimmed()
            self._served.rows.changed[partition] = None
            self._served.stirred = True
            self._checkpoint(partition, _told)


def append_fetched(partition: Partition, data: memoryview, now_ms: int) -> int:
    """Write batches as the leader has them; how many bytes that were. Raises PeerError when they do
    not follow (then none of them is there), DiskFull when there is room for some of them only,
    StorageFailed."""
    log = partition.log
    try:
        taken = log.follow(data, now_ms, partition.leader_epoch)
        log.commit()
    except DiskFull:
        _grown(partition, log.written_end)
        log.take_back(now_ms)
        raise
    _grown(partition, log.end_offset)
    return taken


def _grown(partition: Partition, end: int) -> None:
    log, progress = partition.log, partition.progress
    if end > progress.log_end:
        partition.tell_transactions()
        partition.places.ends.append((end, log.active_base, log.active_size))
        progress.appended(end, progress.held if partition.disk_counts else end)


def _told(failure: StorageFailed | None) -> None:
    """The leader says it again after a start."""
