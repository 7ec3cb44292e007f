"""A cluster looked at again and again: who of its nodes lives, which replicas are missing and how
fast they come, what is being moved, and how often a node fell out of sync meanwhile.

One look costs a page of partitions for each 500 of them. Of a broker alone nothing is asked but who
it is: it has no replicas that could be missing.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import name_of_code
from console.model.cluster import nodes
from console.model.cluster.nodes import Node, Nodes
from console.model.topics import moves, replicas
from console.model.topics.moves import Move
from console.model.topics.partitions import Partition, partitions
from console.model.topics.replicas import Health

_DESCRIBE_LOG_DIRS: Final = (35, 4)
_PAST_S: Final = 30.0
"""So far back a rate looks."""

Place = tuple[str, int]
Copy = tuple[str, int, int]
"""Topic, partition and node of a replica."""
K = TypeVar("K", Place, Copy)


@dataclass(slots=True, frozen=True)
class Count:
    """Replica counts of one node. left: how often one of its replicas left the ISR since the watch
    began.
    """

    leaders: int = 0
    replicas: int = 0
    left: int = 0


@dataclass(slots=True, frozen=True)
class Disks:
    """Disk use of one node. used: bytes of its partitions. free: of all its disks, None where
    unknown. offline: its failed folders, with the error.
    """

    used: int
    free: int | None
    offline: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class Pace:
    """How something that is left gets less: per second, None where that is not known yet; in how
    many seconds it is done, None where it never is."""

    per_s: float | None = None
    done_s: float | None = None


@dataclass(slots=True, frozen=True)
class ClusterSeen:
    """several: it has more than one node, or had. voters: of the metadata log, also while nobody
    leads it. Where several: health, counts of the partitions; paces of replicas that come, in
    records; moves: what is reassigned, with its paces in bytes."""

    nodes: Nodes
    several: bool
    voters: tuple[int, ...]
    health: Health | None = None
    counts: Mapping[int, Count] = field(default_factory=dict)
    paces: Mapping[Copy, Pace] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()
    move_paces: Mapping[Place, Pace] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[Node, ...]:
        """Nodes that are not there."""
        return tuple(one for one in self.nodes.all.values() if not one.lives)


class Paces(Generic[K]):
    """How fast what is left gets less, of many things: told again and again how much that is."""

    def __init__(self) -> None:
        self._past: dict[K, deque[tuple[float, int]]] = {}

    def update_paces(self, now_s: float, left: Mapping[K, int]) -> dict[K, Pace]:
        """left: of everything that is not done; what is not named any more is forgotten."""
        self._past = {key: self._past.get(key, deque()) for key in left}
        return {key: self._pace(key, now_s, much) for key, much in left.items()}

    def _pace(self, key: K, now_s: float, left: int) -> Pace:
        past = self._past[key]
        past.append((now_s, left))
        while len(past) > 2 and now_s - past[1][0] >= _PAST_S:
            past.popleft()
        began_s, much = past[0]
        if now_s <= began_s:
            return Pace()
        per_s = (much - left) / (now_s - began_s)
        return Pace(per_s, left / per_s if per_s > 0 else None)


class Watch:
    """Watches the cluster behind a Link. One thread at a time."""

    def __init__(self, link: Link, breathe: Callable[[], None] = lambda: None) -> None:
        """breathe: called now and then while much is read."""
        self._link = link
        self._breathe = breathe
        self._several = False
        self._voters: tuple[int, ...] = ()
        self._in_sync: dict[Place, tuple[int, ...]] = {}
        self._left: Counter[int] = Counter()
        self._paces: Paces[Copy] = Paces()
        self._move_paces: Paces[Place] = Paces()

    def read_cluster(self, now_s: float) -> ClusterSeen:
        """now_s: of a clock that never goes back. Raises Failure."""
        found = nodes.read_nodes(self._link)
        self._link.knows(one.address for one in found.brokers.values() if one.address)
        self._several = self._several or len(found.all) > 1
        self._voters = found.quorum.voters or self._voters
        seen = ClusterSeen(found, self._several, self._voters)
        if not self._several:
            return seen
        self._breathe()
        every = partitions(self._link)
        self._breathe()
        health = replicas.health(self._link, every, found.all)
        left = {
            (one.topic, one.partition, copy.node): copy.records
            for one in health.behind
            for copy in one.missing
            if copy.records
        }
        self._breathe()
        # The one who leads tells what moves: without one it would only be waited for.
        leads = found.quorum.leader is not None
        moving = moves.under_way(self._link, found.all) if leads else []
        to_copy = {
            one.place: one.bytes - one.copied
            for one in moving
            if one.bytes is not None and one.copied is not None
        }
        return replace(
            seen, health=health, counts=self._count(every),
            paces=self._paces.update_paces(now_s, left),
            moves=tuple(moving), move_paces=self._move_paces.update_paces(now_s, to_copy),
        )  # fmt: skip

    def _count(self, every: Iterable[Partition]) -> dict[int, Count]:
        leaders: Counter[int] = Counter()
        held: Counter[int] = Counter()
        now: dict[Place, tuple[int, ...]] = {}
        for one in every:
            leaders[one.leader] += 1
            held.update(one.replicas)
            now[one.place] = one.isr
            before = self._in_sync.get(one.place, one.isr)
            if before != one.isr:
                self._left.update(set(before) - set(one.isr))
        self._in_sync = now
        return {node: Count(leaders[node], held[node], self._left[node]) for node in held}


def disks(link: Link, found: Mapping[int, Node]) -> dict[int, Disks]:
    """Disk use of the live nodes that report it."""
    told = {}
    for number, node in found.items():
        if not node.address or not node.lives:
            continue
        try:
            answer = ask_server(link, *_DESCRIBE_LOG_DIRS, {"topics": None}, node.address)
        except Failure:
            continue
        well = [one for one in answer.results if not one.error_code]
        sizes = [int(one.usable_bytes) for one in well]
        told[number] = Disks(
            sum(
                int(part.partition_size)
                for one in well
                for t in one.topics
                for part in t.partitions
            ),
            sum(sizes) if sizes and min(sizes) >= 0 else None,
            tuple(
                f"{one.log_dir}: {name_of_code(int(one.error_code))}"
                for one in answer.results
                if one.error_code
            ),
        )
    return told
