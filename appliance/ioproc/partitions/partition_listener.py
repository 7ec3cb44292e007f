"""The listener for partition events of those beside partitions: coordinators, moves.

Invariant: everybody in the core's list is told, in the list's order, on the loop's thread and in
the turn in which it happened; `opened` comes first and `closed` last, and a second `closed` may
come when a partition that failed is let go. Called by the core.
"""

from typing import Protocol

from appliance.ioproc.partitions.partition import Partition


class PartitionListener(Protocol):
    """A listener for the lifecycle of partitions."""

    def opened(self, partition: Partition) -> None:
        """It is served from now on; whether it leads is told next."""
        ...

    def leads(self, partition: Partition) -> None:
        """This node leads it, in `partition.leader_epoch`; told again for each later epoch."""
        ...

    def follows(self, partition: Partition) -> None:
        """Another node leads it."""
        ...

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """The disk is full: what was appended is held until there is room, or lost: what the
        appliance itself had to say was not even staged."""
        ...

    def closed(self, partition: Partition) -> None:
        """Its log failed, is another one now, or it is served no more."""
        ...
