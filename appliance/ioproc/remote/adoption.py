"""A log takes over what a manifest says of it, when its node becomes the leader."""

from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.task_choice import chain_of
from appliance.remotelog.segments import RemoteSegments


def close_gap(partition: Partition, known: RemoteSegments) -> bool:
    """Move the log start up to where the store, or else this host, has the log without a gap: the
    leader before had removed what lies below, and this node had not heard of it. Returns whether it
    moved."""
    log = partition.log
    local = log.segments[0].base
    if log.log_start_offset >= local:
        return False
    start, end = chain_of(partition, known)
    target = start if end >= local else local
    if target <= log.log_start_offset:
        return False
    log.advance_log_start(target)
    partition.start_unsaved = True
    partition.trimmed()
    return True
