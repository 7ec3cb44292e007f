"""Which rows of the partition table are told, of which partition and topic, in blocks.

A partition that is new, gone or changed makes one block anew: the others keep their names, labels
and lines. A block begins at a topic that its name chooses, so that a topic that comes or goes moves
no border but its own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from operator import sub
from typing import Final, NamedTuple
from zlib import crc32

from appliance.exporter.exposition import Columns
from appliance.metadata.parts import PartitionImage

TOPICS_OF_A_BLOCK: Final = 128
"""On average. More: a new topic writes more lines anew; fewer: more blocks to look at."""


class SeriesLimits(NamedTuple):
    """Bounds of the number of series: up to so many partitions, each has its own, beyond that only
    topics; up to so many topics, beyond that those with most bytes."""

    partitions: int
    topics: int


class PartitionRow(NamedTuple):
    """A row that is in use, and what the metadata says of its partition. least: so many must be in
    sync, as many as are asked for or as there are."""

    topic: str
    partition: int
    row: int
    image: PartitionImage
    least: int


class LeaderCounts(NamedTuple):
    """Counts over the partitions that this node leads: all, and those that meet a condition."""

    partitions: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    reassigning: int


def _led(found: Sequence[PartitionRow], node_id: int) -> LeaderCounts:
    led = [one for one in found if one.image.leader == node_id]
    spare = [len(one.image.isr) - one.least for one in led]
    return LeaderCounts(
        len(led),
        sum(len(one.image.isr) < len(one.image.replicas) for one in led),
        sum(one < 0 for one in spare),
        spare.count(0),
        sum(bool(one.image.adding_replicas or one.image.removing_replicas) for one in led),
    )


class TopicBlock:
    """Some topics that follow one another. rows: by topic and partition. bounds: where in `rows`
    each topic begins, and the end. led: 1 for each that this node leads. replicas: what the
    metadata says of each partition, or topic. written: its lines have been made once."""

    __slots__ = (
        "bounds", "found", "leaders", "led", "partitions", "replicas", "rows", "sizes", "topics",
        "written",
    )  # fmt: skip

    def __init__(self, found: Sequence[PartitionRow], node_id: int, *, whole: bool) -> None:
        """whole: each partition has series of its own."""
        self.found = found
        self.rows = [one.row for one in found]
        names = [one.topic for one in found]
        self.bounds = [n for n, name in enumerate(names) if not n or names[n - 1] != name]
        topics = [(names[n],) for n in self.bounds]
        self.bounds.append(len(names))
        self.sizes = list(map(sub, self.bounds[1:], self.bounds))
        self.topics = Columns(topics)
        keys = [(one.topic, str(one.partition)) for one in found] if whole else topics
        self.partitions = Columns(keys)
        self.leaders = [one.image.leader for one in found] if whole else []
        self.led = [int(one.image.leader == node_id) for one in found]
        self.replicas = _replicas(found, node_id)
        if not whole:
            self.replicas = {name: self.sums(values) for name, values in self.replicas.items()}
        self.written = False

    def sums(self, values: Sequence[int]) -> Sequence[int]:
        """Returns the sum of each topic over its partitions."""
        if len(self.bounds) == len(values) + 1:
            return values
        so_far = [0, *accumulate(values)]
        return [so_far[last] - so_far[first] for first, last in pairwise(self.bounds)]

    def pick(self, column: Sequence[int]) -> list[int]:
        """Returns the column's value of each of its rows."""
        return [column[row] for row in self.rows]


class SeriesLayout:
    """All blocks, in the order of topics' names. led: of all partitions here. is_whole: each has
    series of its own. left_out: so many topics are not told."""

    __slots__ = ("blocks", "is_whole", "led", "left_out")

    def __init__(
        self,
        found: list[PartitionRow],
        weigh: Callable[[PartitionRow], int],
        node_id: int,
        limits: SeriesLimits,
        before: "SeriesLayout | None" = None,
    ) -> None:
        """found: in order. weigh: bytes of a partition. before: whose blocks are kept where they
        are the same."""
        self.led = _led(found, node_id)
        self.is_whole = len(found) <= limits.partitions
        kept, self.left_out = _heaviest(found, weigh, limits.topics)
        same = before is not None and before.is_whole == self.is_whole
        known = {one.found[0].topic: one for one in before.blocks} if before and same else {}
        self.blocks: list[TopicBlock] = []
        for part in _parted(kept):
            block = known.get(part[0].topic)
            if block is None or block.found != part:
                block = TopicBlock(part, node_id, whole=self.is_whole)
            self.blocks.append(block)
        assert sum(len(block.rows) for block in self.blocks) == len(kept), "everybody has one block"


def _parted(found: list[PartitionRow]) -> Iterable[list[PartitionRow]]:
    """Cut where a topic begins whose name says so."""
    begin, topic = 0, ""
    for n, one in enumerate(found):
        if one.topic != topic:
            topic = one.topic
            if n > begin and crc32(topic.encode()) % TOPICS_OF_A_BLOCK == 0:
                yield found[begin:n]
                begin = n
    if begin < len(found):
        yield found[begin:]


def _heaviest(
    found: list[PartitionRow], weigh: Callable[[PartitionRow], int], most: int
) -> tuple[list[PartitionRow], int]:
    """Those of so many topics at most, and how many topics are left out."""
    if len(found) <= most or len({one.topic for one in found}) <= most:
        return found, 0
    bytes_of: Counter[str] = Counter()
    for one in found:
        bytes_of[one.topic] += weigh(one)
    kept = {name for name, _ in bytes_of.most_common(most)}
    return [one for one in found if one.topic in kept], len(bytes_of) - len(kept)


def _replicas(found: Sequence[PartitionRow], node_id: int) -> dict[str, Sequence[int]]:
    """Metric → value of each."""
    images = [one.image for one in found]
    in_sync = [len(one.isr) for one in images]
    asked = [one.least if one.image.leader == node_id else -1 for one in found]  # else nobody asks
    pairs = list(zip(in_sync, asked, strict=True))
    return {
        "penstock_partition_replicas": [len(one.replicas) for one in images],
        "penstock_partition_in_sync_replicas": in_sync,
        "penstock_partition_leader_preferred": [
            int(one.leader in one.replicas[:1]) for one in images
        ],
        "penstock_partition_under_replicated": [
            int(len(one.isr) < len(one.replicas)) for one in images
        ],
        "penstock_partition_under_min_isr": [int(here < few) for here, few in pairs],
        "penstock_partition_at_min_isr": [int(here == few) for here, few in pairs],
    }
