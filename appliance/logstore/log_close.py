"""The orderly end of a log: everything synced, and what spares the next start its reading."""

from contextlib import suppress

from appliance.base.errors import DiskFull, StorageFailed
from appliance.logstore.parts import LogParts


def close_log(log: LogParts) -> None:
    """Implements `PartitionLog.close`."""
    disk, active = log.order.disk, log.active
    end = active.end_offset
    try:
        empty = not (end or log.order.closed_size + active.size)
        # What is empty is made again if a power cut takes it.
        changed = log.epochs.changed or log.unsynced.pending or log.saved_end != end
        if active.failure is None and changed and not empty:
            with suppress(DiskFull):
                log.commit()
            log.sync_now()
            if not active.has_unwritten:  # or the derived files would tell of it
                _write_derived(log)
            disk.sync_dir(log.path)
    except StorageFailed as failure:
        log.fail(failure)
        log.let_go()
        raise
    log.let_go()


def _write_derived(log: LogParts) -> None:
    """Writes indexes and a producer snapshot, so that the next start has less to read."""
    log.active.close_times()
    with suppress(DiskFull):
        log.active.write_indexes(log.order.disk, sync=True)
    log.snapshots.write_snapshot(log.active.end_offset, log.producers)
