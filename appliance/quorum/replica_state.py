"""The state of a replica, as properties: whether it votes, stands and leads, and the part that
outlives its process."""

from collections.abc import Mapping

from appliance.quorum.messages import QuorumState
from appliance.quorum.role import Role
from appliance.quorum.voters import ANY


class ReplicaState:
    """The part of `Replica` that changes nothing."""

    node_id: int
    directory: bytes
    voters: Mapping[int, bytes]
    epoch: int
    leader: int
    voted: int
    voted_directory: bytes
    high_watermark: int
    role: Role
    _answers: dict[int, bool]
    _began: int
    _elected_end: int
    _voted_before: bool

    @property
    def votes(self) -> bool:
        """True if this replica is a voter."""
        return self.voters.get(self.node_id) in (ANY, self.directory)

    @property
    def stands(self) -> bool:
        """True if it may have to lead: it is a voter, or a removed voter until its removal commits.
        It alone may have that record, and then it refuses its vote to shorter logs (Raft §4.2.2).
        """
        return self.votes or (self._voted_before and self.high_watermark < self._elected_end)

    @property
    def alone(self) -> bool:
        """True if this is the only voter."""
        return len(self.voters) == 1 and self.votes

    @property
    def may_change(self) -> bool:
        """True if the voters may change: no earlier leader has a change under way."""
        return self.begun and self.high_watermark >= self._elected_end

    @property
    def begun(self) -> bool:
        """True if it leads and a record of its epoch is committed."""
        return self.leads and self.high_watermark > self._began

    @property
    def leads(self) -> bool:
        """True if it leads its epoch."""
        return self.role is Role.LEADER

    @property
    def known(self) -> QuorumState:
        """The durable state of this replica."""
        return QuorumState(self.epoch, self.leader, self.voted, self.voted_directory)

    @property
    def granted(self) -> tuple[int, ...]:
        """Sorted ids of the voters that granted its last request for votes."""
        return tuple(sorted(one for one, yes in self._answers.items() if yes))
