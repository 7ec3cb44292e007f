"""Log start offsets on their way to the disk: many moves share one write of the checkpoint file,
and a thread waits for it.

Invariant: who moved a log start is told when a checkpoint that says so is durable, and not before;
one checkpoint is under way at a time, and what moves meanwhile is in the next one. Driven by
`housekeeping.py` and once per turn by the shell.
"""

import errno
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.checkpoints import Offsets
from appliance.ioproc.partitions.partition import Partition
from appliance.shell.bugs import Bugs
from appliance.shell.flusher import Threads

A_JOB: Final = 256
"""So many partitions are in one checkpoint: that many are told in one turn."""

Told = Callable[[StorageFailed | None], None]
"""Called when it is durable, or with what kept it from being so."""


class LogStartCheckpoint:
    """threads: a single one, for nothing else. paths: of the log folders. trimmed: partitions of
    which whole segments may lie below the log start now. bugs: tells exceptions; without it they
    end everything."""

    __slots__ = ("_disk", "_paths", "_threads", "_under_way", "_waiting", "bugs", "trimmed")

    def __init__(self, disk: Disk, threads: Threads, paths: Sequence[str]) -> None:
        self.bugs: Bugs | None = None
        self._disk = disk
        self._threads = threads
        self._paths = paths
        self.trimmed: dict[Partition, None] = {}
        self._waiting: dict[Partition, list[Told]] = {}
        self._under_way: dict[Partition, list[Told]] = {}

    @property
    def busy(self) -> bool:
        """True while a checkpoint is being written."""
        return bool(self._under_way)

    def add(self, partition: Partition, told: Told) -> None:
        """Make its log start durable; it is `start_unsaved` until it is."""
        self.trimmed[partition] = None
        self._waiting.setdefault(partition, []).append(told)

    def drop(self, partition: Partition) -> None:
        """The partition is deleted, all of its records with it."""
        self.trimmed.pop(partition, None)
        for told in self._waiting.pop(partition, ()):
            self._tell(partition, told, None)

    def trim_next(self) -> None:
        """Tell whose checkpoint was written, begin the next one."""
        for done in self._threads.take_ended():
            told, self._under_way = self._under_way, {}
            failure = self._failure_of(done.failure)
            for partition, all_of_it in told.items():
                if failure is None and partition not in self._waiting:
                    partition.start_unsaved = False
                for tell in all_of_it:
                    self._tell(partition, tell, failure)
        if self._waiting and not self._under_way:
            by_path: dict[str, Offsets] = {}
            for each in list(self._waiting)[:A_JOB]:
                self._under_way[each] = self._waiting.pop(each)
                key = (each.topic, each.index)
                by_path.setdefault(self._paths[each.directory], {})[key] = each.log.log_start_offset
            self._threads.submit((), partial(_write, self._disk, by_path))

    def _failure_of(self, raised: Exception | None) -> StorageFailed | None:
        """Why the checkpoint is not durable: an exception nobody expected is a reason, too."""
        if raised is None or isinstance(raised, StorageFailed):
            return raised
        if self.bugs is None:
            raise raised
        self.bugs.report("checkpoint of log starts", raised)
        why = f"{type(raised).__name__}: {raised}"
        return StorageFailed(checkpoints.LOG_START, errno.EIO, why)

    def _tell(self, partition: Partition, told: Told, failure: StorageFailed | None) -> None:
        """The others are told though one of them raises."""
        try:
            told(failure)
        except Exception as bug:
            if self.bugs is None:
                raise
            self.bugs.report("telling of a log start", bug, partition=partition)

    def wait(self) -> None:
        """Return when no checkpoint is being written."""
        while self._under_way:
            self._threads.wait()
            self.trim_next()

    def finish_trims(self) -> None:
        """Return when all of them are durable, or failed."""
        self.trim_next()
        self.wait()


def _write(disk: Disk, by_path: dict[str, Offsets]) -> None:
    for path, offsets in by_path.items():
        checkpoints.merge(disk, path, checkpoints.LOG_START, offsets)
