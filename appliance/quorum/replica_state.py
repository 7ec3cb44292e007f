"""The state of a replica, as properties: whether it votes, stands and leads, and the part that
outlives its process."""

from collections.abc import Mapping

from appliance.quorum.messages import Known
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
        """Whether it is one of those who elect."""
        return self.voters.get(self.node_id) in (ANY, self.directory)

    @property
    def stands(self) -> bool:
        """Whether it may have to lead; who votes no more, until that is agreed: perhaps it alone
        has the change, and it refuses its vote to whoever has less (Raft §4.2.2)."""
        return self.votes or (self._voted_before and self.high_watermark < self._elected_end)

    @property
    def alone(self) -> bool:
        """Whether nobody else elects."""
        return len(self.voters) == 1 and self.votes

    @property
    def may_change(self) -> bool:
        """Whether the voters may change: no leader before has a change of its own under way."""
        return self.begun and self.high_watermark >= self._elected_end

    @property
    def begun(self) -> bool:
        """Whether it leads and a record of its epoch is agreed."""
        return self.leads and self.high_watermark > self._began

    @property
    def leads(self) -> bool:
        """Whether it leads its epoch."""
        return self.role is Role.LEADER

    @property
    def known(self) -> Known:
        """What it must know after its death."""
        return Known(self.epoch, self.leader, self.voted, self.voted_directory)

    @property
    def granted(self) -> tuple[int, ...]:
        """Who has voted for it, in the election that it stood for last."""
        return tuple(sorted(one for one, yes in self._answers.items() if yes))
