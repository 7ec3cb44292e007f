"""Tells an opened log of its segments in a remote store."""

import errno
from functools import partial

from appliance.base.errors import StorageFailed
from appliance.config.tiering_checks import ENABLED
from appliance.ioproc.remote_reads.lineage import lineage_end
from appliance.logstore.log import PartitionLog
from appliance.logstore.remote_start import know_epochs
from appliance.remotelog.expiry import select_chain
from appliance.remotelog.journal import NAME, read_journal
from appliance.remotelog.segments import RemoteSegments


def epochs_of(known: RemoteSegments) -> list[tuple[int, int]]:
    """Leader epochs and where they began, as remote segments say."""
    every = (each for one in known.finished() for each in one.segment_leader_epochs)
    return [(each.leader_epoch, each.offset) for each in every]


def read_chain(
    log: PartitionLog, topic_id: bytes, partition: int, log_start: int, *, enabled: bool = True
) -> None:
    """Tell a log that was opened what of it is in a remote store. log_start: that of the
    checkpoints. enabled: whether this node has a store. Raises StorageFailed, also where a part of
    the log would be hidden without the store."""
    if not log.disk.exists(f"{log.path}/{NAME}"):
        return
    known, _ = read_journal(log.disk, log.path, topic_id, partition)
    if enabled:
        know_epochs(log, epochs_of(known))
    ends = partial(lineage_end, epochs=log.epochs, log_end=log.end_offset)
    start, end = select_chain(known.finished(), log_start, ends)
    if not enabled and (known.finished() or known.unfinished()):
        text = f"it has segments in a remote store, and {ENABLED} is false; set it to true"
        raise StorageFailed(log.path, errno.ENOENT, text)
    if end:
        log.join_remote(max(start, log_start), end)
