"""Which nodes get the replicas of partitions that exist when there are to be more or fewer of them,
or a node goes: racks first, then who has least. Decisions only; what can stay stays where it is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from console.model.asking.failure import Failure
from console.model.cluster.nodes import Node
from console.model.topics.partitions import Partition

Place = tuple[str, int]
Wanted = dict[Place, tuple[int, ...]]
"""Partition → its replicas, who is to lead first."""


def load_of(every: Iterable[Partition]) -> Counter[int]:
    """How many replicas each node has."""
    return Counter(node for one in every for node in one.replicas)


def resized(
    chosen: Iterable[Partition], factor: int, brokers: Mapping[int, Node], load: Mapping[int, int]
) -> Wanted:
    """`factor` replicas for each of these partitions; those that have as many are not in it. load:
    replicas of each node now. Raises Failure when there are too few nodes."""
    now, wanted = Counter(load), {}
    for one in chosen:
        if len(one.replicas) < factor:
            wanted[one.place] = _grown(one, one.replicas, factor, brokers, now)
        elif len(one.replicas) > factor:
            wanted[one.place] = _shrunk(one, factor, brokers, now)
    return wanted


def spread(wanted: Wanted, every: Iterable[Partition]) -> Wanted:
    """The same replicas, each partition led by whoever of them is to lead fewest. every: all
    partitions as they are."""
    leads = Counter(one.replicas[0] for one in every if one.place not in wanted)
    found = {}
    for place, replicas in wanted.items():
        first = min(replicas, key=leads.__getitem__)
        leads[first] += 1
        found[place] = (first, *(one for one in replicas if one != first))
    return found


def without(
    chosen: Iterable[Partition], node: int, brokers: Mapping[int, Node], load: Mapping[int, int],
    *, fewer: bool,
) -> Wanted:  # fmt: skip
    """The replicas of this node go to others. fewer: where nobody is left to take one, there is one
    less. Raises Failure where there would be none, or one less and that is not allowed."""
    now, wanted = Counter(load), {}
    others = {number: one for number, one in brokers.items() if number != node}
    for one in chosen:
        if node not in one.replicas:
            continue
        staying = tuple(each for each in one.replicas if each != node)
        most = len({*staying} | {each for each in others if others[each].lives})
        factor = min(len(one.replicas), most) if fewer else len(one.replicas)
        grown = _grown(one, staying, factor, others, now)
        if not grown:
            raise _too_few(one, 1, others)
        if one.replicas[0] == node and len(grown) == len(one.replicas):
            grown = (grown[-1], *grown[:-1])  # as many partitions are led by each as were
        wanted[one.place] = grown
    return wanted


def _grown(
    partition: Partition,
    replicas: tuple[int, ...],
    factor: int,
    brokers: Mapping[int, Node],
    load: Counter[int],
) -> tuple[int, ...]:
    found = list(replicas)
    while len(found) < factor:
        free = [one for one in brokers.values() if one.lives and one.id not in found]
        if not free:
            raise _too_few(partition, factor, brokers)
        racks = Counter(brokers[each].rack for each in found if each in brokers)
        chosen = min(free, key=lambda one: (racks[one.rack], load[one.id], one.id))
        found.append(chosen.id)
        load[chosen.id] += 1
    return tuple(found)


def _shrunk(
    partition: Partition, factor: int, brokers: Mapping[int, Node], load: Counter[int]
) -> tuple[int, ...]:
    """Removes replicas down to the factor: dead ones first, then those out of sync, those that
    share a rack, those on the fullest nodes. Keeps the preferred leader when it lives.
    """
    found = list(partition.replicas)

    def weight(node: int) -> tuple[bool, bool, bool, int, int, int]:
        known = brokers.get(node)
        shares = (
            sum(brokers[each].rack == known.rack for each in found if each in brokers)
            if (known is not None)
            else 0
        )
        return (
            known is None or not known.lives,
            node not in partition.isr,
            node != partition.replicas[0],
            shares,
            load[node],
            found.index(node),
        )

    while len(found) > factor:
        gone = max(found, key=weight)
        found.remove(gone)
        load[gone] -= 1
    return tuple(found)


def _too_few(partition: Partition, factor: int, brokers: Mapping[int, Node]) -> Failure:
    alive = [str(one.id) for one in brokers.values() if one.lives]
    if len(alive) > 1:
        nodes = f"only nodes {', '.join(alive)} can hold one"
    else:
        nodes = f"only node {alive[0]} can hold one" if alive else "no node can hold one"
    return Failure(
        f"topic {partition.topic}, partition {partition.partition}: {factor} replicas wanted,"
        f" {nodes}",
        "penstock cluster status shows the nodes",
        name="INVALID_REPLICATION_FACTOR",
        kafka_code=38,
    )
