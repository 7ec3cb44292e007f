"""Asks other brokers for their copies of deleted topics, before the active controller undeletes
one: DescribeConfigs of `penstock:deleted:NAME`.

    ask ─▶ each broker ── has not replayed the deletion yet: asked again ──▶ all have said, or it is
                  └─ no answer, no connection: it is away ───────────────▶ time: who asked goes on

Invariant: who asks is told once, with what was said; of who said nothing, nothing is known. Called
by `shell.py`; times are ms of a clock that never goes back.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from appliance.base.errors import (
    INVALID_TOPIC_EXCEPTION,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    PeerError,
)
from appliance.control.broker.channel import NodeLink, Values
from appliance.control.requests.pending_answers import Decision
from appliance.handlers.admin import AdminContext
from appliance.handlers.deleted_topics import LATER, one_name
from appliance.metadata import trash
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.metadata.parts import BrokerImage
from appliance.metadata.trash import Kept
from appliance.peers.conversation import NEVER

_DESCRIBE_CONFIGS: Final = 32
_VERSION: Final = 4  # in which texts may be long
_PATIENCE_MS: Final = 3_000
_AGAIN_MS: Final = 20
_UNKNOWN: Final = (INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION)

Said = Mapping[int, Mapping[str, list[Kept]]]
"""Node → name → what it keeps of it; of each node that has answered."""


class Asking(NamedTuple):
    """A decision that needs the other brokers' copies of deleted topics of these names. go_on:
    decides with them.
    """

    names: tuple[str, ...]
    go_on: Callable[[AdminContext, Said], Decision]


class _Round:
    """The brokers asked for one request. links: to those without an answer yet. again: when (ms) a
    broker asked too early is asked again.
    """

    __slots__ = ("again", "links", "netproc", "said", "token", "until_ms", "what")

    def __init__(self, netproc: int, token: int, what: Asking, until_ms: int) -> None:
        self.netproc = netproc
        self.token = token
        self.what = what
        self.until_ms = until_ms
        self.links: dict[int, NodeLink] = {}
        self.again: dict[int, int] = {}
        self.said: dict[int, dict[str, list[Kept]]] = {}


class BrokerAsker:
    """connect: a connection to a broker, None where it has no address for us. settled: whether this
    node itself has noted what it keeps of a name. heard: gets netproc, token, what was to be
    decided and what was said."""

    __slots__ = ("_connect", "_heard", "_rounds", "_settled")

    def __init__(
        self,
        connect: Callable[[BrokerImage], NodeLink | None],
        settled: Callable[[str], bool],
        heard: Callable[[int, int, Asking, Said], None],
    ) -> None:
        self._connect = connect
        self._settled = settled
        self._heard = heard
        self._rounds: list[_Round] = []

    def ask_brokers(
        self, netproc: int, token: int, what: Asking, brokers: Iterable[BrokerImage], now_ms: int
    ) -> None:
        """Ask these brokers; `heard` follows in a later turn."""
        begun = _Round(netproc, token, what, now_ms + _PATIENCE_MS)
        for broker in brokers:
            link = self._connect(broker)
            if link is not None:
                begun.links[broker.broker_id] = link
                self._say(begun, broker.broker_id, now_ms)
        self._rounds.append(begun)

    def forget_netproc(self, netproc: int) -> None:
        """It is dead: nobody hears what it asked for."""
        for one in [one for one in self._rounds if one.netproc == netproc]:
            self._rounds.remove(one)
            _hang_up(one)

    def run_once(self, now_ms: int) -> int:
        """Send and receive; in how many ms to come again at the latest."""
        soonest = NEVER
        for one in list(self._rounds):
            for node, at_ms in list(one.again.items()):
                if now_ms >= at_ms and node in one.links:
                    del one.again[node]
                    self._say(one, node, now_ms)
            waits = [link.run_once() for link in list(one.links.values())]
            settled = all(map(self._settled, one.what.names))
            if (settled and not one.links) or now_ms >= one.until_ms:
                self._rounds.remove(one)
                _hang_up(one)
                self._heard(one.netproc, one.token, one.what, one.said)
                return 0  # it may have changed much
            due_ms = min([one.until_ms, *one.again.values()])
            waits += [due_ms - now_ms] if settled else [_AGAIN_MS]
            soonest = min(soonest, *waits)
        return max(0, soonest)

    def _say(self, one: _Round, node: int, now_ms: int) -> None:
        values: Values = {
            "resources": [
                {
                    "resource_type": TOPIC,
                    "resource_name": one_name(name),
                    "configuration_keys": None,
                }
                for name in one.what.names
            ],
            "include_synonyms": False,
            "include_documentation": False,
        }
        link, patience_ms = one.links[node], max(1, one.until_ms - now_ms)
        done = partial(self._answered, one, node, now_ms)
        link.ask_peer(_DESCRIBE_CONFIGS, _VERSION, values, done, patience_ms, _VERSION)

    def _answered(self, one: _Round, node: int, asked_ms: int, answer: Any) -> None:
        if node not in one.links:
            return  # it was given up
        found = None if isinstance(answer, PeerError) else _read(answer, one.what.names)
        if found is not None and LATER in found:
            one.again[node] = asked_ms + _AGAIN_MS
            return
        if found is not None:
            one.said[node] = found
        one.links.pop(node).close()


def others(image: MetadataImage, node_id: int) -> list[BrokerImage]:
    """The other brokers that live, as far as the controller knows. node_id: this node's."""
    brokers = image.brokers.values()
    return [one for one in brokers if one.broker_id != node_id and not one.fenced]


def _hang_up(one: _Round) -> None:
    links, one.links = one.links, {}
    for link in links.values():
        link.close()


def _read(answer: Any, names: Iterable[str]) -> dict[str, list[Kept]] | None:
    """Name → what the broker keeps of it, LATER among the names where it cannot say yet. None: what
    it says is not to be understood. To Apache Kafka it is a name that no topic can have: it keeps
    nothing."""
    found: dict[str, list[Kept]] = {name: [] for name in names}
    told = {one_name(name): name for name in names}
    for row in answer.results:
        if row.resource_name not in told or row.error_code not in (NONE, *_UNKNOWN):
            return None
        for entry in row.configs:
            if entry.name == LATER:
                found[LATER] = []
                continue
            try:
                found[told[row.resource_name]].append(trash.decode_kept(entry.value or ""))
            except ValueError:
                return None
    return found
