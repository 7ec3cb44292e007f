"""Which row of the shared partition table belongs to which partition.

Control gives a new partition its row before it publishes the record that creates the partition, so
whoever has replayed up to a published offset finds every row here after `refresh`.
"""

from collections.abc import Iterable

from appliance.metadata.changes import Change, TopicRemoved
from appliance.ring.partition_table import PartitionTable


class Handles:
    """`rows` maps (topic id, partition) to the row; `partitions` is the way back."""

    __slots__ = ("_seen", "_table", "partitions", "rows")

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self._seen = 0
        self.rows: dict[tuple[bytes, int], int] = {}
        self.partitions: dict[int, tuple[bytes, int]] = {}
        self.refresh(())

    def take(self, most: int) -> None:
        """Take in some of the new rows: partitions that nobody knows of yet may have one."""
        given = self._table.given
        few = given - self._seen <= self._table.rows
        self._take(min(self._seen + most, given) if few else given)

    def _take(self, until: int) -> None:
        for row in self._table.given_since(self._seen, until):
            before = self.rows.get((row.topic_id, row.partition), -1)
            self.partitions.pop(before, None)  # deleted and brought back
            self.rows[row.topic_id, row.partition] = row.handle
            self.partitions[row.handle] = (row.topic_id, row.partition)
        self._seen = until

    def refresh(self, changes: Iterable[Change]) -> None:
        """Take in all new rows, and forget those of removed topics. Costs nothing for old rows."""
        self._take(self._table.given)
        for change in changes:
            if isinstance(change, TopicRemoved):
                for index in range(change.partitions):
                    key = (change.topic_id, index)
                    handle = self.rows.get(key)
                    if handle is not None and not self._table.in_use(handle):
                        del self.rows[key], self.partitions[handle]
