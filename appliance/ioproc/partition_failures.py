"""Confines a failed file to its partition when it was written or synced, and to the read itself
when read; a replica whose bytes changed is rebuilt if others can do without it.

Invariant: a partition that failed is appended to, synced and read no more; who waits for it was
told. Observers are told by the core, later in the same turn (`news`), so that whoever sees a
failure need not know them. Called by every part that touches files.
"""

import errno
from collections import deque
from collections.abc import Callable
from typing import Final

from appliance.base.errors import KAFKA_STORAGE_ERROR, StorageFailed
from appliance.ioproc.netproc_peer import refusal
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ring.messages import (
    DELETE_RECORDS,
    DELETED,
    DESCRIBE_PRODUCERS,
    EPOCH_END,
    EPOCH_ENDED,
    FOUND,
    LIST_OFFSET,
    LISTED,
    MOVE,
    MOVED,
    PRODUCERS_TOLD,
    READ,
)

ANSWERS: Final = {
    READ: FOUND,
    LIST_OFFSET: LISTED,
    EPOCH_END: EPOCH_ENDED,
    DELETE_RECORDS: DELETED,
    MOVE: MOVED,
    DESCRIBE_PRODUCERS: PRODUCERS_TOLD,
}
"""With what a question is answered."""

OFFLINE: Final = 0
HELD: Final = 1
LOST: Final = 2
REPLACED: Final = 3
"""What became of a partition: it failed, found no room (and what was appended is held, or lost), or
has another log."""

Report = Callable[[Partition, StorageFailed], None]
"""Told once about each partition that goes offline (its log has failed then), and about each file
of it that cannot be read."""


class PartitionFailures:
    """news: what observers are still to be told, in order."""

    __slots__ = ("_report", "_served", "news")

    def __init__(self, served: ServedPartitions, report: Report) -> None:
        self._served = served
        self._report = report
        self.news: deque[tuple[Partition, int]] = deque()

    def fail(self, partition: Partition, failure: StorageFailed) -> None:
        """Take the partition offline: what waits is told now, what comes is refused. What is
        damaged is fetched anew when others do without it."""
        served = self._served
        if failure.errno == errno.EBADMSG and partition.role.replicas:
            served.damaged[partition.handle] = (partition.topic_id, partition.index)
        partition.log.fail(failure)
        partition.fail(failure)
        served.syncing.forget_partition(partition)
        served.rows.offline(partition.handle)
        served.stirred = True  # others can lead as soon as the controller hears of it
        self.refuse_questions(partition, KAFKA_STORAGE_ERROR)
        self.news.append((partition, OFFLINE))
        self._report(partition, failure)

    def unreadable(
        self, partition: Partition, failure: StorageFailed, *, checked: bool = False
    ) -> None:
        """A read failed. Said once about each file: consumers ask again and again. What is not what
        was written takes the partition offline where others have it: they lead, and it is fetched
        anew (`replica_rebuild.py`). checked: a checksum is wrong."""
        if failure.errno == errno.EBADMSG and partition.is_spare(checked=checked):
            self.fail(partition, failure)
        elif failure.path not in partition.unreadable:
            partition.unreadable.add(failure.path)
            self._report(partition, failure)

    def refuse_questions(self, partition: Partition, code: int) -> None:
        """Refuses the requests that wait for the high watermark."""
        for asker, message, _ in partition.asking:
            answer = ANSWERS[message[0]]
            asker.out.append(refusal(answer, code, partition.handle, message[3]))
        partition.asking.clear()
        for read in list(partition.parked.values()):
            self._served.purgatory.take_read(read)
            out = self._served.askers[read.peer].out
            out.append(refusal(FOUND, code, partition.handle, read.token))
