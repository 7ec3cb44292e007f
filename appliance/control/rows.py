"""Rows of the shared partition table: control gives one to each partition before anybody can see
the partition, and takes it back when the topic is gone."""

from appliance.base.errors import ConfigError
from appliance.base.ids import TopicId
from appliance.metadata.changes import Change, PartitionAdded, TopicRemoved
from appliance.metadata.image import MetadataImage
from appliance.ring.partition_table import NO_HANDLE, PartitionTable


class PartitionRows:
    """handles: (topic id, partition) → row, as of the last commit."""

    __slots__ = ("_table", "handles")

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self.handles: dict[tuple[bytes, int], int] = {
            (row.topic_id, row.partition): row.handle for row in table.live_rows()
        }

    @property
    def free(self) -> int:
        """How many partitions still get a row."""
        return self._table.rows - self._table.row_count

    def reconcile(self, image: MetadataImage) -> None:
        """After a start: a row for every partition, none for what a predecessor never committed.

        Raises ConfigError when the table is too small."""
        wanted = {
            (topic.topic_id, partition.index)
            for topic in image.topics_by_name.values()
            for partition in topic.partitions
        }
        for key in [key for key in self.handles if key not in wanted]:
            self._table.retire(self.handles.pop(key))
        for topic in image.topics_by_name.values():
            for partition in topic.partitions:
                self._add(topic.topic_id, partition.index)

    def apply(self, change: Change) -> None:
        """Follow one committed change."""
        if isinstance(change, PartitionAdded):
            self._add(change.topic_id, change.index)
        elif isinstance(change, TopicRemoved):
            for index in range(change.partitions):
                handle = self.handles.pop((change.topic_id, index), None)
                if handle is not None:
                    self._table.retire(handle)

    def _add(self, topic_id: bytes, index: int) -> None:
        if (topic_id, index) in self.handles:
            return
        handle = self._table.add(TopicId(topic_id), index)
        if handle == NO_HANDLE:
            raise ConfigError(
                f"the partition table has {self._table.rows} rows and all are taken;"
                " restart the appliance with a larger table"
            )
        self.handles[topic_id, index] = handle
