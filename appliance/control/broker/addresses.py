"""Where other nodes are reached: controllers by the settings, brokers by what they registered.

Called by `main.py`, once for each connection that is wanted.
"""

from appliance.base.clock import Clock
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import Voter
from appliance.metadata.parts import BrokerImage
from appliance.peers.link import Link, Watcher


class Addresses:
    """watcher: the loop that the connections hang into; without one there are none."""

    __slots__ = ("_client_id", "_clock", "_config", "_watcher")

    def __init__(
        self, config: BrokerConfig, node_id: int, watcher: Watcher | None, clock: Clock
    ) -> None:
        self._config = config
        self._client_id = str(node_id)
        self._watcher = watcher
        self._clock = clock

    def voter(self, voter: Voter, client_id: str) -> Link:
        """A connection to this voter, for the quorum."""
        assert self._watcher is not None, "nobody is asked without a loop"
        host, port = voter.host, voter.port
        return Link(voter.node_id, host, port, self._watcher, self._clock, client_id)

    def controller(self, node_id: int) -> Link | None:
        """A connection to the controller listener of a voter."""
        for voter in self._config.voters():
            if voter.node_id == node_id:
                return self._link(node_id, voter.host, voter.port)
        return None

    def broker(self, broker: BrokerImage) -> Link | None:
        """A connection to where brokers reach this one."""
        name = self._config.get("inter.broker.listener.name")
        for one in broker.endpoints:
            if name in (None, one.name):
                return self._link(broker.broker_id, one.host, one.port)
        return None

    def _link(self, node_id: int, host: str, port: int) -> Link | None:
        if self._watcher is None:
            return None
        return Link(node_id, host, port, self._watcher, self._clock, self._client_id)
