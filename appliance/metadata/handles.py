"""Which row of the shared partition table belongs to which partition with a replica here.

Control gives a new replica its row before it publishes the record that creates it, so whoever has
replayed up to a published offset finds every row here after `refresh`.
"""

from collections.abc import Iterable

from appliance.metadata.changes import Change, PartitionChanged, TopicRemoved
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

    def take_rows(self, most: int) -> None:
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
        """Take in all new rows, and forget those of removed topics and replicas. Costs nothing for
        old rows."""
        self._take(self._table.given)
        for change in changes:
            if isinstance(change, TopicRemoved):
                for index in range(change.partitions):
                    self._forget(change.topic_id, index)
            elif isinstance(change, PartitionChanged):
                self._forget(change.topic_id, change.index)

    def _forget(self, topic_id: bytes, index: int) -> None:
        handle = self.rows.get((topic_id, index))
        if handle is not None and not self._table.in_use(handle):
            del self.rows[topic_id, index], self.partitions[handle]
