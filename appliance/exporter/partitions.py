"""Partitions and topics as series: columns of the partition table, copied whole, in the order of
topics' names. Where there are more partitions than a scraper wants, sums over topics instead.

Which row belongs to which series is worked out when rows or metadata have changed; a scrape copies
columns and sums them up. Totals over all topics never go back: a row keeps its counts until it is
given to another partition, and what it had then is remembered.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from operator import sub
from typing import Final

from appliance.exporter.exposition import Columns, Page
from appliance.metadata.image import MetadataImage
from appliance.ring import partition_table as table_columns
from appliance.ring.partition_table import (
    BATCHES_IN,
    BYTES_IN,
    BYTES_OUT,
    FETCHES,
    HIGH_WATERMARK,
    LAST_STABLE,
    LOG_END,
    LOG_START,
    NOT_OPEN,
    OFFLINE,
    RECORDS_IN,
    SERVED_COLUMNS,
    SIZE_BYTES,
    STATUS,
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
_NEVER: Final = -1

MinIsr = Callable[[MetadataImage], Callable[[str], int]]
"""Of an image: min.insync.replicas by the name of a topic."""


class _Layout:
    """Which rows there are, of whom. rows: those of partitions whose topic is known, by topic and
    partition. bounds: where in `rows` each topic begins, and the end. replicas: what the metadata
    says of each of them."""

    def __init__(
        self, table: PartitionTable, image: MetadataImage, node_id: int, most: int, min_isr: MinIsr
    ) -> None:
        found = []
        for row in table.live_rows():
            topic = image.topics_by_id.get(row.topic_id)
            if topic is not None and row.partition < len(topic.partitions):
                number = row.handle & table_columns.ROW_MASK
                found.append((topic.name, row.partition, number, topic.partitions[row.partition]))
        found.sort(key=lambda one: one[:2])
        names = [name for name, *_ in found]
        self.rows = [row for _, _, row, _ in found]
        self.bounds = [n for n, name in enumerate(names) if not n or names[n - 1] != name]
        self.topics = Columns([(names[n],) for n in self.bounds])
        self.bounds.append(len(names))
        self.sizes = list(map(sub, self.bounds[1:], self.bounds))
        self.is_whole = len(names) <= most
        self.partitions = (
            Columns([(name, str(number)) for name, number, *_ in found])
            if self.is_whole
            else Columns([(names[n],) for n in self.bounds[:-1]])
        )
        told = [one for *_, one in found]
        least_of = min_isr(image)
        least = [least_of(names[n]) for n in self.bounds[:-1]]
        wanted = [
            min(few, len(told[n].replicas))
            for few, (first, last) in zip(least, pairwise(self.bounds), strict=True)
            for n in range(first, last)
        ]
        in_sync = [len(one.isr) for one in told]
        self.led = sum(one.leader == node_id for one in told)
        under = [int(len(one.isr) < len(one.replicas)) for one in told]
        self.under_replicated = sum(
            bad for bad, one in zip(under, told, strict=True) if one.leader == node_id
        )
        self.leaders = [one.leader for one in told]
        self.replicas = {
            "penstock_partition_replicas": [len(one.replicas) for one in told],
            "penstock_partition_in_sync_replicas": in_sync,
            "penstock_partition_leader_preferred": [
                int(one.leader == one.replicas[0]) if one.replicas else 0 for one in told
            ],
            "penstock_partition_under_replicated": under,
            "penstock_partition_under_min_isr": [
                int(here < few) for here, few in zip(in_sync, wanted, strict=True)
            ],
            "penstock_partition_at_min_isr": [
                int(here == few) for here, few in zip(in_sync, wanted, strict=True)
            ],
        }
        if not self.is_whole:
            self.replicas = {name: self.sums(values) for name, values in self.replicas.items()}

    def sums(self, values: Sequence[int]) -> list[int]:
        """Of each topic, over its partitions."""
        if len(self.bounds) == len(values) + 1:
            return list(values)
        so_far = [0, *accumulate(values)]
        return [so_far[last] - so_far[first] for first, last in pairwise(self.bounds)]


class Partitions:
    """node_id: of this node. most: of so many partitions each has series of its own."""

    def __init__(self, table: PartitionTable, node_id: int, most: int, min_isr: MinIsr) -> None:
        self._table = table
        self._node_id = node_id
        self._most = most
        self._min_isr = min_isr
        self._holders: list[int] = []
        self._version = _NEVER
        self._layout: _Layout | None = None
        self._counts: dict[str, list[int]] = {}  # of every row, at the last scrape
        self._gone = {name: 0 for name, _ in (*_COUNTS, *_SERVED)}

    def tell(self, page: Page, image: MetadataImage, version: int) -> None:
        """Everything of partitions and topics, as it is at this moment. version: another one when
        the image says something else of them."""
        holders = self._table.holders()
        counts = self._read_counts(len(holders))
        layout = self._level(holders, image, version)
        self._counts = counts
        page.add("penstock_topics", len(image.topics_by_id))
        everywhere = sum(len(topic.partitions) for topic in image.topics_by_id.values())
        page.add("penstock_cluster_partitions", everywhere)
        self._tell_states(page, layout, holders)
        self._tell_partitions(page, layout)
        self._tell_topics(page, layout, counts)

    def _read_counts(self, rows: int) -> dict[str, list[int]]:
        table = self._table
        found = {name: table.column(column)[:rows] for name, column in _COUNTS}
        for name, column in _SERVED:
            parts = [
                part[column : rows * SERVED_COLUMNS : SERVED_COLUMNS].tolist()
                for part in table.served
            ]
            found[name] = parts[0] if len(parts) == 1 else list(map(sum, zip(*parts, strict=True)))
        return found

    def _level(self, holders: list[int], image: MetadataImage, version: int) -> _Layout:
        if self._layout is None or self._version != version or self._holders != holders:
            self._remember(holders)
            self._holders, self._version = holders, version
            table, node_id = self._table, self._node_id
            self._layout = _Layout(table, image, node_id, self._most, self._min_isr)
        return self._layout

    def _remember(self, holders: list[int]) -> None:
        """What rows had counted that are another partition's now."""
        pairs = zip(self._holders, holders, strict=False)
        given = [row for row, (was, is_) in enumerate(pairs) if was | 1 != is_ | 1]
        for name, column in self._counts.items():
            self._gone[name] += sum(column[row] for row in given if row < len(column))

    def _tell_states(self, page: Page, layout: _Layout, holders: list[int]) -> None:
        states = self._table.column(STATUS)
        live = [state for state, used in zip(states, holders, strict=False) if used & 1]
        page.add("penstock_partitions", len(live))
        page.add("penstock_partitions_led", layout.led)
        page.add("penstock_partitions_opening", live.count(NOT_OPEN))
        page.add("penstock_partitions_offline", live.count(OFFLINE))
        page.add("penstock_partitions_under_replicated", layout.under_replicated)
        page.add("penstock_partition_series", int(layout.is_whole))

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
            topics.tell(page, f"penstock_topic_{name}", layout.sums(self._pick(layout, column)))
            page.add(f"penstock_{name}", self._gone[name] + sum(column))

    def _pick(self, layout: _Layout, column: Sequence[int]) -> list[int]:
        return [column[row] for row in layout.rows]
