"""Where the replicas here are, as the controller is to know it: in which log folder, or LOST.

A replica is LOST (KIP-858) while it cannot follow or lead: its log failed or could not be opened,
or its folder has no room and somebody else can lead. The controller then has it in sync no more,
and elects. When it is back, control is told the folder that it lies in; so it is when the metadata
name one that this node has no more, after a lost disk: who lies there is not elected. Invariant:
whatever the metadata says otherwise is told again until it does not; the metadata is the answer.
Where no other node has a replica nothing is told: nobody else could lead.

An observer of partitions; `tick` is called by the chores.
"""

from collections.abc import Callable, Sequence
from typing import Final

from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LOST, directory_of, is_assigned
from appliance.metadata.parts import PartitionImage

NOWHERE: Final = -1
"""Stands for a number of a log folder."""
AGAIN_MS: Final = 500
_NOBODY: Final = -1

Folders = Sequence[bytes] | None
"""Ids of log folders."""

Tell = Callable[[int, int], object]
"""(row, number of the log folder or NOWHERE): tells control, or fails to."""


class DirectoryReports:
    """due_ms: when `tick` has something to do, beside folders that get full or empty, and brokers
    that say so."""

    __slots__ = (
        "_image", "_look", "_low", "_node_id", "_own", "_room", "_served", "_tell", "due_ms",
    )  # fmt: skip

    def __init__(
        self, node_id: int, served: ServedPartitions, image: Callable[[], MetadataImage], tell: Tell
    ) -> None:
        self._node_id = node_id
        self._served = served
        self._image = image
        self._tell = tell
        self._look: dict[int, tuple[bytes, int]] = {}  # row → topic id and partition
        self._low = [False for _ in served.spaces]
        self._own: Folders = None  # as this node registered them
        self._room: list[tuple[bool, Folders]] = []  # of each broker, where it counts
        self.due_ms = 0

    # What becomes of partitions -------------------------------------------------------------------

    def opened(self, partition: Partition) -> None:
        """Does nothing: the leader follows."""

    def leads(self, partition: Partition) -> None:
        """The metadata say something new of it."""
        if partition.role.replicas:
            self.compare_folder(partition.handle, partition.topic_id, partition.index)

    def follows(self, partition: Partition) -> None:
        """The metadata say something new of it."""
        if partition.role.replicas:
            self.compare_folder(partition.handle, partition.topic_id, partition.index)

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """Folders are looked at as a whole."""

    def closed(self, partition: Partition) -> None:
        """It failed, or is served no more."""
        self.leads(partition)

    def compare_folder(self, handle: int, topic_id: bytes, index: int) -> None:
        """Compare what is with what the metadata say."""
        self._look[handle] = (topic_id, index)
        self.due_ms = 0
        self._served.stirred = True

    # The clock ------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Tell control what the metadata say otherwise."""
        lows = [space.low for space in self._served.spaces]
        image = self._image()
        room = _told_room(image) if any(lows) else self._room
        registered = image.brokers.get(self._node_id)
        own = None if registered is None else registered.log_dirs
        anew = own != self._own
        if now_ms < self.due_ms and lows == self._low and room == self._room and not anew:
            return
        for number, low in enumerate(lows):
            if low or self._low[number] or anew:
                self._look_at_folder(number, low=low)
        self._low, self._room, self._own = lows, room, own
        for handle, (topic_id, index) in list(self._look.items()):
            topic = image.topics_by_id.get(topic_id)
            if topic is None or not self._differs(handle, topic.partitions[index], image):
                del self._look[handle]
        self.due_ms = now_ms + AGAIN_MS

    def _look_at_folder(self, number: int, *, low: bool) -> None:
        for partition in self._served.partitions.values():
            if partition.directory == number and partition.role.replicas:
                self._look.setdefault(partition.handle, (partition.topic_id, partition.index))
                if not low:
                    self._served.starved.pop(partition.handle, None)

    def _differs(self, handle: int, found: PartitionImage, image: MetadataImage) -> bool:
        """True if the metadata name another folder for this row than its own; then control is
        told.
        """
        if self._node_id not in found.replicas or len(found.replicas) == 1:
            return False
        where = directory_of(found, self._node_id)
        partition = self._served.partitions.get(handle)
        if partition is None or partition.broken is not None:
            number = NOWHERE
            if partition is None and handle not in self._served.refused:
                return False  # it is about to be opened, or gone
        elif partition.space.low and self._may_go(partition, found, where, image):
            number = NOWHERE
        else:
            number = partition.directory
        if where == LOST if number == NOWHERE else self._is_here(where):
            return False
        self._tell(handle, number)
        return True

    def _is_here(self, where: bytes) -> bool:
        """True if the metadata name a folder of this node: the one that it lies in, or the target
        of its move.
        """
        return where in self._own if self._own else is_assigned(where)

    def _may_go(
        self, partition: Partition, found: PartitionImage, where: bytes, image: MetadataImage
    ) -> bool:
        """True if it helps that a replica without room gives up: another node leads and it lags; or
        it leads, and another one in sync has room. Requires all brokers' reports: of three nodes on
        one disk none hands over to the next.
        """
        if found.leader != self._node_id:
            starved = partition.handle in self._served.starved
            return found.leader != _NOBODY and (where == LOST or starved)
        return not _has_room(image, found, self._node_id) and any(
            _has_room(image, found, one) for one in found.isr if one != self._node_id
        )


def _told_room(image: MetadataImage) -> list[tuple[bool, Folders]]:
    """The brokers' reports of their disks: whether each is fenced, and its folders without room."""
    return [(one.fenced, one.cordoned_log_dirs) for one in image.brokers.values()]


def _has_room(image: MetadataImage, found: PartitionImage, node: int) -> bool:
    """As far as a node says."""
    broker = image.brokers.get(node)
    if broker is None or broker.fenced:
        return False
    where = directory_of(found, node)
    return where in broker.log_dirs and where not in (broker.cordoned_log_dirs or ())
