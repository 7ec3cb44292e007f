"""Whether the other brokers are there: the active controller keeps an idle connection to each.

A connection that is closed and then refused says that nobody listens there any more, which the
death of a single process of an appliance does not: its supervisor holds the listening sockets. That
is evidence, told once for each broker epoch; a silent broker is a matter of time. Who became
unfenced while we watch must have been there first: Apache Kafka's brokers listen only then.

Called by `fencing.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from appliance.base.errors import NETWORK_EXCEPTION, PeerError
from appliance.control.broker.channel import Values
from appliance.metadata.parts import BrokerImage
from appliance.peers.conversation import NEVER, Done

DESCRIBE_CLUSTER: Final = 60
_PATIENCE_MS: Final = 10_000
_ANYTHING: Final[Values] = {"include_cluster_authorized_operations": False}


class Watched(Protocol):
    """A connection to one broker: `peers.link.Link`."""

    @property
    def connected(self) -> bool: ...

    def ask(
        self, api_key: int, version: int, message: Values, done: Done, timeout_ms: int
    ) -> None: ...

    def turn(self) -> int: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Watch:
    """served: it was in use before we began, or has answered. asking: it is to answer. there: it
    did, by the present connection. told: that it is gone."""

    link: Watched
    epoch: int
    served: bool
    asking: bool = False
    there: bool = False
    told: bool = False


class Watching:
    """connect: a connection to a broker, None where it has no address for us. gone: is told the id
    of who is not there any more."""

    __slots__ = ("_connect", "_gone", "_node_id", "_told", "_watches", "_watching")

    def __init__(
        self,
        node_id: int,
        connect: Callable[[BrokerImage], Watched | None],
        gone: Callable[[int], None],
    ) -> None:
        self._node_id = node_id
        self._connect = connect
        self._gone = gone
        self._watching = False
        self._watches: dict[int, _Watch] = {}
        self._told: dict[int, int] = {}  # broker → its epoch, of who was told to be gone

    def stop(self) -> None:
        """Watch nobody any more, and know nothing."""
        self.follow({})
        self._told.clear()
        self._watching = False

    def follow(self, brokers: Mapping[int, BrokerImage]) -> None:
        """Watch those of them that are unfenced, and nobody else."""
        living = {
            one.broker_id: one
            for one in brokers.values()
            if not one.fenced and one.broker_id != self._node_id
        }
        for broker_id, watch in list(self._watches.items()):
            if broker_id not in living or living[broker_id].epoch != watch.epoch:
                del self._watches[broker_id]
                watch.told = True
                watch.link.close()
        for broker_id, broker in living.items():
            if broker_id not in self._watches:
                link = self._connect(broker)
                if link is not None:
                    told = self._told.get(broker_id) == broker.epoch
                    served = not self._watching
                    self._watches[broker_id] = _Watch(link, broker.epoch, served, told=told)
        self._watching = True

    def turn(self) -> int:
        """Look at each; in how many ms to come again at the latest."""
        soonest = NEVER
        for broker_id, watch in list(self._watches.items()):
            if watch.there and not watch.link.connected:
                watch.there = False
            if not (watch.there or watch.asking or watch.told):
                watch.asking = True
                heard = partial(self._heard, broker_id, watch)
                watch.link.ask(DESCRIBE_CLUSTER, 0, _ANYTHING, heard, _PATIENCE_MS)
            soonest = min(soonest, watch.link.turn())
        return soonest

    def _heard(self, broker_id: int, watch: _Watch, answer: Any) -> None:
        watch.asking = False
        if not isinstance(answer, PeerError):
            watch.there = watch.served = True
        elif answer.code == NETWORK_EXCEPTION and watch.served and not watch.told:
            watch.told = True
            self._told[broker_id] = watch.epoch
            self._gone(broker_id)
