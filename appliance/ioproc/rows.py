"""What an ioproc publishes about its partitions: the state columns of their rows in the shared
table.

Invariant: only the home ioproc of a partition writes its row, once per turn in which something
changed. Fetches are planned from these columns without asking, so they are written before the
completions of the turn.
"""

from appliance.ioproc.partition import Partition
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import (
    COLUMNS,
    NOT_OPEN,
    OFFLINE,
    ONLINE,
    ROW_MASK,
    PartitionTable,
)


class Rows:
    """Writer of the rows of one ioproc."""

    __slots__ = ("_state", "_table")

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self._state = table.state

    def publish(self, partition: Partition) -> None:
        """Everything about the partition that may have changed in this turn."""
        log = partition.log
        state = self._state
        at = (partition.handle & ROW_MASK) * COLUMNS
        high_watermark = partition.high_watermark
        version = state[at]
        state[at] = version = version + 1 + (version & 1)
        state[at + columns.LOG_START] = log.log_start_offset
        state[at + columns.HIGH_WATERMARK] = high_watermark
        state[at + columns.LAST_STABLE] = high_watermark
        state[at + columns.LOG_END] = log.end_offset
        state[at + columns.RECOVERY_POINT] = partition.synced
        state[at + columns.LEADER_EPOCH] = partition.leader_epoch
        state[at + columns.SIZE_BYTES] = log.size
        state[at + columns.END_SEGMENT] = log.active_base
        state[at + columns.VISIBLE_POSITION] = log.tail_position(high_watermark)
        state[at + columns.BYTES_IN] = partition.bytes_in
        state[at + columns.RECORDS_IN] = partition.records_in
        state[at + columns.LAYOUT] = log.layout
        state[at + columns.DIRECTORY] = partition.directory
        to, end, size = partition.future
        state[at + columns.FUTURE] = to and end << 8 | to
        state[at + columns.FUTURE_BYTES] = size
        state[at] = version + 1

    def take_over(self, partition: Partition) -> None:
        """The partition was opened: what a predecessor said of positions holds no more."""
        partition.log.layout = self._table.get(partition.handle, columns.LAYOUT) + 1

    def cleaned(self, partition: Partition, cleaned_to: int, failures: int) -> None:
        """How compaction goes: up to where, and how often in a row it failed."""
        self._table.set(partition.handle, columns.CLEANED_TO, cleaned_to)
        self._table.set(partition.handle, columns.UNCLEANABLE, failures)

    def online(self, partition: Partition) -> None:
        """The partition is served."""
        self._table.set(partition.handle, columns.STATUS, ONLINE)

    def offline(self, handle: int) -> None:
        """The partition's storage failed."""
        self._table.set(handle, columns.STATUS, OFFLINE)

    def closed(self, partition: Partition) -> None:
        """It is not served any more."""
        self._table.set(partition.handle, columns.STATUS, NOT_OPEN)
