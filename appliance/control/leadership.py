"""Who leads the metadata log, and what of it is committed: the value machine that a quorum drives.

    resigned ── elected(epoch) ──▶ leads ── resigned() ──▶ resigned

Invariant: epochs only rise, no epoch is led twice, and the high watermark never falls. A leader
commits only once a record of its own epoch is durable (Raft §5.4.2): what it found in its log from
before is committed with that one, never on its own, because another leader could still cut it off.
This node is the only voter, so durable here is durable at a majority.
"""

from appliance.quorum.messages import NOBODY


class NotController(Exception):
    """Whoever wants a change must ask the leader of the metadata log, which this node is not."""


class Leadership:
    """epoch: the newest known. leader_id: node that leads it, NOBODY when unknown. high_watermark:
    exclusive end of what is committed."""

    __slots__ = ("_node_id", "_start", "epoch", "high_watermark", "leader_id")

    def __init__(self, node_id: int, epoch: int, durable: int) -> None:
        """epoch: of the newest record that was found. durable: end of the log as it was opened; the
        only voter's log is what was agreed."""
        assert node_id >= 0 and durable >= 0
        self._node_id = node_id
        self._start = durable
        self.epoch = epoch
        self.leader_id = NOBODY
        self.high_watermark = durable

    @property
    def leads(self) -> bool:
        """Whether this node is the leader."""
        return self.leader_id == self._node_id

    def elected(self, epoch: int, start: int) -> None:
        """This node leads `epoch`, whose first record will stand at `start`."""
        assert not self.leads, "who leads is not elected"
        assert epoch > self.epoch, (epoch, self.epoch)
        assert start >= self.high_watermark, "what is committed is in the leader's log"
        self.epoch, self._start, self.leader_id = epoch, start, self._node_id

    def resigned(self) -> None:
        """This node does not lead any more; who does is not known."""
        assert self.leads, "only a leader resigns"
        self.leader_id = NOBODY

    def durable(self, end: int) -> int:
        """Records below `end` are on the disk: the high watermark from now on."""
        if self.leads and end > self._start:
            assert end >= self.high_watermark, (end, self.high_watermark)
            self.high_watermark = end
        return self.high_watermark
