"""Keeps this node's entry among the voters right (KIP-853): a leader updates its record, a follower
sends UpdateRaftVoter, and a node with automatic joining sends AddRaftVoter.

Called by `shell.py` in every turn; nothing is due while the log says what is so.
"""

from typing import Any, Final

from appliance.base.errors import DiskFull, PeerError
from appliance.control.quorum.driver import QuorumDriver
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.control.quorum.no_voters_warning import Unvoted
from appliance.handlers.voter_changes import VoterChanges
from appliance.quorum.voters import STATIC, ControllerEndpoint, Electorate, Voter
from appliance.shell.log import Log
from appliance.shell.seat import Seat

_ADD: Final = 80
_REMOVE: Final = 81
_UPDATE: Final = 82
_CAUGHT_UP_MS: Final = 3_600_000

Values = dict[str, Any]


class VoterDuties:
    """The voter duties of this node."""

    __slots__ = (
        "_again_ms",
        "_asked",
        "_cluster_id",
        "_driver",
        "_joins",
        "_me",
        "_pause_ms",
        "_quorum",
        "_told",
        "_told_in",
        "_unvoted",
    )  # fmt: skip

    def __init__(
        self,
        quorum: MetadataQuorum,
        driver: QuorumDriver,
        cluster_id: str,
        endpoints: tuple[ControllerEndpoint, ...],
        seat: Seat,
        log: Log,
    ) -> None:
        """endpoints: where this node is reached as a controller."""
        config = seat.config
        self._unvoted = Unvoted(quorum, config, seat.processes, log)
        self._quorum = quorum
        self._driver = driver
        self._cluster_id = cluster_id
        self._me = Voter(quorum.replica.node_id, quorum.replica.directory, endpoints)
        self._pause_ms = config.int("controller.quorum.fetch.timeout.ms")
        self._joins = config.bool("controller.quorum.auto.join.enable") and bool(endpoints)
        self._asked = False
        self._again_ms = 0
        self._told: dict[int, Voter] = {}  # static voters, in the epoch that this node leads
        self._told_in = (-1, -1)  # (leader, epoch) that knows this node already

    def electing(self, now_ms: int, probing: bool) -> VoterChanges | None:
        """For a decision; None while this node does not lead."""
        quorum, replica = self._quorum, self._quorum.replica
        if not quorum.active or not replica.leads:
            return None
        electorate = quorum.electing.latest
        known = {self._me.node_id: self._me} | self._told
        told = [known.get(one.node_id, one) for one in electorate.voters]

        def caught_up(node_id: int, directory: bytes) -> bool:
            peer = replica.peers.get((node_id, directory))
            return peer is not None and peer.level_ms >= max(0, now_ms - _CAUGHT_UP_MS)

        return VoterChanges(
            electorate,
            replica.begun,
            quorum.may_change,
            probing,
            caught_up,
            Electorate(electorate.kraft_version, tuple(told)),
            self._note,
        )

    def _note(self, voter: Voter) -> None:
        self._told[voter.node_id] = voter

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do what is due. Raises StorageFailed."""
        self._unvoted.warn_once(now_ms)
        quorum, me = self._quorum, self._me
        electorate, leadership = quorum.electing.latest, quorum.leadership
        if not quorum.replica.leads:
            self._told.clear()
        mine = electorate.find_voter(me.node_id)
        if self._joins and quorum.electing.oldest.keys.get(me.node_id) == me.directory:
            self._joins = False  # who takes its vote later means it
        if electorate.kraft_version > STATIC and mine == me:
            return
        if leadership.leads:
            if electorate.kraft_version > STATIC and quorum.replica.votes and quorum.may_change:
                try:
                    quorum.elect(electorate.with_voter(me), wall_ms)
                except DiskFull:
                    return
            return
        if self._asked or now_ms < self._again_ms or not me.endpoints:
            return
        if quorum.replica.votes:
            if (leadership.leader_id, leadership.epoch) != self._told_in:
                self._ask(_UPDATE, self._update(), now_ms)
        elif self._joins and electorate.kraft_version > STATIC and self._driver.level:
            stale = mine is not None and mine.directory != me.directory
            self._ask(*((_REMOVE, self._remove(mine)) if stale and mine else (_ADD, self._add())),
                      now_ms)  # fmt: skip

    def _ask(self, key: int, values: Values, now_ms: int) -> None:
        leader = self._quorum.leadership.leader_id, self._quorum.leadership.epoch
        ways = self._driver.others.to(leader[0])
        if ways is None:
            return
        self._asked, self._again_ms = True, now_ms + self._pause_ms

        def on_response(answer: Any) -> None:
            self._asked = False
            if key == _UPDATE and not isinstance(answer, PeerError) and not answer.error_code:
                self._told_in = leader

        ways.talk.ask_peer(key, 1 if key == _ADD else 0, values, on_response, self._pause_ms, 0)

    def _add(self) -> Values:
        return self._named(self._me) | {
            "timeout": self._pause_ms,
            "listeners": [one._asdict() for one in self._me.endpoints],
            "ack_when_committed": False,
        }

    def _remove(self, voter: Voter) -> Values:
        return self._named(voter)

    def _update(self) -> Values:
        me = self._me
        return self._named(me) | {
            "current_leader_epoch": self._quorum.leadership.epoch,
            "listeners": [one._asdict() for one in me.endpoints],
            "k_raft_version_feature": {
                "min_supported_version": me.lowest,
                "max_supported_version": me.highest,
            },
        }

    def _named(self, voter: Voter) -> Values:
        return {
            "cluster_id": self._cluster_id,
            "voter_id": voter.node_id,
            "voter_directory_id": voter.directory,
        }
