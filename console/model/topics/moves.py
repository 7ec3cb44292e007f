"""Replicas on their way: asking for it, how far they are, and taking it back
(AlterPartitionReassignments v0, ListPartitionReassignments v0, KIP-455).

Bytes are what the leader and the new replicas have on their disks, as each tells itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.cluster.nodes import Node
from console.model.topics import partitions
from console.model.topics.placing import Place
from console.model.topics.replicas import Held, read_replicas

_ALTER: Final = (45, 0)
_LIST: Final = (46, 0)
_LOOKS: Final = 20
"""So often a partition may be seen that neither moves nor is where it should be: brokers of Apache
Kafka learn a moment later what their controller has done."""


@dataclass(slots=True, frozen=True)
class Move:
    """A partition on its way. replicas: all of them now, those that come and those that go too.
    copied, bytes: of the new replicas and of what they are to have; None where nobody tells."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    copied: int | None
    bytes: int | None

    @property
    def place(self) -> Place:
        return self.topic, self.partition


@dataclass(slots=True, frozen=True)
class Progress:
    """The progress of several reassignments. done: the number complete. copied, bytes: of all whose
    sizes are known. waits_for: nodes that are to get a replica and do not run.
    """

    partitions: int
    done: int
    copied: int
    bytes: int
    waits_for: tuple[int, ...]

    @property
    def finished(self) -> bool:
        return self.done == self.partitions


def under_way(
    link: Link, nodes: Mapping[int, Node], names: Iterable[str] | None = None
) -> list[Move]:
    """The current reassignments of these topics or all. nodes: by id. Raises Failure."""
    chosen = None if names is None else frozenset(names)
    values = {"timeout": round(link.timeout_s * 1000), "topics": None}
    told = ask_server(link, *_LIST, values)
    check(int(told.error_code), told.error_message, "reassignments in progress")
    rows = {
        (str(topic.name), int(one.partition_index)): one
        for topic in told.topics
        if chosen is None or str(topic.name) in chosen
        for one in topic.partitions
    }
    if not rows:
        return []
    leaders = {
        one.place: one.leader for one in partitions.partitions(link, {name for name, _ in rows})
    }
    has = _has(link, nodes, rows, leaders)
    return [_move(place, rows[place], leaders.get(place, -1), has) for place in sorted(rows)]


def _has(
    link: Link, nodes: Mapping[int, Node], rows: Mapping[Place, Any], leaders: Mapping[Place, int]
) -> dict[int, dict[Place, Held]]:
    """Node → what it has, of those that are asked for it."""
    wanted: dict[int, set[Place]] = defaultdict(set)
    for place, row in rows.items():
        for node in (leaders.get(place, -1), *map(int, row.adding_replicas)):
            wanted[node].add(place)
    return {
        node: read_replicas(link, nodes[node].address, places)
        for node, places in wanted.items()
        if node in nodes and nodes[node].lives
    }


def _move(place: Place, row: Any, leader: int, has: Mapping[int, Mapping[Place, Held]]) -> Move:
    nothing = Held(None, None)
    adding = tuple(map(int, row.adding_replicas))
    size = has.get(leader, {}).get(place, nothing).bytes
    copied = None
    if size is not None:
        copied = sum(min(size, has.get(node, {}).get(place, nothing).bytes or 0) for node in adding)
    return Move(
        *place, tuple(map(int, row.replicas)), adding, tuple(map(int, row.removing_replicas)),
        copied, None if size is None else size * len(adding),
    )  # fmt: skip


def alter_reassignments(link: Link, wanted: Mapping[Place, tuple[int, ...] | None]) -> None:
    """Let partitions have these replicas; None: take back what is under way. Raises Failure for the
    first that is refused; the others have begun."""
    topics: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (topic, number), replicas in sorted(wanted.items()):
        topics[topic].append({"partition_index": number, "replicas": replicas})
    values = {
        "timeout": round(link.timeout_s * 1000),
        "topics": [{"name": name, "partitions": tuple(rows)} for name, rows in topics.items()],
    }
    told = ask_server(link, *_ALTER, values)
    check(int(told.error_code), told.error_message, "the replicas")
    for topic in told.responses:
        for one in topic.partitions:
            about = f"{topic.name} {one.partition_index}"
            check(int(one.error_code), one.error_message, about)


class Watch:
    """Looks again and again at partitions until each has the replicas that it is to have."""

    def __init__(self, link: Link, wanted: Mapping[Place, tuple[int, ...]]) -> None:
        self._link = link
        self._wanted = wanted
        self._bytes: dict[Place, int] = {}
        self._odd = 0

    def read_progress(self, nodes: Mapping[int, Node]) -> Progress:
        """nodes: by id, as they are now. Raises Failure, also when somebody else gave one of the
        partitions other replicas meanwhile."""
        names = {name for name, _ in self._wanted}
        if not names:
            return Progress(0, 0, 0, 0, ())
        moving = {one.place: one for one in under_way(self._link, nodes, names)}
        now = {one.place: one.replicas for one in partitions.partitions(self._link, names)}
        done, copied, odd = 0, 0, []
        for place, replicas in self._wanted.items():
            move = moving.get(place)
            if move is not None:
                self._bytes[place] = move.bytes or 0
                copied += move.copied or 0
            elif place not in now or set(now[place]) == set(replicas):
                done += 1  # where it is to be, or deleted
                copied += self._bytes.get(place, 0)
            else:
                odd.append(place)
        self._odd = self._odd + 1 if odd else 0
        if self._odd > _LOOKS:
            raise Failure(
                f"{odd[0][0]} {odd[0][1]} has other replicas now, and no reassignment is in "
                "progress",
                "it was cancelled, or replaced by another one", name="REASSIGNMENT_GONE",
            )  # fmt: skip
        wanted_nodes = {node for one in moving.values() for node in one.adding}
        silent = [one for one in wanted_nodes if one not in nodes or not nodes[one].lives]
        return Progress(
            len(self._wanted), done, copied, sum(self._bytes.values()), tuple(sorted(silent))
        )


def watch_moves(link: Link, nodes: Mapping[int, Node], names: Iterable[str] | None) -> Watch:
    """Watches the current reassignments of these topics or all. Raises Failure."""
    wanted = {
        one.place: tuple(each for each in one.replicas if each not in one.removing)
        for one in under_way(link, nodes, names)
    }
    return Watch(link, wanted)
