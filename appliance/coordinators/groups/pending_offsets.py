"""Offsets that were committed in transactions which have not ended: the marker says what becomes of
them (KIP-447, KIP-98).

Invariant: of the commits of one partition that count, the one that was written last counts, so a
commit whose transaction ends after a newer one counted changes nothing; until then it is unstable
all the same, as with Kafka. Only `replay` changes this.
"""

from collections.abc import Iterator
from typing import TypeAlias

from appliance.coordinators.groups.records import OffsetCommitValue

Place = tuple[str, str, int]
"""Group, topic, partition."""
_Held: TypeAlias = "tuple[int, OffsetCommitValue | None]"  # when it was written; None: outdated


class PendingOffsets:
    """by_group: group → (topic, partition) → producer id → its commit. Nothing empty is kept."""

    def __init__(self) -> None:
        self.by_group: dict[str, dict[tuple[str, int], dict[int, _Held]]] = {}
        self._places: dict[int, dict[Place, None]] = {}
        self._written = 0

    def put_offset(self, producer_id: int, place: Place, value: OffsetCommitValue) -> None:
        """The newest commit of a place in this producer's transaction."""
        self._written += 1
        group, topic, partition = place
        held = self.by_group.setdefault(group, {}).setdefault((topic, partition), {})
        held[producer_id] = self._written, value
        self._places.setdefault(producer_id, {})[place] = None

    def outdate(self, place: Place, before: int | None = None) -> None:
        """A commit counts that is newer than all of this place, or than those before `before`."""
        group, topic, partition = place
        held = self.by_group.get(group, {}).get((topic, partition), {})
        for producer_id, (written, _) in held.items():
            if before is None or written < before:
                held[producer_id] = written, None

    def remove(self, place: Place) -> None:
        """Forget what any transaction committed there."""
        group, topic, partition = place
        for producer_id in list(self.by_group.get(group, {}).get((topic, partition), {})):
            self._take(producer_id, place)
            places = self._places[producer_id]
            del places[place]
            if not places:
                del self._places[producer_id]

    def end_transaction(
        self, producer_id: int, *, committed: bool
    ) -> list[tuple[Place, OffsetCommitValue]]:
        """A producer's transaction has ended; its commits that count now."""
        found = []
        for place in self._places.pop(producer_id, {}):
            written, value = self._take(producer_id, place)
            if committed and value is not None:
                found.append((place, value))
                self.outdate(place, written)
        return found

    def holds(self, group: str, topic: str, partition: int) -> bool:
        """True if an open transaction has a pending commit for the partition."""
        return (topic, partition) in self.by_group.get(group, ())

    def of_topic(self, name: str) -> Iterator[tuple[Place, OffsetCommitValue | None]]:
        """Pending commits of a topic's partitions. Yields from a copy, so that the caller may
        change them.
        """
        yield from [
            ((group, topic, partition), value)
            for group, places in self.by_group.items()
            for (topic, partition), held in places.items()
            if topic == name
            for _, value in held.values()
        ]

    def clear(self) -> None:
        """Forget all."""
        self.by_group.clear()
        self._places.clear()

    def _take(self, producer_id: int, place: Place) -> _Held:
        group, topic, partition = place
        places = self.by_group[group]
        held = places[topic, partition]
        taken = held.pop(producer_id)
        if not held:
            del places[topic, partition]
        if not places:
            del self.by_group[group]
        return taken
