"""Bugs of a voter, each of which breaks one of the invariants of `invariants.py`."""

from unittest.mock import patch

from sim.agreed.voter import Voter

from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.control.quorum.snapshots import SnapshotSchedule
from appliance.quorum.replica import Replica
from appliance.quorum.role import Role


def driven(replica):
    """A voter by this replica."""
    return type(replica.__name__, (Voter,), {"replica_of": replica})


class Forgets(Voter):
    """Whom it voted for, and which epochs there were."""

    def begin(self):
        with patch.object(MetadataQuorum, "remember", lambda *_: None):
            super().begin()

    def turn(self):
        with patch.object(MetadataQuorum, "remember", lambda *_: None):
            super().turn()

    def received(self, end, message):
        with patch.object(MetadataQuorum, "remember", lambda *_: None):
            super().received(end, message)


class KeepsNothing(SnapshotSchedule):
    """Of the log, whatever the snapshots have."""

    __slots__ = ()

    def _clean(self, now_ms):
        gone = super()._clean(now_ms)
        self._log.advance_start(self._log.durable, now_ms)
        return gone


class Wasteful(Voter):
    def loads(self):
        super().loads()
        self.quorum.snapshots.__class__ = KeepsNothing


class BelievesWhoLeads(Replica):
    """Who leads anew knows less of what is agreed than its followers."""

    def take_over(self, answer):
        super().take_over(answer)
        if answer.parts is None and answer.snapshot is None:
            self.high_watermark = min(answer.high_watermark, self._log.end_offset)


class OneIsEnough(Replica):
    """What any voter has is agreed."""

    def _commit(self):
        agreed = max([self._held, *(peer.held for _, peer in self._electing())])
        if agreed > max(self._began, self.high_watermark):
            self.high_watermark = min(agreed, self._log.end_offset)


class ElectsItself(Replica):
    """Its own vote is enough."""

    def _stand(self, now_ms):
        super()._stand(now_ms)
        self._lead(now_ms)


class NeverParts(Replica):
    """A leader takes every log for a beginning of its own."""

    def fetched_by(self, ask, now_ms):
        return super().fetched_by(ask, now_ms)._replace(parts=None)


class LeadsOn(Replica):
    """After a start, in the epoch that it led before."""

    def __init__(self, *args):
        super().__init__(*args)
        if self.role is Role.RESIGNED and self.leader == self.node_id:
            self.role = Role.CANDIDATE
            self._lead(args[5])


OF_EACH = {
    "MonotonicHighWatermark": driven(BelievesWhoLeads),
    "MonotonicEpoch": Forgets,
    "MajorityReachedHighWatermark": driven(OneIsEnough),
    "SingleLeader": driven(ElectsItself),
    "SnapshotAtLogStart": Wasteful,
    "LeaderNeverLoadSnapshot": driven(LeadsOn),
    "ConsistentCommittedData": driven(NeverParts),
}
"""Invariant → who breaks it."""
