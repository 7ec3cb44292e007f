"""Detects a failed log folder: probes it with a small file when a partition in it has failed.

One bad sector costs one partition (`partition_failures.py`); a folder that takes no new file any
more costs all of them, also those that nobody writes to. Invariant: a folder that failed is told to
control until the metadata say so (KIP-858), or control has ended for it. Where no other node has a
replica nothing is asked.

An observer of partitions; `tick` is called by the chores.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from appliance.base.disk import PAGE, Disk, write_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.ioproc.partitions.partition import Partition
from appliance.shell.flusher import Threads
from appliance.shell.log import ERROR, Log

AGAIN_MS: Final = 500
_PROBE: Final = "penstock.probe"


class FolderProbe:
    """offline: numbers of the folders that failed."""

    __slots__ = ("_again_ms", "_asked", "_disk", "_doubted", "_events", "_name", "_paths",
                 "_tell", "_threads", "_told", "offline")  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        paths: Sequence[str],
        me: int,
        threads: Threads,
        told: Callable[[int], bool],
        tell: Callable[[int], object],
        events: Log,
    ) -> None:
        """me: number of this I/O process. told: whether the metadata say that this folder is
        offline. tell: tells control, or fails to."""
        self._disk = disk
        self._paths = paths
        self._name = f"{_PROBE}.{me}"
        self._threads = threads
        self._told = told
        self._tell = tell
        self._events = events
        self._doubted: dict[int, None] = {}
        self._again_ms = 0
        self._asked = 0
        self.offline: dict[int, None] = {}

    @property
    def busy(self) -> bool:
        """True while a folder is suspected or probed."""
        return bool(self._doubted or self._asked)

    # What becomes of partitions -------------------------------------------------------------------

    def opened(self, partition: Partition) -> None:
        """Its folder serves."""

    def leads(self, partition: Partition) -> None:
        """That says nothing of its folder."""

    def follows(self, partition: Partition) -> None:
        """That says nothing of its folder."""

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """A full disk is no failure."""

    def closed(self, partition: Partition) -> None:
        """Perhaps it failed."""
        if partition.broken is not None and partition.role.replicas:
            self._doubted[partition.directory] = None

    # The clock ------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Take what was found, ask what is doubted."""
        for done in self._threads.take_ended():
            self._asked -= 1
            (number,) = done.tag
            failure = done.failure
            if failure is not None and not isinstance(failure, StorageFailed):
                raise failure
            if failure is not None and not isinstance(failure, DiskFull):
                self.offline[number] = None
                self._again_ms = 0
                self._events.event(
                    ERROR, "log-dir-failed", folder=self._paths[number], cause=failure
                )
        while self._doubted:
            number, _ = self._doubted.popitem()
            if number not in self.offline:
                path = f"{self._paths[number]}/{self._name}"
                self._threads.submit((number,), partial(probe, self._disk, path))
                self._asked += 1
        if self.offline and now_ms >= self._again_ms:
            self._again_ms = now_ms + AGAIN_MS
            for number in self.offline:
                if not self._told(number):
                    self._tell(number)


def probe(disk: Disk, path: str) -> None:
    """Write a file, see it on the disk, remove it. Raises StorageFailed."""
    write_file(disk, path, bytes(PAGE))
    disk.unlink(path)
