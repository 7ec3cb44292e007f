"""Where nodes are reached: controllers as the quorum knows, brokers as they registered; and where
this one is, as a controller.

Called by `shell.py`, once for each connection that is wanted.
"""

import socket
from collections.abc import Callable

from appliance.base.clock import Clock
from appliance.config import between_nodes
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import parse_endpoint
from appliance.control.quorum.connections import Place
from appliance.metadata.endpoints import of_peers
from appliance.metadata.parts import BrokerImage
from appliance.peers.between import carry_to_brokers, carry_to_controllers
from appliance.peers.carrier import Carry
from appliance.peers.link import Link, Watcher
from appliance.quorum.voters import ControllerEndpoint
from appliance.shell.log import Log


class Addresses:
    """watcher: the loop that the connections hang into; without one there are none. places: where
    controllers are reached, by their ids."""

    __slots__ = (
        "_client_id", "_clock", "_places", "_to_broker", "_to_controller", "_watcher", "_way",
    )  # fmt: skip

    def __init__(
        self,
        config: BrokerConfig,
        node_id: int,
        watcher: Watcher | None,
        clock: Clock,
        places: Callable[[], dict[int, Place]],
        log: Log,
    ) -> None:
        self._way = between_nodes.to_brokers(config)
        self._to_broker = carry_to_brokers(config, clock, log)
        self._to_controller = carry_to_controllers(config, clock, log)
        self._client_id = str(node_id)
        self._watcher = watcher
        self._clock = clock
        self._places = places

    def voter(self, node_id: int, place: Place, client_id: str) -> Link:
        """A connection to this node, for the quorum."""
        assert self._watcher is not None, "nobody is asked without a loop"
        return Link(
            node_id, *place, self._watcher, self._clock, client_id, carry=self._to_controller
        )

    def controller(self, node_id: int) -> Link | None:
        """A connection to the controller listener of a voter."""
        place = self._places().get(node_id)
        return None if place is None else self._link(node_id, *place, self._to_controller)

    def broker(self, broker: BrokerImage) -> Link | None:
        """A connection to where brokers reach this one."""
        one = of_peers(broker, self._way)
        if one is None:
            return None
        return self._link(broker.broker_id, one.host, one.port, self._to_broker)

    def _link(self, node_id: int, host: str, port: int, carry: Carry) -> Link | None:
        if self._watcher is None:
            return None
        return Link(node_id, host, port, self._watcher, self._clock, self._client_id, carry=carry)


def own_controllers(config: BrokerConfig, node_id: int) -> tuple[ControllerEndpoint, ...]:
    """Where this node is reached as a controller: as the settings name the voter that it is, else
    by its controller listeners, as they are advertised."""
    names = config.list("controller.listener.names")
    for one in config.voters():
        if one.node_id == node_id:
            return (ControllerEndpoint(names[0].strip().upper(), one.host, one.port),)
    told = {name: place for name in names if (place := _advertised(config, name)) is not None}
    found = [one for one in config.opened() if config.is_controllers(one.name)]
    places = [(one.name, *told.get(one.name, (one.host, one.port))) for one in found]
    return tuple(ControllerEndpoint(name, _host(host), port) for name, host, port in places if port)


def _advertised(config: BrokerConfig, name: str) -> Place | None:
    ends = [
        parse_endpoint("advertised.listeners", text) for text in config.list("advertised.listeners")
    ]
    return next(((one.host, one.port) for one in ends if one.name == name), None)


def _host(host: str) -> str:
    return socket.getfqdn() if host in ("", "0.0.0.0", "::") else host
