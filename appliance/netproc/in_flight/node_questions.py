"""Questions to other nodes in the appliance's own name: whether partitions belong to a transaction
that is coordinated there (decision 48).

An answer goes to the same handler as one of a coordinator on this node, as a message that came
through no ring. Called by the host and, while there is a connection,
by the server once in a turn.
"""

from functools import partial
from typing import Any, Final

from appliance.base.clock import Clock
from appliance.base.errors import PeerError
from appliance.config import between_nodes
from appliance.config.broker import BrokerConfig
from appliance.metadata.endpoints import inter_broker
from appliance.metadata.follower import Follower
from appliance.peers.between import carry_to_brokers
from appliance.peers.brokers import Brokers
from appliance.peers.link import Watcher
from appliance.ring.messages import ANSWERED, Message
from appliance.ring.slots import make_message
from appliance.shell.log import Log

_TIMEOUT_MS: Final = 5_000
"""Then the node is as good as dead, and the client is told to try again."""


class NodeQuestions:
    """links: to the nodes that were ever asked. heard: answers, and tokens that nobody will answer
    (None), until who looks takes them."""

    __slots__ = ("_brokers", "heard", "links")

    def __init__(
        self, config: BrokerConfig, follower: Follower, watcher: Watcher, clock: Clock, log: Log
    ) -> None:
        way = between_nodes.to_brokers(config)
        self._brokers = Brokers(
            lambda node: inter_broker(follower.image, node, way),
            watcher,
            clock,
            f"penstock-{config.int('node.id')}",
            carry_to_brokers(config, clock, log),
        )
        self.links = self._brokers.links
        self.heard: list[tuple[int, Message | None]] = []

    def ask_node(self, token: int, node: int, key: int, version: int, body: bytes) -> bool:
        """One question, in exactly this version, for who is known by this token; False when nobody
        can be asked."""
        versions = range(version, version + 1)
        done = partial(self._hear, token)
        return self._brokers.ask_raw(node, key, versions, lambda _: body, done, _TIMEOUT_MS)

    def run_once(self) -> int:
        """Send and hear; in how many ms there is something to do at the latest."""
        return self._brokers.run_once()

    def take_answers(self) -> list[tuple[int, Message | None]]:
        """Return the answers since the last call, by token. None: there will be no answer."""
        heard, self.heard = self.heard, []
        return heard

    def _hear(self, token: int, answer: Any) -> None:
        if isinstance(answer, PeerError):
            self.heard.append((token, None))
            return
        payload = bytes(answer.body)
        self.heard.append((token, make_message(ANSWERED, token, payload)))
