"""The commonest sync: of the end of the active segment alone, by the thread that wrote it.

It needs no job that another thread could carry out beside the log (`flush.py`). Called by the I/O
process, when one producer waits and nothing else is to be done.
"""

from appliance.logstore.log import SNAPSHOT_BATCHES, PartitionLog


def is_all(log: PartitionLog) -> bool:
    """True if only the end of the active segment needs a sync now."""
    unsynced, active = log.unsynced, log.active
    more = unsynced.rolled or unsynced.folders or unsynced.derived or log.epochs.changed
    return not more and active.unsaved < SNAPSHOT_BATCHES and active.failure is None


def sync(log: PartitionLog) -> None:
    """Sync it; the recovery point is the log's end then. Raises StorageFailed, final for the log:
    pass it to `PartitionLog.fail`."""
    unsynced, active = log.unsynced, log.active
    assert unsynced.job is None, "a sync is under way"
    assert active.file is not None
    active.file.sync()
    unsynced.synced = unsynced.appended + active.size
    log.recovery_point = max(log.recovery_point, active.written_end)
