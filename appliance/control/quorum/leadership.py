"""The leadership of the metadata log, for the rest of control."""

from appliance.quorum.messages import NOBODY
from appliance.quorum.replica import Replica


class NotController(Exception):
    """Raised when a change must be asked of the active controller, which this node is not."""


class Leadership:
    """A read-only view of this node's replica of the quorum."""

    __slots__ = ("_replica",)

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    @property
    def leads(self) -> bool:
        """True if this node is the leader."""
        return self._replica.leads

    @property
    def leader_id(self) -> int:
        """The node that leads `epoch`, NOBODY when unknown; who resigned leads no more."""
        replica = self._replica
        mine = replica.leader == replica.node_id and not replica.leads
        return NOBODY if mine else replica.leader

    @property
    def epoch(self) -> int:
        """The newest known."""
        return self._replica.epoch

    @property
    def high_watermark(self) -> int:
        """Exclusive end of what is agreed."""
        return self._replica.high_watermark
