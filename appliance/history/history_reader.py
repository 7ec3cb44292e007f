"""The history of an appliance as values, read from its file: whether the appliance runs or not, and
without asking it.

Samples are read one kind and step at a time, and only when they are wanted. What is torn, or about
a name that has lost its number since, is left out. `console/model/local/history.py` is made of
this.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, File
from appliance.base.errors import StorageFailed
from appliance.history import format as layout
from appliance.history.format import (
    APIS,
    CLIENTS,
    DISKS,
    ENTRIES,
    LAGS,
    PROCESSES,
    RINGS,
    TABLES,
    TOPICS,
    WHOLE,
    Name,
    SampleHead,
    UnknownHistory,
    spread,
)
from appliance.history.samples import (
    ApiSample,
    ClientIdentity,
    ClientSample,
    ProcessSample,
    TopicSample,
    Whole,
)
from appliance.history.samples import FolderSample as DiskUse

T = TypeVar("T")
K = TypeVar("K")


@dataclass(slots=True, frozen=True)
class Moment(Generic[T]):
    """at_ms: wall clock, the end of what `value` is about; span_ms: how long that was."""

    at_ms: int
    span_ms: int
    value: T

    def per_second(self, amount: float) -> float:
        """An amount of this span as a rate."""
        return amount * 1000 / max(self.span_ms, 1)


@dataclass(slots=True, frozen=True)
class Many(Generic[K, T]):
    """Moments of several things, each the oldest first; a moment in which a thing did nothing is
    not there. left_out: the most entries that a sample had no room for."""

    of: dict[K, tuple[Moment[T], ...]]
    left_out: int = 0


class HistoryReader:
    """One look at the file in a log folder; it stays open until `close`."""

    def __init__(self, disk: Disk, folder: str) -> None:
        """Raises UnknownHistory, StorageFailed."""
        path = f"{folder}/{layout.FILE}"
        if not disk.exists(path):
            raise UnknownHistory("there is none yet")
        self._file: File = disk.open_file(path)
        try:
            layout.check_head(self._file.pread(layout.HEAD_BYTES, 0))
        except (UnknownHistory, StorageFailed):
            self._file.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def whole(self, step: int, newest: int = 0) -> tuple[Moment[Whole], ...]:
        """All of the appliance, the oldest first. newest: no more than so many, 0: all there are.
        Its moments are those at which there was an appliance."""
        return tuple(
            Moment(one.at_ms, one.span_ms, Whole._make(values))
            for one in self._samples(WHOLE, step, newest)
            for values in ENTRIES[WHOLE].iter_unpack(one.entries)
        )

    def apis(self, step: int, newest: int = 0) -> Many[int, ApiSample]:
        """By API key."""
        return self._many(APIS, step, newest, lambda values: (values[0], ApiSample._make(values)))

    def processes(self, step: int, newest: int = 0) -> Many[tuple[int, int], ProcessSample]:
        """By (kind, index) of the process table."""
        return self._many(
            PROCESSES, step, newest, lambda told: ((told[0], told[1]), ProcessSample._make(told))
        )

    def disks(self, step: int, newest: int = 0) -> Many[int, DiskUse]:
        """By the number of the log folder."""
        return self._many(DISKS, step, newest, lambda values: (values[0], DiskUse._make(values)))

    def topics(self, step: int, newest: int = 0) -> Many[str, TopicSample]:
        """By name."""
        return self._named(
            TOPICS, step, newest, lambda name: name[0], lambda told: TopicSample(*map(spread, told))
        )

    def clients(self, step: int, newest: int = 0) -> Many[ClientIdentity, ClientSample]:
        """By who they are."""
        return self._named(
            CLIENTS, step, newest, lambda name: ClientIdentity(*name),
            lambda told: ClientSample._make((*map(spread, told[:3]), told[3])),
        )  # fmt: skip

    def lags(self, step: int, newest: int = 0) -> Many[tuple[str, str], int]:
        """By (group, topic): how many records the committed offsets are behind, all partitions
        together. A group that is behind nothing is there with 0."""
        return self._named(
            LAGS, step, newest, lambda name: (name[0], name[1]), lambda told: round(told[0])
        )

    def _samples(self, kind: str, step: int, newest: int) -> list[SampleHead]:
        ring = RINGS.get((kind, step))
        assert ring is not None, f"there are no {kind} of {step} s"
        data = self._file.pread(ring.slots * ring.slot_bytes, ring.at)
        return layout.samples(ring, data, newest)

    def _many(
        self,
        kind: str,
        step: int,
        newest: int,
        made: Callable[[tuple[int, ...]], tuple[K, T]],
    ) -> Many[K, T]:
        found: defaultdict[K, list[Moment[T]]] = defaultdict(list)
        left_out = 0
        for one in self._samples(kind, step, newest):
            left_out = max(left_out, one.left_out)
            for values in ENTRIES[kind].iter_unpack(one.entries):
                key, value = made(values)
                found[key].append(Moment(one.at_ms, one.span_ms, value))
        return Many({key: tuple(moments) for key, moments in found.items()}, left_out)

    def _named(
        self,
        kind: str,
        step: int,
        newest: int,
        key: Callable[[tuple[str, ...]], K],
        made: Callable[[tuple[int, ...]], T],
    ) -> Many[K, T]:
        samples = self._samples(kind, step, newest)
        names = self._names(kind)  # behind the samples: what is new in them has its name by now
        found: defaultdict[int, list[Moment[T]]] = defaultdict(list)
        for one, values in _entries(kind, samples):
            name = names.get(values[0])
            if name is not None and name.since_ms <= one.at_ms:
                found[values[0]].append(Moment(one.at_ms, one.span_ms, made(values[1:])))
        return Many(
            {key(names[number].texts): tuple(moments) for number, moments in found.items()},
            max((one.left_out for one in samples), default=0),
        )

    def _names(self, kind: str) -> dict[int, Name]:
        table = TABLES[kind]
        return layout.unpack_names(
            table, self._file.pread(table.names * table.name_bytes, table.at)
        )


def _entries(kind: str, samples: list[SampleHead]) -> Iterator[tuple[SampleHead, tuple[int, ...]]]:
    for one in samples:
        for values in ENTRIES[kind].iter_unpack(one.entries):
            yield one, values
