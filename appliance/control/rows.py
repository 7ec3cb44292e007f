"""Rows of the shared partition table: control gives one to each partition before anybody can see
the partition, and takes it back when the topic is gone.

A row is given to another partition only when every netproc and ioproc has replayed the record that
removed the one before: then nobody reads or writes it any more, and what is still in a ring names
an older generation of the row.
"""

from collections import deque
from collections.abc import Callable

from appliance.base.errors import ConfigError
from appliance.base.ids import TopicId
from appliance.metadata.changes import Change, PartitionAdded, TopicRemoved
from appliance.metadata.image import MetadataImage
from appliance.ring.partition_table import NO_HANDLE, ROW_MASK, PartitionTable


class PartitionRows:
    """handles: (topic id, partition) → row, as of the last commit. applied: the offset below which
    every other process has replayed the metadata."""

    __slots__ = ("_applied", "_retired", "_table", "handles")

    def __init__(self, table: PartitionTable, applied: Callable[[], int]) -> None:
        self._table = table
        self._applied = applied
        self._retired: deque[tuple[int, int]] = deque()  # (offset behind the removal, row)
        self.handles: dict[tuple[bytes, int], int] = {
            (row.topic_id, row.partition): row.handle for row in table.live_rows()
        }

    @property
    def free(self) -> int:
        """How many partitions still get a row."""
        never_used = self._table.rows - self._table.row_count
        if not self._retired:
            return never_used
        applied = self._applied()
        return never_used + sum(offset <= applied for offset, _ in self._retired)

    def everyone_has(self, offset: int) -> bool:
        """Whether every other process has replayed the metadata below this offset."""
        return offset <= self._applied()

    def reconcile(self, image: MetadataImage, end_offset: int) -> None:
        """After a start: a row for every partition, none for what a predecessor never committed.

        end_offset: of the log; who has replayed up to there knows of no older partition. Raises
        ConfigError when the table is too small."""
        wanted = {
            (topic.topic_id, partition.index)
            for topic in image.topics_by_name.values()
            for partition in topic.partitions
        }
        for key in [key for key in self.handles if key not in wanted]:
            self._table.retire(self.handles.pop(key))
        self._retired = deque((end_offset, row) for row in self._table.idle_rows())
        for topic in image.topics_by_name.values():
            for partition in topic.partitions:
                self._add(topic.topic_id, partition.index)

    def apply(self, change: Change, committed: int) -> None:
        """Follow one change, committed below this offset."""
        if isinstance(change, PartitionAdded):
            self._add(change.topic_id, change.index)
        elif isinstance(change, TopicRemoved):
            for index in range(change.partitions):
                handle = self.handles.pop((change.topic_id, index), None)
                if handle is not None:
                    self._table.retire(handle)
                    self._retired.append((committed, handle & ROW_MASK))

    def _add(self, topic_id: bytes, index: int) -> None:
        if (topic_id, index) in self.handles:
            return
        handle = self._take(TopicId(topic_id), index)
        if handle == NO_HANDLE:
            raise ConfigError(
                f"the partition table has {self._table.rows} rows and all are taken;"
                " restart the appliance with a larger penstock.partitions.max"
            )
        self.handles[topic_id, index] = handle

    def _take(self, topic_id: TopicId, index: int) -> int:
        """The row that is retired for the longest time, else one that nobody ever had."""
        if self._retired and self._retired[0][0] <= self._applied():
            return self._table.reuse(self._retired.popleft()[1], topic_id, index)
        return self._table.add(topic_id, index)
