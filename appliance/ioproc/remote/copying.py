"""Which closed segment of a log is copied next, and what is told of it (KIP-405).

Reads the log and its folder, changes nothing.
"""

from typing import Final

from appliance.ioproc.partitions.partition import Partition
from appliance.logstore import files, lookup
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.log import PartitionLog
from appliance.logstore.producer_snapshot import encode_snapshot
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.segment import Segment
from appliance.remotelog.objects import (
    LEADER_EPOCHS,
    LOG,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
)
from appliance.remotelog.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteSegmentId,
    RemoteTopicPartition,
    SegmentLeaderEpoch,
)
from appliance.remotelog.states import COPY_SEGMENT_STARTED

_INDEXES: Final = ((OFFSET_INDEX, files.INDEX), (TIME_INDEX, files.TIME_INDEX))

Copy = tuple[RemoteLogSegmentMetadataRecord, dict[str, str], dict[str, bytes]]
"""A segment, its files by kind, and those of its parts that are no files."""


class NotToBeCopied(Exception):
    """A segment that no remote store can have."""


def find_uncopied(partition: Partition) -> tuple[Segment, int] | None:
    """The oldest closed segment that is not in the remote store, and the offset behind it. None
    when all are, or when it may still change: its records must be on the disk, and every
    transaction in it must have ended, visibly."""
    log, every = partition.log, partition.log.segments
    limit = min(partition.last_stable_offset, log.recovery_point)
    for number, segment in enumerate(every[:-1]):
        behind = every[number + 1].base
        if behind <= max(log.copied_end, log.log_start_offset):
            continue
        return (segment, behind) if behind <= limit and log.is_synced(segment) else None
    return None


def measure_lag(log: PartitionLog) -> tuple[int, int]:
    """(bytes, number) of closed segments that are not in the remote store."""
    every = log.segments
    sizes = [
        segment.size
        for number, segment in enumerate(every[:-1])
        if every[number + 1].base > max(log.copied_end, log.log_start_offset)
    ]
    return sum(sizes), len(sizes)


def describe_copy(
    partition: Partition, segment: Segment, behind: int, unique: bytes, node: int, now_ms: int
) -> Copy:
    """Returns what a copy of this segment is. unique: its id. behind: the offset behind it. Raises
    StorageFailed, NotToBeCopied."""
    log, disk = partition.log, partition.log.disk
    newest = lookup.newest_of(log.order, segment)
    paths, data = {LOG: segment.path}, {LEADER_EPOCHS: _epochs_below(log.epochs, behind)}
    for kind, suffix in _INDEXES:
        path = segment.stem + suffix
        if disk.exists(path):
            paths[kind] = path
        else:  # there was no room for it; readers find batches without
            data[kind] = b""
    aborted = segment.stem + files.TXN_INDEX
    has_aborted = disk.exists(aborted) and disk.size(aborted) > 0
    if has_aborted:
        paths[TRANSACTION_INDEX] = aborted
    snapshot = files.stem(segment.folder, behind) + files.SNAPSHOT
    if disk.exists(snapshot):
        paths[PRODUCER_SNAPSHOT] = snapshot
    else:  # only the newest are kept, and nothing here reads this one
        data[PRODUCER_SNAPSHOT] = encode_snapshot(ProducerStates())
    owner = RemoteTopicPartition(
        name=partition.topic, id=partition.topic_id, partition=partition.index
    )
    one = RemoteLogSegmentMetadataRecord(
        remote_log_segment_id=RemoteSegmentId(topic_id_partition=owner, id=unique),
        start_offset=segment.base,
        end_offset=behind - 1,
        broker_id=node,
        max_timestamp_ms=newest,
        event_timestamp_ms=now_ms,
        segment_leader_epochs=_epochs_of(log.epochs, segment.base, behind),
        segment_size_in_bytes=segment.size,
        custom_metadata=None,
        remote_log_segment_state=COPY_SEGMENT_STARTED,
        txn_index_empty=not has_aborted,
    )
    return one, paths, data


def _epochs_of(epochs: LeaderEpochs, base: int, behind: int) -> tuple[SegmentLeaderEpoch, ...]:
    """The leader epochs of offsets from `base` on and below `behind`. Raises NotToBeCopied."""
    first = epochs.epoch_of(base)
    if first < 0:
        raise NotToBeCopied(f"the leader epoch of offset {base} is not known")
    found = [SegmentLeaderEpoch(leader_epoch=first, offset=base)]
    for epoch, start in zip(epochs.epochs, epochs.starts, strict=True):
        if base < start < behind:
            found.append(SegmentLeaderEpoch(leader_epoch=epoch, offset=start))
    return tuple(found)


def _epochs_below(epochs: LeaderEpochs, behind: int) -> bytes:
    """The bytes of a leader epoch file that ends with a segment."""
    made = LeaderEpochs()
    for epoch, start in zip(epochs.epochs, epochs.starts, strict=True):
        if start < behind:
            made.assign(epoch, start)
    return made.encode()
