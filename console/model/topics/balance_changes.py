"""A cluster whose nodes are to have as many replicas and leaders, as a plan."""

from dataclasses import dataclass
from typing import Final

from console.model.asking import configs
from console.model.asking.change import Change
from console.model.asking.configs import BROKER
from console.model.asking.link import Link
from console.model.cluster import nodes
from console.model.topics import moves, partitions
from console.model.topics.balancing import Balance, balance_of, balanced
from console.model.topics.partitions import Partition
from console.model.topics.placing import Place, Wanted
from console.model.topics.replica_changes import change

_CORDONED: Final = "cordoned.log.dirs"


@dataclass(slots=True, frozen=True)
class BalancePlan:
    """moves: the change of replicas, None where none is needed. wanted: its partitions and their
    replicas. replicas: of every partition now. to_elect: partitions that the first of their
    replicas, as it will be, does not lead. before, after: what the nodes have. left_alone: so many
    partitions have a replica on a node that does not run."""

    moves: Change | None
    wanted: Wanted
    replicas: dict[Place, tuple[int, ...]]
    to_elect: tuple[Place, ...]
    before: Balance
    after: Balance
    nodes: tuple[int, ...]
    left_alone: int


def balancing(link: Link, *, only_leaders: bool, words: tuple[str, ...]) -> BalancePlan:
    """Plans over all topics, internal ones too. words: the command. Raises Failure."""
    brokers = nodes.read_nodes(link).brokers
    every = partitions.partitions(link)
    live = tuple(sorted(number for number, one in brokers.items() if one.lives))
    wanted = balanced(every, brokers, only_leaders=only_leaders, full=_cordoned(link, live))
    chosen = {one.place: one for one in every}
    planned = None
    if wanted:
        planned = change(link, wanted, chosen=chosen, brokers=brokers, words=words)
    replicas = {one.place: one.replicas for one in every}
    return BalancePlan(
        planned,
        wanted,
        replicas,
        tuple(one.place for one in every if _is_to_be_elected(one, wanted, live)),
        balance_of(replicas.values(), live),
        balance_of((replicas | wanted).values(), live),
        live,
        sum(not {*live} >= {*one.replicas} for one in every),
    )


def _is_to_be_elected(one: Partition, wanted: Wanted, live: tuple[int, ...]) -> bool:
    first = wanted.get(one.place, one.replicas)[0]
    return one.leader != first and first in live


def _cordoned(link: Link, live: tuple[int, ...]) -> frozenset[int]:
    """The nodes that take no new replicas (KIP-1066)."""
    told = configs.values_of(link, BROKER, [str(one) for one in live], (_CORDONED,))
    return frozenset(int(name) for name, values in told.items() if values.get(_CORDONED))


def is_moving(link: Link) -> bool:
    """True while replicas of any topic are on their way. Raises Failure."""
    return bool(moves.under_way(link, {}))
