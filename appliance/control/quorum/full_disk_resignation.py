"""A voter with a full disk gives up leadership: as the leader it resigns, else it does not stand
for election.

Where the disk is nearly full no partition can be made, for they make the metadata grow; where
nothing can be appended nobody is fenced and nothing is led elsewhere. Who leads so resigns where
another voter is there, is level, and may have room as far as the registrations of brokers say; one
that has none either finds out and makes way in its turn. For a minute no node does so again, then
for longer and longer: where all disks are full they do not take turns for ever, and who leads then
serves what the log holds, which is more than nobody does.
"""

from collections.abc import Mapping
from typing import Final

from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.metadata.parts import BrokerImage
from appliance.quorum.voters import ANY

_FIRST_MS: Final = 60_000
_MOST_MS: Final = 3_600_000
_FORGOTTEN_MS: Final = 2 * _MOST_MS


class MakingWay:
    """recent_ms: who has fetched within that time is there."""

    __slots__ = ("_full", "_low", "_made_ms", "_pause_ms", "_quorum", "_recent_ms")

    def __init__(self, quorum: MetadataQuorum, recent_ms: int) -> None:
        self._quorum = quorum
        self._recent_ms = recent_ms
        self._low = self._full = False
        self._made_ms = -_FORGOTTEN_MS
        self._pause_ms = 0

    def is_low(self, *, low: bool) -> None:
        """low: the disk of the metadata is nearly full."""
        if low != self._low:
            self._low = low
            self._hold_back()

    def no_room(self) -> None:
        """Something found no room: others should lead."""
        self._full = True
        self._hold_back()

    def room(self) -> None:
        """Something was written."""
        self._full = False
        self._hold_back()

    def _hold_back(self) -> None:
        self._quorum.replica.holds_back = (self._low or self._full) and not self._quorum.alone

    def resign_if_full(self, now_ms: int) -> bool:
        """This leader has had no room for a while: whether it leads no more."""
        replica = self._quorum.replica
        if not replica.leads or now_ms < self._made_ms + self._pause_ms:
            return False
        full = full_voters(replica.voters, self._quorum.image.brokers)
        if not any(one not in full for one in self._level(now_ms)):
            return False
        if now_ms >= self._made_ms + _FORGOTTEN_MS:
            self._pause_ms = 0
        self._made_ms = now_ms
        self._pause_ms = min(max(2 * self._pause_ms, _FIRST_MS), _MOST_MS)
        if not self._low:
            self.no_room()
        replica.resign(now_ms, full)
        return True

    def _level(self, now_ms: int) -> list[int]:
        """The other voters that are there and have all of the log: any of them can be elected."""
        replica, end = self._quorum.replica, self._quorum.log.end_offset
        peers = [(one, replica.peers.get((one, key))) for one, key in replica.voters.items()]
        since = now_ms - self._recent_ms
        return [one for one, peer in peers if peer and peer.held == end and peer.fetched_ms > since]


def full_voters(voters: Mapping[int, bytes], brokers: Mapping[int, BrokerImage]) -> frozenset[int]:
    """Those of the voters whose folder of the metadata takes nothing new, as far as is known:
    brokers tell of folders without room as cordoned ones (KIP-1066), controllers alone of none."""

    def full(node_id: int, directory: bytes) -> bool:
        broker = brokers.get(node_id)
        if broker is None or not broker.cordoned_log_dirs:
            return False
        named = (directory,) if directory != ANY else broker.log_dirs
        return set(named) <= set(broker.cordoned_log_dirs)

    return frozenset(one for one, directory in voters.items() if full(one, directory))
