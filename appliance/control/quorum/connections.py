"""Links to the other nodes of the quorum, by their ids: made when somebody is to be asked, and made
anew when a node is reached elsewhere.

Where a node is reached: as it said itself when it began to lead, as somebody told who was asked for
the leader, or as the log or the settings name it. What was told counts until the log says something
else of that node. Seeds (negative ids) are where others are looked for by who knows none.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from appliance.control.quorum.wire import Places
from appliance.peers.conversation import NEVER, Body, Done

Place = tuple[str, int]


class Way(Protocol):
    """A connection that carries requests to another node: `peers.link.Link`."""

    def ask_peer(
        self, api_key: int, version: int, message: Body, done: Done, timeout_ms: int, lowest: int
    ) -> None: ...

    def run_once(self) -> int: ...

    def close(self) -> None: ...


Connect = Callable[[int, Place, str], Way]
"""Makes a link to this node at this place, with the client id that it is told."""


class Ways(NamedTuple):
    """The links to another node: a fetch that waits would hold back the votes behind it."""

    place: Place
    talk: Way
    fetch: Way


class Everybody:
    """reached: what the log or the settings say. Without `connect` nobody is."""

    __slots__ = ("_last", "_made", "_me", "_reached", "_seeds", "_told", "connect")

    def __init__(
        self, me: int, reached: Callable[[], dict[int, Place]], seeds: Mapping[int, Place]
    ) -> None:
        """me: this node's id."""
        self.connect: Connect | None = None
        self._me = me
        self._reached = reached
        self._last: dict[int, Place] = {}
        self._seeds = seeds
        self._made: dict[int, Ways] = {}
        self._told: dict[int, tuple[Place, Place | None]] = {}  # beside what the log said then

    def learn(self, places: Places) -> None:
        """These nodes are reached there, somebody says."""
        reached = self._reached()
        for node, place in places.items():
            self._told[node] = place, reached.get(node)

    def places(self) -> dict[int, Place]:
        """Where nodes are reached, as far as anybody knows."""
        reached = self._reached()
        self._last |= reached  # who votes no more may lead until that is agreed
        told = {one: at for one, (at, was) in self._told.items() if reached.get(one, was) == was}
        return self._last | told

    def to(self, target: int) -> Ways | None:
        """The links to this node, None when nobody says where it is."""
        place = self._seeds.get(target) or self.places().get(target)
        if self.connect is None or place is None or target == self._me:
            return None
        made = self._made.get(target)
        if made is not None and made.place == place:
            return made
        talk = self.connect(target, place, f"voter-{self._me}")
        fetch = self.connect(target, place, f"voter-{self._me}-fetch")
        ways = self._made[target] = Ways(place, talk, fetch)
        if made is not None:
            made.talk.close()
            made.fetch.close()
        return ways

    def run_once(self) -> int:
        """Send and receive: in how many ms to come again."""
        made = [*self._made.values()]
        return min((min(one.talk.run_once(), one.fetch.run_once()) for one in made), default=NEVER)
