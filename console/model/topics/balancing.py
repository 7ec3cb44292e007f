"""Moves of replicas and leaders that give each node as many of them. Decisions only.

Replicas: from who has most to who has least, one at a time, and never into fewer racks than before.
Leaders: by the order of the replicas alone, along chains of partitions, so that no exchange of
order could be better. What has a replica on a node that does not run stays as it is.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from console.model.cluster.nodes import Node
from console.model.topics.partitions import Partition
from console.model.topics.placing import Place, Wanted


@dataclass(slots=True, frozen=True)
class Balance:
    """Replicas of each node, and partitions that it is to lead."""

    replicas: dict[int, int]
    leaders: dict[int, int]


def balance_of(every: Iterable[tuple[int, ...]], nodes: Iterable[int]) -> Balance:
    """every: the replicas of each partition."""
    replicas, leaders = Counter[int](), Counter[int]()
    for one in every:
        replicas.update(one)
        leaders.update(one[:1])
    return Balance(
        *({node: found[node] for node in sorted(nodes)} for found in (replicas, leaders))
    )


def balanced(
    every: Sequence[Partition], brokers: Mapping[int, Node], *, only_leaders: bool,
    full: frozenset[int] = frozenset(),
) -> Wanted:  # fmt: skip
    """The partitions that get other replicas, or the same in another order. full: nodes that take
    no more replicas."""
    live = {number: one for number, one in brokers.items() if one.lives}
    movable = {one.place: one.replicas for one in every if live.keys() >= {*one.replicas}}
    load = balance_of((one.replicas for one in every), live)
    placed = dict(movable)
    if not only_leaders:
        racks = {number: one.rack for number, one in live.items()}
        _even_replicas(placed, dict(load.replicas), racks, full)
    fixed = Counter(one.replicas[0] for one in every if one.place not in movable)
    leads = {node: fixed[node] for node in live}
    for replicas in placed.values():
        leads[replicas[0]] += 1
    _even_leaders(placed, leads)
    return {place: to for place, to in placed.items() if to != movable[place]}


def _even_replicas(
    placed: dict[Place, tuple[int, ...]],
    load: dict[int, int],
    racks: Mapping[int, str | None],
    full: frozenset[int],
) -> None:
    """Move replicas until no move evens the load of the nodes any more."""
    on: dict[int, dict[Place, None]] = {node: {} for node in load}
    for place, replicas in sorted(placed.items()):
        for node in replicas:
            on[node][place] = None
    while (found := _next_move(placed, on, load, racks, full)) is not None:
        place, source, target = found
        placed[place] = tuple(target if one == source else one for one in placed[place])
        del on[source][place]
        on[target][place] = None
        load[source] -= 1
        load[target] += 1


def _next_move(
    placed: Mapping[Place, tuple[int, ...]],
    on: Mapping[int, Iterable[Place]],
    load: Mapping[int, int],
    racks: Mapping[int, str | None],
    full: frozenset[int],
) -> tuple[Place, int, int] | None:
    """A partition, and from which node to which one its replica goes."""
    for source in sorted(load, key=lambda node: (-load[node], node)):
        for target in sorted(load.keys() - full, key=lambda node: (load[node], node)):
            if load[source] - load[target] < 2:
                break
            place = _movable(placed, on[source], source, target, racks)
            if place is not None:
                return place, source, target
    return None


def _movable(
    placed: Mapping[Place, tuple[int, ...]],
    candidates: Iterable[Place],
    source: int,
    target: int,
    racks: Mapping[int, str | None],
) -> Place | None:
    """A partition whose replica may go from one node to the other; rather one that is not led."""
    found: Place | None = None
    for place in candidates:
        replicas = placed[place]
        if target in replicas:
            continue
        after = {racks[one] for one in replicas if one != source} | {racks[target]}
        if len(after) < len({racks[one] for one in replicas}):
            continue
        if replicas[0] != source:
            return place
        found = found or place
    return found


def _even_leaders(placed: dict[Place, tuple[int, ...]], leads: dict[int, int]) -> None:
    """Put other replicas first until no node is to lead two partitions more than another one that
    could take one, by chains over others too."""
    while (chain := _chain(placed, leads)) is not None:
        for place, node in chain:
            replicas = placed[place]
            leads[replicas[0]] -= 1
            leads[node] += 1
            placed[place] = (node, *(one for one in replicas if one != node))


def _chain(
    placed: Mapping[Place, tuple[int, ...]], leads: Mapping[int, int]
) -> list[tuple[Place, int]] | None:
    """Partitions and who is to lead each, so that one node leads one less and another one more."""
    led: dict[int, list[Place]] = {node: [] for node in leads}
    for place, replicas in sorted(placed.items()):
        led[replicas[0]].append(place)
    for source in sorted(leads, key=lambda node: (-leads[node], node)):
        came: dict[int, tuple[Place, int]] = {}
        waiting = deque([source])
        while waiting:
            node = waiting.popleft()
            for place in led[node]:
                for other in placed[place][1:]:
                    if other != source and other not in came:
                        came[other] = place, node
                        waiting.append(other)
        target = min(came, key=lambda node: (leads[node], node), default=source)
        if leads[source] - leads[target] < 2:
            continue
        chain = []
        while target != source:
            place, before = came[target]
            chain.append((place, target))
            target = before
        return chain
    return None
