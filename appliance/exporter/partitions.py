"""Partitions and topics as series: columns of the partition table, copied whole, in the order of
topics' names. Where there are more partitions than a scraper wants, sums over topics instead.

Which row belongs to which series is worked out when rows or metadata have changed; a scrape copies
columns and sums them up. Totals over all topics never go back: a row keeps its counts until it is
given to another partition, and what it had then is remembered.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from operator import sub
from typing import Final, NamedTuple

from appliance.exporter.exposition import Columns, Page
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import PartitionImage
from appliance.ring import partition_table as table_columns
from appliance.ring.partition_table import (
    BATCHES_IN,
    BYTES_IN,
    BYTES_OUT,
    FETCHES,
    FOLLOWING,
    HIGH_WATERMARK,
    LAST_STABLE,
    LEADERS_MARK,
    LOG_END,
    LOG_START,
    NOT_OPEN,
    OFFLINE,
    RECORDS_IN,
    REPLICATED,
    SERVED_COLUMNS,
    SIZE_BYTES,
    STATUS,
    TO_FOLLOWERS,
    PartitionTable,
)

_OFFSETS: Final = (
    ("penstock_partition_log_start_offset", LOG_START),
    ("penstock_partition_high_watermark", HIGH_WATERMARK),
    ("penstock_partition_log_end_offset", LOG_END),
    ("penstock_partition_size_bytes", SIZE_BYTES),
)
_COUNTS: Final = (
    ("received_bytes_total", BYTES_IN),
    ("received_records_total", RECORDS_IN),
    ("received_batches_total", BATCHES_IN),
)
_SERVED: Final = (("sent_bytes_total", BYTES_OUT), ("fetches_total", FETCHES))
_REPLICATED: Final = "replication_received_bytes_total"
_NEVER: Final = -1

MinIsr = Callable[[MetadataImage], Callable[[str], int]]
"""Of an image: min.insync.replicas by the name of a topic."""


class Limits(NamedTuple):
    """Of so many partitions each has series of its own, of more their topics have; and so many
    topics have, of more those with most bytes."""

    partitions: int
    topics: int


class _Found(NamedTuple):
    """A row that is in use, and what the metadata says of its partition."""

    topic: str
    partition: int
    row: int
    image: PartitionImage


class _Everywhere(NamedTuple):
    """Of all partitions of the cluster: how many, without a leader, not led by the first of their
    replicas."""

    partitions: int = 0
    leaderless: int = 0
    not_preferred: int = 0


def _everywhere(image: MetadataImage) -> _Everywhere:
    every = [one for topic in image.topics_by_id.values() for one in topic.partitions]
    return _Everywhere(
        len(every),
        sum(one.leader < 0 for one in every),
        sum(one.leader != one.replicas[0] for one in every if one.replicas),
    )


class _Led(NamedTuple):
    """Of the partitions that this node leads: how many, and of how many that holds."""

    partitions: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    reassigning: int


def _led(found: list[_Found], node_id: int, least_of: Callable[[str], int]) -> _Led:
    led = [one for one in found if one.image.leader == node_id]
    spare = [len(one.image.isr) - _least(one, least_of) for one in led]
    return _Led(
        len(led),
        sum(len(one.image.isr) < len(one.image.replicas) for one in led),
        sum(one < 0 for one in spare),
        spare.count(0),
        sum(bool(one.image.adding_replicas or one.image.removing_replicas) for one in led),
    )


def _least(one: _Found, least_of: Callable[[str], int]) -> int:
    """So many must be in sync: as many as are asked for, or as there are."""
    return min(least_of(one.topic), len(one.image.replicas))


class _Layout:
    """Which rows are told, of whom. rows: by topic and partition. bounds: where in `rows` each
    topic begins, and the end. replicas: what the metadata says of each partition, or topic."""

    def __init__(
        self,
        found: list[_Found],
        weights: Sequence[int],
        node_id: int,
        limits: Limits,
        least_of: Callable[[str], int],
    ) -> None:
        """weights: by row. least_of: min.insync.replicas by the name of a topic."""
        self.led = _led(found, node_id, least_of)
        self.is_whole = len(found) <= limits.partitions
        kept = _heaviest(found, weights, limits.topics)
        self.left_out = len({one.topic for one in found}) - len({one.topic for one in kept})
        self.rows = [one.row for one in kept]
        names = [one.topic for one in kept]
        self.bounds = [n for n, name in enumerate(names) if not n or names[n - 1] != name]
        topics = [(names[n],) for n in self.bounds]
        self.bounds.append(len(names))
        self.sizes = list(map(sub, self.bounds[1:], self.bounds))
        self.topics = Columns(topics)
        keys = [(one.topic, str(one.partition)) for one in kept] if self.is_whole else topics
        self.partitions = Columns(keys)
        self.leaders = [one.image.leader for one in kept]
        self.replicas = _replicas(kept, node_id, least_of)
        if not self.is_whole:
            self.replicas = {name: self.sums(values) for name, values in self.replicas.items()}

    def sums(self, values: Sequence[int]) -> list[int]:
        """Of each topic, over its partitions."""
        if len(self.bounds) == len(values) + 1:
            return list(values)
        so_far = [0, *accumulate(values)]
        return [so_far[last] - so_far[first] for first, last in pairwise(self.bounds)]


def _heaviest(found: list[_Found], weights: Sequence[int], most: int) -> list[_Found]:
    """Those of so many topics at most."""
    bytes_of: Counter[str] = Counter()
    for one in found:
        bytes_of[one.topic] += weights[one.row]
    if len(bytes_of) <= most:
        return found
    kept = {name for name, _ in bytes_of.most_common(most)}
    return [one for one in found if one.topic in kept]


def _replicas(
    found: list[_Found], node_id: int, least_of: Callable[[str], int]
) -> dict[str, list[int]]:
    """Metric → value of each."""
    images = [one.image for one in found]
    in_sync = [len(one.isr) for one in images]
    asked = [  # of who does not lead nobody asks
        _least(one, least_of) if one.image.leader == node_id else -1 for one in found
    ]
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


class Partitions:
    """node_id: of this node."""

    def __init__(
        self, table: PartitionTable, node_id: int, limits: Limits, min_isr: MinIsr
    ) -> None:
        self._table = table
        self._node_id = node_id
        self._limits = limits
        self._min_isr = min_isr
        self._holders: list[int] = []
        self._version = _NEVER
        self._layout: _Layout | None = None
        self._everywhere = _Everywhere()
        self._counts: dict[str, list[int]] = {}  # of every row, at the last scrape
        self._gone = {name: 0 for name, _ in (*_COUNTS, *_SERVED)} | {_REPLICATED: 0}

    def tell(self, page: Page, image: MetadataImage, version: int) -> None:
        """Everything of partitions and topics, as it is at this moment. version: another one when
        the image says something else of them."""
        holders = self._table.holders()
        counts = self._read_counts(len(holders))
        layout = self._level(holders, counts, image, version)
        self._counts = counts
        page.add("penstock_topics", len(image.topics_by_id))
        everywhere = self._everywhere
        page.add("penstock_cluster_partitions", everywhere.partitions)
        page.add("penstock_cluster_partitions_leaderless", everywhere.leaderless)
        page.add("penstock_cluster_partitions_not_preferred", everywhere.not_preferred)
        offline = self._tell_states(page, layout, holders)
        name = "kafka_controller_kafkacontroller_offlinepartitionscount"
        page.add(name, offline + everywhere.leaderless)
        self._tell_partitions(page, layout)
        self._tell_topics(page, layout, counts)

    def _read_counts(self, rows: int) -> dict[str, list[int]]:
        table = self._table
        found = {name: table.column(column)[:rows] for name, column in _COUNTS}
        found[_REPLICATED] = table.column(REPLICATED)[:rows]
        for name, column in _SERVED:
            parts = [
                part[column : rows * SERVED_COLUMNS : SERVED_COLUMNS].tolist()
                for part in table.served
            ]
            found[name] = parts[0] if len(parts) == 1 else list(map(sum, zip(*parts, strict=True)))
        return found

    def _level(
        self,
        holders: list[int],
        counts: dict[str, list[int]],
        image: MetadataImage,
        version: int,
    ) -> _Layout:
        if self._layout is None or self._version != version or self._holders != holders:
            self._remember(holders)
            self._holders, self._version = holders, version
            self._everywhere = _everywhere(image)
            sizes = self._table.column(SIZE_BYTES)[: len(holders)]
            moved = zip(
                sizes, counts["received_bytes_total"], counts["sent_bytes_total"], strict=True
            )
            least_of = self._min_isr(image)
            weights = list(map(sum, moved))
            self._layout = _Layout(
                self._found(image), weights, self._node_id, self._limits, least_of
            )
        return self._layout

    def _found(self, image: MetadataImage) -> list[_Found]:
        """Every partition here whose topic is known, by topic and partition."""
        found = []
        for row in self._table.live_rows():
            topic = image.topics_by_id.get(row.topic_id)
            if topic is not None and row.partition < len(topic.partitions):
                number = row.handle & table_columns.ROW_MASK
                told = topic.partitions[row.partition]
                found.append(_Found(topic.name, row.partition, number, told))
        found.sort(key=lambda one: one[:2])
        return found

    def _remember(self, holders: list[int]) -> None:
        """What rows had counted that are another partition's now."""
        pairs = zip(self._holders, holders, strict=False)
        given = [row for row, (was, is_) in enumerate(pairs) if was | 1 != is_ | 1]
        for name, column in self._counts.items():
            self._gone[name] += sum(column[row] for row in given if row < len(column))

    def _tell_states(self, page: Page, layout: _Layout, holders: list[int]) -> int:
        """How many are offline here."""
        states = self._table.column(STATUS)
        live = [state for state, used in zip(states, holders, strict=False) if used & 1]
        page.add("penstock_partitions", len(live))
        page.add("penstock_partitions_led", layout.led.partitions)
        page.add("penstock_partitions_opening", live.count(NOT_OPEN))
        page.add("penstock_partitions_offline", live.count(OFFLINE))
        page.add("penstock_partitions_under_replicated", layout.led.under_replicated)
        page.add("penstock_partitions_under_min_isr", layout.led.under_min_isr)
        page.add("penstock_partitions_at_min_isr", layout.led.at_min_isr)
        page.add("penstock_partitions_reassigning", layout.led.reassigning)
        lag = self._lag(states, holders) if FOLLOWING in live else 0
        page.add("penstock_replication_lag_records", lag)
        page.add("kafka_server_replicafetchermanager_maxlag", lag, "Replica")
        sent = sum(part[TO_FOLLOWERS + BYTES_OUT] for part in self._table.served)
        page.add("penstock_replication_sent_bytes_total", sent)
        page.add("penstock_partition_series", int(layout.is_whole))
        page.add("penstock_topics_left_out", layout.left_out)
        return live.count(OFFLINE)

    def _lag(self, states: list[int], holders: list[int]) -> int:
        """By how many records the replica here that is furthest behind its leader is so."""
        marks, ends = self._table.column(LEADERS_MARK), self._table.column(LOG_END)
        rows = zip(states, holders, marks, ends, strict=False)
        behind = [mark - end for state, used, mark, end in rows if used & 1 and state == FOLLOWING]
        return max(0, *behind)

    def _tell_partitions(self, page: Page, layout: _Layout) -> None:
        for name, column in _OFFSETS:
            values = self._pick(layout, self._table.column(column))
            layout.partitions.tell(page, name, values if layout.is_whole else layout.sums(values))
        if layout.is_whole:
            layout.partitions.tell(page, "penstock_partition_leader", layout.leaders)
        for name, known in layout.replicas.items():
            layout.partitions.tell(page, name, known)

    def _tell_topics(self, page: Page, layout: _Layout, counts: dict[str, list[int]]) -> None:
        table, topics = self._table, layout.topics
        high = self._pick(layout, table.column(HIGH_WATERMARK))
        start = self._pick(layout, table.column(LOG_START))
        stable = self._pick(layout, table.column(LAST_STABLE))
        size = self._pick(layout, table.column(SIZE_BYTES))
        held = [max(seen - done, 0) for seen, done in zip(high, stable, strict=True)]
        topics.tell(page, "penstock_topic_partitions", layout.sizes)
        topics.tell(page, "penstock_topic_size_bytes", layout.sums(size))
        topics.tell(page, "penstock_topic_records", layout.sums(list(map(sub, high, start))))
        topics.tell(page, "penstock_topic_held_records", layout.sums(held))
        for name, column in counts.items():
            if name != _REPLICATED:
                topics.tell(page, f"penstock_topic_{name}", layout.sums(self._pick(layout, column)))
            page.add(f"penstock_{name}", self._gone[name] + sum(column))

    def _pick(self, layout: _Layout, column: Sequence[int]) -> list[int]:
        return [column[row] for row in layout.rows]
