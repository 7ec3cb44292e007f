"""Which task of a tiered partition is next.

A leader first claims the partition in the store; then unfinished segments go, then those that are
over, then the oldest uncopied one is copied. A follower reads what its leader says when it has
closed segments that it would like to drop, and seldom without.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from appliance.config.log_config import LogConfig
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.copying import describe_copy, find_uncopied, measure_lag
from appliance.ioproc.remote.tasks import (
    CLAIM,
    COPY,
    DELETE,
    FOLLOW,
    SWEEP,
    TieredPartition,
    TierTask,
)
from appliance.ioproc.remote_reads.lineage import lineage_end
from appliance.remotelog.expiry import WholeRetention, select_chain, select_expired
from appliance.remotelog.manifests import make_segment_id
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord
from appliance.remotelog.segments import RemoteSegments

FIRST_LOOK_NS: Final = 900 * 1_000_000_000
"""An upload of a deposed leader has ended by then; what is found later waits for the next look."""
LOOK_NS: Final = 3600 * 1_000_000_000


def choose_task(
    tiered: TieredPartition,
    now_ns: int,
    now_ms: int,
    old_ms: int,
    chance: Callable[[], bytes],
    node: int,
) -> TierTask | None:
    """None: nothing is to do. old_ms: the time by which records are old. chance: the random part of
    a segment's id. Raises StorageFailed, NotToBeCopied."""
    partition = tiered.partition
    epoch = partition.leader_epoch
    if not partition.leads:
        wants = measure_lag(partition.log)[1] > 0 or now_ns >= tiered.look_ns
        return TierTask(FOLLOW, epoch) if wants and partition.role.leader >= 0 else None
    if tiered.claimed != epoch:
        return TierTask(CLAIM, epoch)
    deleted = _choose_deletion(tiered, old_ms)
    if deleted is not None:
        return deleted
    if now_ns >= tiered.look_ns:
        return TierTask(SWEEP, epoch)
    rules = partition.rules
    found = find_uncopied(partition) if copies(rules) else None
    if found is None:
        return None
    unique = make_segment_id(tiered.term, chance())
    one, paths, data = describe_copy(partition, *found, unique, node, now_ms)
    return TierTask(COPY, epoch, one, paths=paths, data=data)


def _choose_deletion(tiered: TieredPartition, old_ms: int) -> TierTask | None:
    partition, known = tiered.partition, tiered.journal.known
    rules, log, epoch = partition.rules, partition.log, partition.leader_epoch
    for one in known.unfinished():
        return TierTask(DELETE, epoch, one)
    over = is_over(rules)
    kept = WholeRetention(
        log.log_start_offset,
        rules.retention_ms,
        rules.retention_bytes,
        measure_lag(log)[0] + log.active_size,
        over,
    )
    for one in select_expired(known.finished(), kept, old_ms):
        return TierTask(DELETE, epoch, one, over=over)
    return None


def end_in_log(partition: Partition, one: RemoteLogSegmentMetadataRecord) -> int:
    """The offset behind what a remote segment has of this log."""
    return lineage_end(one, partition.log.epochs, partition.log.end_offset)


def chain_of(partition: Partition, known: RemoteSegments) -> tuple[int, int]:
    """(first offset, offset behind the last) of what the store has of the log without a gap from
    the log start on."""
    start = partition.log.log_start_offset
    return select_chain(known.finished(), start, partial(end_in_log, partition))


def copies(rules: LogConfig) -> bool:
    """True if closed segments are to be copied."""
    return rules.remote_storage_enable and not rules.remote_log_copy_disable


def is_wanted(rules: LogConfig) -> bool:
    """True if closed segments are to be copied, or were."""
    return rules.remote_storage_enable and not rules.compact


def is_over(rules: LogConfig) -> bool:
    """True if tiering was switched off, and what was copied with it."""
    return not rules.remote_storage_enable and rules.remote_log_delete_on_disable
