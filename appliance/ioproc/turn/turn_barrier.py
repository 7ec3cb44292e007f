"""The barrier around the end of a turn and around observers: an exception costs one partition.

A partition whose write, sync, row or waiting reads fail, or of which an observer could not be told,
goes offline as after a failed write: what waits is answered with KAFKA_STORAGE_ERROR, and nobody
goes on from a state that may be half changed. Nothing else of the process notices. Called by
`core.py`; `message_barrier.py` is the one around messages.
"""

import errno

from appliance.base.errors import StorageFailed
from appliance.ioproc.partition_failures import PartitionFailures
from appliance.ioproc.partitions.partition import Partition
from appliance.shell.bugs import Bugs


class TurnBarrier:
    """bugs: tells exceptions; without it, as in a simulation, they end everything."""

    __slots__ = ("_failures", "bugs")

    def __init__(self, failures: PartitionFailures) -> None:
        self._failures = failures
        self.bugs: Bugs | None = None

    def confine_bug(self, where: str, partition: Partition, bug: Exception) -> None:
        """Tell an exception and take the partition offline. where: what was being done."""
        self.report_bug(where, bug, partition=partition)
        if partition.broken is None:
            why = f"{where}: {type(bug).__name__}: {bug}"
            self._failures.fail(partition, StorageFailed(str(partition), errno.EIO, why))

    def report_bug(self, where: str, bug: Exception, **fields: object) -> None:
        """Tell an exception that concerns no partition, or one that is gone."""
        if self.bugs is None:
            raise bug
        self.bugs.report(where, bug, **fields)
