"""Size and traffic of every partition of an appliance of this host, out of its partition table, and
the levels by which many of them are seen at once.

With 100,000 partitions whole columns are read, and who has which row only when rows changed hands.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Final

from appliance.base.os_disk import OsDisk
from appliance.metadata.follower import Follower, skip_silently
from appliance.observer.door import Observer
from appliance.ring import partition_table as columns
from console.model.asking.failure import UNREACHABLE, Failure
from console.model.groups.groups import Place
from console.model.local.observed import observed

SIZE: Final = "size"
RATE: Final = "rate"
LAG: Final = "lag"
MEASURES: Final = (SIZE, RATE, LAG)
LEVELS: Final = 4
"""Above 0, which is a level of its own."""
_SHORTEST_S: Final = 0.05


@dataclass(slots=True, frozen=True)
class HeatSeen:
    """(topic, partition) → bytes on disk, and bytes written and read per second since the look
    before; 0.0 at the first. Both have the same partitions, in the order of topics and numbers."""

    sizes: Mapping[Place, int] = field(default_factory=dict)
    rates: Mapping[Place, float] = field(default_factory=dict)


class HeatWatch:
    """Looks at the partitions of one appliance again and again. One thread at a time."""

    def __init__(self) -> None:
        self._data_dir = ""
        self._observer: Observer | None = None
        self._follower: Follower | None = None
        self._holders: list[int] = []
        self._version = -1
        self._rows: list[tuple[Place, int]] = []  # in order
        self._before: dict[Place, int] = {}
        self._at_s = 0.0

    def read_partitions(self, data_dir: str) -> HeatSeen:
        """The partitions as they are now. Raises Failure: it has ended, or cannot be read."""
        if self._observer is None or data_dir != self._data_dir or not self._observer.alive:
            self._open(data_dir)
        observer, now_s = self._observer, time.monotonic()
        assert observer is not None
        if not observer.alive:
            raise Failure("the appliance has ended", code=UNREACHABLE, name="NOT_RUNNING")
        self._find_rows()
        table = observer.tables.partitions
        sizes, moved = table.column(columns.SIZE_BYTES), table.column(columns.BYTES_IN)
        end = len(moved) * columns.SERVED_COLUMNS
        for part in table.served:
            served = part[columns.BYTES_OUT : end : columns.SERVED_COLUMNS].tolist()
            moved = [one + more for one, more in zip(moved, served, strict=True)]
        seconds = max(now_s - self._at_s, _SHORTEST_S)
        before, self._at_s = self._before, now_s
        self._before = {place: moved[row] for place, row in self._rows}
        return HeatSeen(
            {place: max(0, sizes[row]) for place, row in self._rows},
            {
                place: max(0, total - before.get(place, total)) / seconds
                for place, total in self._before.items()
            },
        )

    def _open(self, data_dir: str) -> None:
        self._observer = observed(data_dir)
        partitions = self._observer.tables.partitions
        self._follower = Follower(OsDisk(), data_dir, partitions, skip_silently)
        self._data_dir, self._holders, self._before, self._version = data_dir, [], {}, -1

    def _find_rows(self) -> None:
        """Finds out anew which partition has which row, when that may have changed."""
        observer, follower = self._observer, self._follower
        assert observer is not None and follower is not None
        committed = observer.tables.processes.metadata_offset
        holders = observer.tables.partitions.holders()
        if committed == self._version and holders == self._holders:
            return
        for _ in follower.catch_up(committed):
            pass
        self._version, self._holders = committed, holders
        named = follower.image.topics_by_id
        rows = []
        for one in observer.tables.partitions.live_rows(0, len(holders)):
            topic = named.get(one.topic_id)
            if topic is not None:
                rows.append(((topic.name, one.partition), one.handle & columns.ROW_MASK))
        self._rows = sorted(rows)


def level_of(value: float, top: float) -> int:
    """0 for nothing, else 1 to LEVELS, by the square root of its share of the top value: what is a
    sixteenth of it is told from nothing and from the top."""
    if value <= 0 or top <= 0:
        return 0
    return min(LEVELS, max(1, ceil(LEVELS * sqrt(value / top))))


def limit_of(level: int, top: float) -> float:
    """The greatest value of a level."""
    return top * (level / LEVELS) ** 2


@dataclass(slots=True, frozen=True)
class Strip:
    """Some partitions of one topic that stand in one line: from `first` on, `count` of them, which
    have the numbers from `begin` on among all."""

    topic: str
    first: int
    begin: int
    count: int


def lay_out(places: Sequence[Place], width: int) -> list[Strip]:
    """Lines of at most `width` partitions, each of one topic. places: in their order."""
    assert width > 0
    found: list[Strip] = []
    begin = 0
    for number in range(1, len(places) + 1):
        is_last = number == len(places) or places[number][0] != places[begin][0]
        if is_last or number - begin == width:
            topic, first = places[begin]
            found.append(Strip(topic, first, begin, number - begin))
            begin = number
    return found
