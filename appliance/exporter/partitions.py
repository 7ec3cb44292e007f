"""Partitions and topics as series: columns of the partition table, copied whole, in the order of
topics' names. Where there are more partitions than a scraper wants, sums over topics instead.

Which row belongs to which series (`layout.py`) is worked out when rows or metadata have changed, as
a rule between two scrapes and in slices; a scrape copies columns and sums them up. Totals over all
topics never go back: a row keeps its counts until it is given to another partition, and what it had
then is remembered.
"""

from collections.abc import Callable
from itertools import islice
from operator import mul, sub
from typing import Final, NamedTuple

from appliance.base.ids import TopicId
from appliance.exporter.exposition import Page
from appliance.exporter.layout import PartitionRow, SeriesLayout, SeriesLimits, TopicBlock
from appliance.metadata.image import MetadataImage
from appliance.ring.partition_table import (
    BATCHES_IN,
    BYTES_IN,
    BYTES_OUT,
    CLEANING_LATE_MS,
    CLEANING_MS,
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
    UNCLEANABLE,
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
_LAG: Final = "penstock_partition_replication_lag_records"
_NEVER: Final = -1
_SLICE: Final = 4
"""So many blocks are written at a time between two scrapes: some ms."""
_Columns = dict[str, list[int]]
"""What is told of rows → its column."""

MinIsr = Callable[[MetadataImage], Callable[[str], int]]
"""Of an image: min.insync.replicas by the name of a topic."""


class _Everywhere(NamedTuple):
    """Counts over all partitions of the cluster: all, leaderless, not led by the preferred
    replica."""

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


class Partitions:
    """node_id: of this node."""

    def __init__(
        self, table: PartitionTable, node_id: int, limits: SeriesLimits, min_isr: MinIsr
    ) -> None:
        self._table = table
        self._node_id = node_id
        self._limits = limits
        self._min_isr = min_isr
        self._holders: list[int] = []
        self._version = _NEVER
        self._layout: SeriesLayout | None = None
        self._rows: dict[int, tuple[int, TopicId, int]] = {}  # row → holder, topic, partition
        self._everywhere = _Everywhere()
        self._counts: dict[str, list[int]] = {}  # of every row, at the last scrape
        self._gone = {name: 0 for name, _ in (*_COUNTS, *_SERVED)} | {_REPLICATED: 0}

    def prepare(self, image: MetadataImage, version: int) -> bool:
        """One slice of what the next scrape would have to do after a change: whether there is more.
        version: as for `tell`."""
        holders = self._table.holders()
        if self._is_level(holders, version):
            assert self._layout is not None
            fresh = list(islice((one for one in self._layout.blocks if not one.written), _SLICE))
            if not fresh:
                return False
            counts = self._read_counts(len(holders))
            self._tell_blocks(Page(), self._layout, fresh, counts)
        else:
            self._level(holders, self._read_counts(len(holders)), image, version)
        return True

    def write_page(self, page: Page, image: MetadataImage, version: int) -> None:
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
        for what, column in counts.items():
            page.add(f"penstock_{what}", self._gone[what] + sum(column))
        self._tell_blocks(page, layout, layout.blocks, counts)

    def _read_counts(self, rows: int) -> _Columns:
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

    def _is_level(self, holders: list[int], version: int) -> bool:
        return self._layout is not None and self._version == version and self._holders == holders

    def _level(
        self, holders: list[int], counts: _Columns, image: MetadataImage, version: int
    ) -> SeriesLayout:
        if self._layout is None or not self._is_level(holders, version):
            self._remember(holders)
            self._holders, self._version, self._counts = holders, version, counts
            self._everywhere = _everywhere(image)
            sizes = self._table.column(SIZE_BYTES)
            received, sent = counts["received_bytes_total"], counts["sent_bytes_total"]
            self._layout = SeriesLayout(
                self._found(holders, image),
                lambda one: sizes[one.row] + received[one.row] + sent[one.row],
                self._node_id, self._limits, self._layout,
            )  # fmt: skip
        return self._layout

    def _found(self, holders: list[int], image: MetadataImage) -> list[PartitionRow]:
        """Every partition here whose topic is known, by topic and partition."""
        self._read_rows(holders)
        least_of, least = self._min_isr(image), dict[str, int]()
        found = []
        for row, (_, topic_id, partition) in self._rows.items():
            topic = image.topics_by_id.get(topic_id)
            if topic is None or partition >= len(topic.partitions):
                continue
            name, told = topic.name, topic.partitions[partition]
            if name not in least:
                least[name] = least_of(name)
            found.append(
                PartitionRow(name, partition, row, told, min(least[name], len(told.replicas)))
            )
        found.sort()  # of one partition there is one row, so images are never compared
        return found

    def _read_rows(self, holders: list[int]) -> None:
        """Reads the partition of each row that changed hands."""
        rows = self._rows
        for row, holder in enumerate(holders):
            known = rows.get(row)
            if known is not None and known[0] == holder:
                continue
            rows.pop(row, None)
            if holder & 1:
                for one in self._table.live_rows(row, row + 1):
                    rows[row] = holder, one.topic_id, one.partition

    def _remember(self, holders: list[int]) -> None:
        """Keeps the counts of rows that changed hands."""
        pairs = zip(self._holders, holders, strict=False)
        given = [row for row, (was, is_) in enumerate(pairs) if was | 1 != is_ | 1]
        for name, column in self._counts.items():
            self._gone[name] += sum(column[row] for row in given if row < len(column))

    def _tell_states(self, page: Page, layout: SeriesLayout, holders: list[int]) -> int:
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
        lag = max(self._lags(holders), default=0)
        page.add("penstock_replication_lag_records", lag)
        page.add("kafka_server_replicafetchermanager_maxlag", lag, "Replica")
        sent = sum(part[TO_FOLLOWERS + BYTES_OUT] for part in self._table.served)
        page.add("penstock_replication_sent_bytes_total", sent)
        self._tell_compaction(page, holders)
        page.add("penstock_partition_series", int(layout.is_whole))
        page.add("penstock_topics_left_out", layout.left_out)
        return live.count(OFFLINE)

    def _tell_compaction(self, page: Page, holders: list[int]) -> None:
        def live(column: int) -> list[int]:
            values = self._table.column(column)
            return [value for value, used in zip(values, holders, strict=False) if used & 1]

        page.add("penstock_partitions_uncleanable", sum(map(bool, live(UNCLEANABLE))))
        page.add("penstock_compaction_longest_seconds", max(live(CLEANING_MS), default=0) / 1000)
        page.add("penstock_compaction_delay_seconds", max(live(CLEANING_LATE_MS), default=0) / 1000)

    def _lags(self, holders: list[int]) -> list[int]:
        """How many records each replica here lacks of what its leader said; 0 for one that follows
        nobody. Empty where none follows."""
        table = self._table
        states = table.column(STATUS)[: len(holders)]
        if FOLLOWING not in states:
            return []
        rows = zip(states, holders, table.column(LEADERS_MARK), table.column(LOG_END), strict=False)
        return [
            max(mark - end, 0) if used & 1 and state == FOLLOWING else 0
            for state, used, mark, end in rows
        ]

    def _tell_blocks(
        self, page: Page, layout: SeriesLayout, blocks: list[TopicBlock], counts: _Columns
    ) -> None:
        offsets = [(name, self._table.column(column)) for name, column in _OFFSETS]
        stable = self._table.column(LAST_STABLE)
        lags = self._lags(self._holders)
        for block in blocks:
            if lags:
                behind = block.pick(lags)
                told = behind if layout.is_whole else block.sums(behind)
                block.partitions.write_columns(page, _LAG, told)
            picked = {name: block.pick(column) for name, column in offsets}
            for name, values in picked.items():
                told = values if layout.is_whole else block.sums(values)
                block.partitions.write_columns(page, name, told)
            if layout.is_whole:
                block.partitions.write_columns(page, "penstock_partition_leader", block.leaders)
            for name, known in block.replicas.items():
                block.partitions.write_columns(page, name, known)
            start, high, _, size = picked.values()
            held = [
                max(seen - done, 0) for seen, done in zip(high, block.pick(stable), strict=True)
            ]
            topics = block.topics
            topics.write_columns(page, "penstock_topic_partitions", block.sizes)
            topics.write_columns(page, "penstock_topic_size_bytes", block.sums(size))
            topics.write_columns(
                page, "penstock_topic_records", block.sums(list(map(sub, high, start)))
            )
            topics.write_columns(page, "penstock_topic_held_records", block.sums(held))
            led = list(map(mul, high, block.led))
            topics.write_columns(page, "penstock_topic_acknowledged_offset", block.sums(led))
            for name, column in counts.items():
                if name != _REPLICATED:
                    topics.write_columns(
                        page, f"penstock_topic_{name}", block.sums(block.pick(column))
                    )
            block.written = True
