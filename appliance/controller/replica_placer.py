"""Replicas in stripes over racks and brokers, as Apache Kafka places them.

Leaders go round the racks, and within a rack round its brokers; the other replicas of a partition
go on from there, one rack after the other, so that as few as possible share a rack. Fenced brokers
get replicas only where their rack has no others left, and never lead. When every broker has led
once the order is mixed anew.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from appliance.base.dataclass import dataclass

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class UsableBroker:
    """A broker that may get replicas. rack "": it has none, which is a rack too."""

    broker_id: int
    rack: str
    fenced: bool


class _Round:
    """Brokers, of which every partition begins with another one."""

    __slots__ = ("_brokers", "_given", "_partition", "_start")

    def __init__(self, brokers: list[int], chance: Callable[[int], int]) -> None:
        self._brokers = sorted(brokers)
        self._given = 0
        self._partition = 0
        self._start = chance(len(brokers)) if brokers else 0

    def next(self, partition: int) -> int:
        """One that this partition has not had, -1: there is none."""
        if self._partition != partition:
            self._partition = partition
            self._given = 0
            self._start += 1
        if self._given == len(self._brokers):
            return -1
        self._given += 1
        return self._brokers[(self._start + self._given - 1) % len(self._brokers)]

    def mix(self, chance: Callable[[int], int]) -> None:
        _shuffle(self._brokers, chance)


class Stripes:
    """chance: a number from 0 on below the one that is given. At least one place is not fenced."""

    __slots__ = ("_chance", "_fenced", "_leaders", "_partition", "_rack", "_racks", "_unfenced")

    def __init__(self, places: Iterable[UsableBroker], chance: Callable[[int], int]) -> None:
        by_rack: dict[str, tuple[list[int], list[int]]] = {}
        for place in places:
            by_rack.setdefault(place.rack, ([], []))[place.fenced].append(place.broker_id)
        self._racks = sorted(by_rack)
        self._unfenced = {name: _Round(by_rack[name][0], chance) for name in self._racks}
        self._fenced = {name: _Round(by_rack[name][1], chance) for name in self._racks}
        self._leaders = sum(len(unfenced) for unfenced, _ in by_rack.values())
        self._chance = chance
        self._partition = 0
        self._rack = chance(len(self._racks))
        assert self._leaders, "somebody can lead"

    def replicas(self, factor: int) -> tuple[int, ...]:
        """Those of the next partition, the leader first; there are at least as many places."""
        if self._partition == self._leaders > 1:
            self._mix()
        first = self._rack % len(self._racks)
        leads = first
        while (leader := self._unfenced[self._racks[leads]].next(self._partition)) < 0:
            leads = (leads + 1) % len(self._racks)
        replicas = [leader]
        rack = first
        while len(replicas) < factor:
            if rack == leads:
                leads = -1  # it has its first replica; the next time round it is one of them
            elif (follower := self._next(self._racks[rack])) >= 0:
                replicas.append(follower)
            rack = (rack + 1) % len(self._racks)
        self._partition += 1
        self._rack = first + 1
        return tuple(replicas)

    def _next(self, rack: str) -> int:
        found = self._unfenced[rack].next(self._partition)
        return found if found >= 0 else self._fenced[rack].next(self._partition)

    def _mix(self) -> None:
        self._partition = 0
        _shuffle(self._racks, self._chance)
        for name in self._racks:
            self._unfenced[name].mix(self._chance)
            self._fenced[name].mix(self._chance)


def _shuffle(items: list[T], chance: Callable[[int], int]) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = chance(last + 1)
        items[last], items[other] = items[other], items[last]
