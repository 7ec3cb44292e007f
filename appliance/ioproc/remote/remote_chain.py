"""Tells an opened log of its segments in a remote store."""

import errno

from appliance.base.errors import StorageFailed
from appliance.config.tiering_checks import ENABLED
from appliance.logstore.log import PartitionLog
from appliance.remotelog.expiry import select_chain
from appliance.remotelog.journal import NAME, read_journal


def read_chain(
    log: PartitionLog, topic_id: bytes, partition: int, log_start: int, *, enabled: bool = True
) -> None:
    """Tell a log that was opened what of it is in a remote store. log_start: that of the
    checkpoints. enabled: whether this node has a store. Raises StorageFailed, also where a part of
    the log would be hidden without the store."""
    if not log.disk.exists(f"{log.path}/{NAME}"):
        return
    known, _ = read_journal(log.disk, log.path, topic_id, partition)
    start, end = select_chain(known.finished(), log_start)
    if not enabled and (known.finished() or known.unfinished()):
        text = f"it has segments in a remote store, and {ENABLED} is false; set it to true"
        raise StorageFailed(log.path, errno.ENOENT, text)
    if end:
        log.join_remote(max(start, log_start), end)
