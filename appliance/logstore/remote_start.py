"""A log that begins where its leader's local log does: what lies before it is in a remote store
alone (KIP-405).

Called by the follower's side of replication and by the opening of a tiered log.
"""

from collections.abc import Iterable

from appliance.base.disk import write_file
from appliance.logstore import truncation
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.log import PartitionLog
from appliance.logstore.producer_snapshot import decode_snapshot


def start_behind_remote(log: PartitionLog, offset: int, snapshot: bytes, now_ms: int) -> None:
    """Drop all of a log; it begins anew at `offset`, with the producers of a snapshot of there, as
    far as that can be read. As `begin_anew`; killed anywhere in it the next start finds the log of
    before, or the new one with its producers. Raises StorageFailed."""
    known = decode_snapshot(snapshot, now_ms)
    if known is not None:
        write_file(log.disk, log.snapshots.path(offset), snapshot, sync=True)
        log.disk.sync_dir(log.path)
    truncation.begin_anew(log, offset)
    if known is not None:
        log.producers.become(known)
        log.snapshots.add_snapshot(offset)


def know_epochs(log: PartitionLog, begun: Iterable[tuple[int, int]]) -> None:
    """Leader epochs and where they began, of what lies before the log's own first epoch."""
    mine = log.epochs
    first = mine.starts[0] if mine.starts else log.end_offset
    made = LeaderEpochs()
    for epoch, start in begun:
        if start < first and epoch > made.latest:
            made.assign(epoch, start)
    if not made.epochs:
        return
    for epoch, start in zip(mine.epochs, mine.starts, strict=True):
        made.assign(epoch, start)
    mine.epochs[:], mine.starts[:] = made.epochs, made.starts
    mine.changed = True
    log.active.epoch = mine.latest
