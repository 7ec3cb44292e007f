"""A coordinator's effects on other partitions once its decision is committed: partitions that a
transaction adds, and the markers that end it in each of its partitions.

Made by a shard, carried out by whoever drives it (`shard.Shard.take_endings`, `take_openings`).
"""

from typing import NamedTuple

Partition = tuple[str, int]
"""Topic and partition."""


class PartitionsAdded(NamedTuple):
    """A producer may write in these partitions with this epoch, until its next marker there."""

    producer_id: int
    epoch: int
    partitions: frozenset[Partition]


class Ending(NamedTuple):
    """A decided transaction whose markers are to be written. number: of this ending, in this
    coordinator. epoch: of the markers' producer. version: transaction.version to check them by."""

    number: int
    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    coordinator_epoch: int
    version: int
    partitions: tuple[Partition, ...]
