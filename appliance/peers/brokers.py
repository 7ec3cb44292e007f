"""Connections to other brokers, one to each that was ever asked, at the address that it registered
last.

For short questions, which do not hold each other up. Whoever owns this calls `turn` in each turn of
its loop while there is somebody in `links`.
"""

from collections.abc import Callable

from appliance.base.clock import Clock
from appliance.peers.carrier import Carry, plain
from appliance.peers.conversation import NEVER, Body, Done
from appliance.peers.link import Link, Watcher

Where = Callable[[int], tuple[str, int] | None]
"""The host and port of a broker, None for one that is not registered."""


class Brokers:
    """links: by node id; always the same dict."""

    __slots__ = ("_carry", "_client_id", "_clock", "_watcher", "_where", "links")

    def __init__(
        self, where: Where, watcher: Watcher, clock: Clock, client_id: str, carry: Carry = plain
    ) -> None:
        """carry: as for `Link`."""
        self._carry = carry
        self._where = where
        self._watcher = watcher
        self._clock = clock
        self._client_id = client_id
        self.links: dict[int, Link] = {}

    def ask_peer(
        self, node: int, api_key: int, versions: range, message: Body, done: Done, timeout_ms: int
    ) -> bool:
        """As `Link.ask`; False when the node is not registered, and `done` will hear nothing."""
        link = self._link(node)
        if link is not None:
            link.ask_peer(api_key, versions[-1], message, done, timeout_ms, lowest=versions[0])
        return link is not None

    def ask_raw(
        self, node: int, api_key: int, versions: range, message: Body, done: Done, timeout_ms: int
    ) -> bool:
        """As `Link.ask_raw`; False as in `ask`."""
        link = self._link(node)
        if link is not None:
            link.ask_raw(api_key, versions[-1], message, done, timeout_ms, lowest=versions[0])
        return link is not None

    def run_once(self) -> int:
        """Connect, send, give up; in how many ms it wants to be called again at the latest."""
        return min((link.run_once() for link in list(self.links.values())), default=NEVER)

    def close(self) -> None:
        """Hang up."""
        for link in self.links.values():
            link.close()

    def _link(self, node: int) -> Link | None:
        where = self._where(node)
        if where is None:
            return None
        link = self.links.get(node)
        if link is None or (link.host, link.port) != where:
            if link is not None:
                link.close()
            link = Link(
                node, *where, self._watcher, self._clock, self._client_id, carry=self._carry
            )
            self.links[node] = link
        return link
