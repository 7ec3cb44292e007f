"""The replicas of one topic's partitions: on which nodes, in sync or not, and how far each is."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from console.model.asking.link import Link
from console.model.cluster.nodes import Node
from console.model.topics.partitions import Partition, partitions
from console.model.topics.replicas import Held, read_replicas


@dataclass(slots=True, frozen=True)
class Copy:
    """One replica. lives: its node does, as far as the cluster knows. end: of its log; behind:
    records that its leader has and it has not; bytes: on its disk; None where nobody tells."""

    node: int
    leads: bool
    in_sync: bool
    eligible: bool
    offline: bool
    lives: bool
    end: int | None
    behind: int | None
    bytes: int | None


@dataclass(slots=True, frozen=True)
class Placed:
    """A partition with its replicas, the one that is to lead first."""

    partition: Partition
    copies: tuple[Copy, ...]


def placed(link: Link, name: str, nodes: Mapping[int, Node]) -> dict[int, Placed]:
    """By the number of the partition. nodes: all that there are. Raises Failure."""
    found = partitions(link, [name])
    wanted = defaultdict(list)
    for one in found:
        for node in one.replicas:
            wanted[node].append(one.place)
    has = {
        node: read_replicas(link, nodes[node].address, places)
        for node, places in wanted.items()
        if node in nodes and nodes[node].address and nodes[node].lives
    }
    return {one.partition: Placed(one, _copies(one, nodes, has)) for one in found}


def _copies(
    one: Partition, nodes: Mapping[int, Node], has: Mapping[int, Mapping[tuple[str, int], Held]]
) -> tuple[Copy, ...]:
    nothing = Held(None, None)
    leads = has.get(one.leader, {}).get(one.place, nothing)
    copies = []
    for node in one.replicas:
        own = has.get(node, {}).get(one.place, nothing)
        known = leads.end is not None and own.end is not None
        copies.append(
            Copy(
                node, node == one.leader, node in one.isr, node in one.elr, node in one.offline,
                node in nodes and nodes[node].lives, own.end,
                max(0, (leads.end or 0) - (own.end or 0)) if known else None, own.bytes,
            )
        )  # fmt: skip
    return tuple(copies)
