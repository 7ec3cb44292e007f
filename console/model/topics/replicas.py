"""The sync state of replicas, and why some are behind: their node is fenced, their folder failed,
or they are catching up, so many records and bytes behind.

How far a replica is, its own node tells: ListOffsets with replica id -2 (the log end, whoever
leads) and DescribeLogDirs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.configs import TOPIC
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.cluster.nodes import FENCED, Node
from console.model.storage import disk
from console.model.topics.partitions import Partition

_LIST_OFFSETS: Final = (2, 7)
_DESCRIBE_CONFIGS: Final = (32, 4)
_LOOKING: Final = -2
_LATEST: Final = -1
_MIN_ISR: Final = "min.insync.replicas"

Place = tuple[str, int]

UNREGISTERED: Final = "unregistered"
FOLDER: Final = "folder offline"
BEHIND: Final = "catching up"
LEVEL: Final = "level"
"""It has all records, and is taken into the ISR in a moment."""
NOT_KNOWN: Final = "not known"


@dataclass(slots=True, frozen=True)
class Missing:
    """A replica that is not in sync, and why: one of the words above, or FENCED. records, bytes:
    how far it is behind its leader, None where nobody tells."""

    node: int
    why: str
    records: int | None = None
    bytes: int | None = None


@dataclass(slots=True, frozen=True)
class Behind:
    """A partition that is not wholly in sync."""

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    missing: tuple[Missing, ...]


@dataclass(slots=True, frozen=True)
class Health:
    """Partitions: all; with a replica that is not in sync; with fewer in sync than producers
    with acks=all need; without a leader; led by another one than the first replica."""

    partitions: int
    under_replicated: int
    under_min_isr: int
    offline: int
    not_preferred: int
    behind: tuple[Behind, ...]

    @property
    def whole(self) -> bool:
        """True if no replica is missing, whichever leads."""
        return not (self.under_replicated or self.under_min_isr or self.offline)


@dataclass(slots=True, frozen=True)
class Held:
    """A node's replica of a partition: its log end, and bytes on its disks."""

    end: int | None
    bytes: int | None


def health(link: Link, found: Iterable[Partition], nodes: Mapping[int, Node]) -> Health:
    """found: the partitions to judge. nodes: all that there are, by id. Raises Failure."""
    every = list(found)
    sick = [one for one in every if one.missing]
    least = _min_isr(link, {one.topic for one in sick})
    under = [one for one in sick if len(one.isr) < min(least.get(one.topic, 1), len(one.replicas))]
    return Health(
        partitions=len(every),
        under_replicated=len(sick),
        under_min_isr=len(under),
        offline=sum(one.leader < 0 for one in every),
        not_preferred=sum(one.leader >= 0 and one.leader != one.replicas[0] for one in every),
        behind=tuple(behind(link, sick, nodes)),
    )


def behind(link: Link, sick: Iterable[Partition], nodes: Mapping[int, Node]) -> list[Behind]:
    """Why these are not whole. Asks the leaders and those that could catch up."""
    chosen = list(sick)
    wanted: dict[int, set[Place]] = defaultdict(set)
    for one in chosen:
        catching = [node for node in one.missing if _why(one, node, nodes) == NOT_KNOWN]
        for node in (*catching, one.leader) if catching else ():
            wanted[node].add(one.place)
    has = {
        node: read_replicas(link, nodes[node].address, places)
        for node, places in wanted.items()
        if node in nodes and nodes[node].lives
    }
    return [
        Behind(
            one.topic, one.partition, one.leader, one.replicas, one.isr,
            tuple(_missing(one, node, nodes, has) for node in one.missing),
        )
        for one in chosen
    ]  # fmt: skip


def read_replicas(link: Link, server: str, places: Iterable[Place]) -> dict[Place, Held]:
    """The replicas on the node at `server`; empty where it does not report them."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(places):
        topics[topic].append(number)
    ends = _ends(link, server, topics)
    sizes = disk.sizes(link, topics, server)
    return {place: Held(ends.get(place), sizes.get(place)) for place in ends.keys() | sizes.keys()}


def _ends(link: Link, server: str, topics: Mapping[str, list[int]]) -> dict[Place, int]:
    asked = [
        {"name": name, "partitions": [
            {"partition_index": number, "current_leader_epoch": -1, "timestamp": _LATEST}
            for number in numbers
        ]}
        for name, numbers in topics.items()
    ]  # fmt: skip
    values = {"replica_id": _LOOKING, "isolation_level": 0, "topics": asked}
    try:
        answer = ask_server(link, *_LIST_OFFSETS, values, server)
    except Failure:
        return {}
    return {
        (str(topic.name), int(one.partition_index)): int(one.offset)
        for topic in answer.topics
        for one in topic.partitions
        if not int(one.error_code)
    }


def _why(partition: Partition, node: int, nodes: Mapping[int, Node]) -> str:
    """By what the cluster says alone; NOT_KNOWN: ask them."""
    known = nodes.get(node)
    if known is None or not known.address:
        return UNREGISTERED
    if known.state == FENCED:
        return FENCED
    return FOLDER if node in partition.offline else NOT_KNOWN


def _missing(
    partition: Partition,
    node: int,
    nodes: Mapping[int, Node],
    has: Mapping[int, Mapping[Place, Held]],
) -> Missing:
    why = _why(partition, node, nodes)
    if why != NOT_KNOWN:
        return Missing(node, why)
    nothing = Held(None, None)
    leads = has.get(partition.leader, {}).get(partition.place, nothing)
    own = has.get(node, {}).get(partition.place, nothing)
    records = _less(leads.end, own.end)
    return Missing(
        node,
        NOT_KNOWN if records is None else BEHIND if records else LEVEL,
        records,
        _less(leads.bytes, own.bytes),
    )


def _less(leader: int | None, own: int | None) -> int | None:
    return max(0, leader - own) if leader is not None and own is not None else None


def _min_isr(link: Link, topics: Iterable[str]) -> dict[str, int]:
    """The min.insync.replicas of topics."""
    resources = [
        {"resource_type": TOPIC, "resource_name": name, "configuration_keys": (_MIN_ISR,)}
        for name in sorted(topics)
    ]
    if not resources:
        return {}
    asked: dict[str, Any] = {"resources": resources}
    asked |= {"include_synonyms": False, "include_documentation": False}
    return {
        str(result.resource_name): int(one.value)
        for result in ask_server(link, *_DESCRIBE_CONFIGS, asked).results
        for one in result.configs
    }
