"""Which part of a remote segment belongs to a log, by its leader epochs.

After an unclean leader election the store has records that the log lost: their segments, or the
ends of them, are of another lineage (KIP-405).
"""

from bisect import bisect_right

from appliance.logstore.epochs import LeaderEpochs
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord


def lineage_end(one: RemoteLogSegmentMetadataRecord, epochs: LeaderEpochs, log_end: int) -> int:
    """The offset behind the last record of a segment that the log has, too; its start offset where
    it has none. What lies before the first epoch of the log is believed."""
    behind = min(one.end_offset + 1, log_end)
    theirs = one.segment_leader_epochs
    starts = [each.offset for each in theirs]
    points = {one.start_offset, *starts, *epochs.starts}
    for at in sorted(at for at in points if one.start_offset <= at < behind):
        mine = epochs.epoch_of(at)
        if mine >= 0 and mine != theirs[bisect_right(starts, at) - 1].leader_epoch:
            return at
    return max(one.start_offset, behind)
