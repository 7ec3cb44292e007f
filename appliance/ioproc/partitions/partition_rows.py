"""Publishes the state of an ioproc's partitions: columns of their rows in the shared table.

Invariant: only the home ioproc of a partition writes its row, once per turn in which something
changed. Fetches are planned from these columns without asking, so they are written before the
completions of the turn.
"""

from typing import Final

from appliance.ioproc.partitions.fetch_watches import FetchWatches
from appliance.ioproc.partitions.partition import Partition
from appliance.ring import partition_table as columns
from appliance.ring.messages import WATCH_STABLE, WATCH_VISIBLE, WATCH_WRITTEN
from appliance.ring.partition_table import (
    COLUMNS,
    FOLLOWING,
    NOT_OPEN,
    OFFLINE,
    ONLINE,
    ROW_MASK,
    PartitionTable,
)

_ALL: Final = WATCH_VISIBLE | WATCH_STABLE | WATCH_WRITTEN


class Rows:
    """Writer of the rows of one ioproc. changed: what is published at the end of this turn.
    watches: who is to hear of what moves. state: of all rows."""

    __slots__ = ("_table", "changed", "state", "watches")

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self.state = table.state
        self.changed: dict[Partition, None] = {}
        self.watches = FetchWatches()

    def publish(self, partition: Partition) -> None:
        """Everything about the partition that may have changed in this turn."""
        log = partition.log
        progress = partition.progress
        places = partition.places
        state = self.state
        at = (partition.handle & ROW_MASK) * COLUMNS
        log_start = log.log_start_offset
        stable, visible = progress.last_stable, progress.high_watermark
        assert log_start <= stable <= visible <= progress.log_end, partition
        if self.watches.waits:
            self._note(partition, at)
        version = state[at]
        state[at] = version = version + 1 + (version & 1)
        state[at + columns.LOG_START] = log_start
        state[at + columns.HIGH_WATERMARK] = visible
        state[at + columns.LAST_STABLE] = stable
        active = log.active
        state[at + columns.LOG_END] = active.end_offset
        state[at + columns.RECOVERY_POINT] = log.recovery_point
        state[at + columns.LEADER_EPOCH] = partition.leader_epoch
        state[at + columns.SIZE_BYTES] = log.order.closed_size + active.size
        state[at + columns.END_SEGMENT] = active.base
        state[at + columns.VISIBLE_SEGMENT], state[at + columns.VISIBLE_POSITION] = places.visible
        state[at + columns.STABLE_SEGMENT], state[at + columns.STABLE_POSITION] = places.stable
        state[at + columns.BYTES_IN] = partition.bytes_in
        state[at + columns.RECORDS_IN] = partition.records_in
        state[at + columns.BATCHES_IN] = partition.batches_in
        state[at + columns.LAYOUT] = log.layout
        state[at + columns.DIRECTORY] = partition.directory
        aborted = partition.aborted
        known = aborted is not None and aborted.layout == log.layout
        state[at + columns.ABORTED_TO] = aborted.end + 1 if known and aborted is not None else 0
        to, end, size = partition.future
        state[at + columns.FUTURE] = to and end << 8 | to
        state[at + columns.FUTURE_BYTES] = size
        state[at] = version + 1
        partition.risen = False

    def _note(self, partition: Partition, at: int) -> None:
        """Notes the changes that watchers wait for and the row does not have yet."""
        state, progress, news = self.state, partition.progress, 0
        if state[at + columns.HIGH_WATERMARK] != progress.high_watermark:
            news = WATCH_VISIBLE
        if state[at + columns.LAST_STABLE] != progress.last_stable:
            news |= WATCH_STABLE
        if state[at + columns.LOG_END] != partition.log.active.end_offset:
            news |= WATCH_WRITTEN
        if news:
            self.watches.moved(partition.handle, news)

    def take_over(self, partition: Partition) -> None:
        """The partition was opened: what a predecessor said of positions holds no more, what it
        counted goes on."""
        table, handle = self._table, partition.handle
        partition.log.layout = table.read_column(handle, columns.LAYOUT) + 1
        partition.bytes_in = max(partition.bytes_in, table.read_column(handle, columns.BYTES_IN))
        partition.records_in = max(
            partition.records_in, table.read_column(handle, columns.RECORDS_IN)
        )
        partition.batches_in = max(
            partition.batches_in, table.read_column(handle, columns.BATCHES_IN)
        )

    def replicated(self, partition: Partition, size: int) -> None:
        """Bytes that were taken from its leader."""
        at = (partition.handle & ROW_MASK) * COLUMNS + columns.REPLICATED
        self.state[at] += size

    def leads_to(self, partition: Partition, high_watermark: int) -> None:
        """The leader's, as it was told now: how far there is to go."""
        self.state[(partition.handle & ROW_MASK) * COLUMNS + columns.LEADERS_MARK] = high_watermark

    def cleaned(self, partition: Partition, cleaned_to: int, failures: int) -> None:
        """How compaction goes: up to where, and how often in a row it failed."""
        self._table.set(partition.handle, columns.CLEANED_TO, cleaned_to)
        self._table.set(partition.handle, columns.UNCLEANABLE, failures)

    def cleaning_took(self, partition: Partition, ms: int) -> None:
        """How long its last compaction took."""
        self._table.set(partition.handle, columns.CLEANING_MS, ms)

    def cleaning_is_late(self, partition: Partition, ms: int) -> None:
        """For how long records wait for compaction beyond max.compaction.lag.ms."""
        if self._table.read_column(partition.handle, columns.CLEANING_LATE_MS) != ms:
            self._table.set(partition.handle, columns.CLEANING_LATE_MS, ms)

    def online(self, partition: Partition) -> None:
        """The partition is served; records are taken where it leads."""
        status = ONLINE if partition.progress.leads else FOLLOWING
        self._set_status(partition.handle, status)

    def offline(self, handle: int) -> None:
        """The partition's storage failed."""
        self._set_status(handle, OFFLINE)

    def closed(self, partition: Partition) -> None:
        """It is not served any more."""
        self._set_status(partition.handle, NOT_OPEN)

    def _set_status(self, handle: int, status: int) -> None:
        """As a new version of the row: who reads at the end looks no further than that."""
        if self.watches.waits:
            self.watches.moved(handle, _ALL)
        self._table.begin_change(handle)
        self._table.set(handle, columns.STATUS, status)
        self._table.end_change(handle)
