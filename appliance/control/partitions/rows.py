"""Rows of the shared partition table: control gives one to each partition with a replica here
before anybody can see that, and takes it back when the replica or the topic is gone.

A row is given to another partition only when every netproc and ioproc has replayed the record that
removed the one before: then nobody reads or writes it any more, and what is still in a ring names
an older generation of the row.
"""

from collections import deque
from collections.abc import Callable

from appliance.base.errors import ConfigError
from appliance.base.ids import TopicId
from appliance.controller.node_rows import MOST
from appliance.metadata.changes import Change, PartitionAdded, PartitionChanged, TopicRemoved
from appliance.metadata.image import MetadataImage
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import NO_HANDLE, ROW_MASK, PartitionTable


class PartitionRows:
    """handles: (topic id, partition) → row, as of the last commit. lacking: those with a replica
    here for which there was none, because another node, with a larger table, decided on them; this
    node serves them as little as if it were down. applied: the offset below which every other
    process has replayed the metadata at this moment. lacks: is told how many those are when there
    are more of them."""

    __slots__ = ("_applied", "_idle", "_lacks", "_node_id", "_reached", "_retired", "_table",
                 "handles", "lacking")  # fmt: skip

    def __init__(
        self,
        table: PartitionTable,
        node_id: int,
        applied: Callable[[], int],
        lacks: Callable[[int], None],
    ) -> None:
        self._lacks = lacks
        self._table = table
        self._node_id = node_id
        self._applied = applied
        self._reached = 0
        self._retired: deque[tuple[int, int]] = deque()  # (end of the removal's metadata, row)
        self._idle: deque[int] = deque()  # rows that nobody knows of any more
        self.lacking: set[tuple[bytes, int]] = set()
        self.handles: dict[tuple[bytes, int], int] = {
            (row.topic_id, row.partition): row.handle for row in table.live_rows()
        }

    @property
    def free_rows(self) -> int:
        """How many partitions still get a row. It falls only as rows are taken."""
        self._let_go()
        return self._table.rows - self._table.row_count + len(self._idle)

    def size(self, topic_id: bytes, index: int) -> tuple[int, int]:
        """(bytes, records) of a partition, nothing when it is not here."""
        handle = self.handles.get((topic_id, index))
        if handle is None:
            return 0, 0
        row = self._table.read_row(handle)
        return row[columns.SIZE_BYTES], row[columns.LOG_END] - row[columns.LOG_START]

    def everyone_has(self, offset: int) -> bool:
        """True if every other process has replayed the metadata below this offset.

        What was true stays true: a process that comes later begins with what is published then.
        """
        if offset > self._reached:
            self._reached = max(self._reached, self._applied())
        return offset <= self._reached

    def reconcile(self, image: MetadataImage, end_offset: int, wait: Callable[[], bool]) -> None:
        """After a start: a row for every partition with a replica here, none for what is not in
        the image.

        end_offset: of the log; who has replayed up to there knows of no older partition. wait:
        called while rows are lacking that others may still let go of; False: not any more. Raises
        ConfigError when the table is too small."""
        wanted = {
            (topic.topic_id, partition.index): None
            for topic in image.topics_by_name.values()
            for partition in topic.partitions
            if self._node_id in partition.replicas
        }
        self._retired = deque(self._table.idle_rows())
        for key in [key for key in self.handles if key not in wanted]:
            self._retire(key, end_offset)
        lacking = [key for key in wanted if key not in self.handles]
        # A predecessor that made them durable had rows for them, which the others are letting go.
        while self.free_rows < len(lacking) and wait():
            pass
        if self.free_rows < len(lacking):
            raise ConfigError(
                f"the partition table has {self._table.rows} rows and"
                f" {len(self.handles) + len(lacking)} partitions need one;"
                f" restart the appliance with a larger {MOST}"
            )
        for topic_id, index in lacking:
            self._add(topic_id, index)

    def apply(self, change: Change, image: MetadataImage, committed: int) -> None:
        """Follow one change, committed below this offset, which `image` shows."""
        if isinstance(change, PartitionAdded | PartitionChanged):
            self._follow((change.topic_id, change.index), image, committed)
        elif isinstance(change, TopicRemoved):
            self.lacking -= {(change.topic_id, index) for index in range(change.partitions)}
            for index in range(change.partitions):
                if (change.topic_id, index) in self.handles:
                    self._retire((change.topic_id, index), committed)

    def _follow(self, key: tuple[bytes, int], image: MetadataImage, committed: int) -> None:
        topic = image.topics_by_id.get(key[0])
        if topic is None:
            return  # it was removed behind this change, which takes the row
        if self._node_id in topic.partitions[key[1]].replicas:
            self._add(*key)
            return
        self.lacking.discard(key)
        if key in self.handles:
            self._retire(key, committed)

    def _retire(self, key: tuple[bytes, int], offset: int) -> None:
        handle = self.handles.pop(key)
        self._table.retire(handle, offset)
        self._retired.append((offset, handle & ROW_MASK))

    def _let_go(self) -> None:
        """Take the rows that nobody knows of any more."""
        retired = self._retired
        while retired and self.everyone_has(retired[0][0]):
            self._idle.append(retired.popleft()[1])

    def _add(self, topic_id: bytes, index: int) -> None:
        """The row that is retired for the longest time, else one that nobody ever had."""
        if (topic_id, index) in self.handles:
            return
        self._let_go()
        identity = TopicId(topic_id)
        if self._idle:
            handle = self._table.reuse(self._idle.popleft(), identity, index)
        else:
            handle = self._table.add(identity, index)
        if handle == NO_HANDLE:
            if (topic_id, index) not in self.lacking:
                self.lacking.add((topic_id, index))
                self._lacks(len(self.lacking))
            return
        self.lacking.discard((topic_id, index))
        self.handles[topic_id, index] = handle
