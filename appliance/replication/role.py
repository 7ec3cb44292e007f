"""The role of this node for one partition, from the metadata.

A value: made from the image for each change, handed to the partition's home, compared by nobody.
"""

from typing import Final, NamedTuple

from appliance.metadata.parts import PartitionImage


class PartitionRole(NamedTuple):
    """leads: whether this node leads. leader: node id, -1: nobody. replicas, isr: the others'
    node ids, without this one. partition_epoch: which change of leader, replicas or ISR this is."""

    leads: bool
    leader: int = -1
    partition_epoch: int = 0
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


ALONE: Final = PartitionRole(leads=True)
"""One node has the only replica."""
ELSEWHERE: Final = PartitionRole(leads=False)
"""Another node leads, it is not said which."""


def role_of(partition: PartitionImage, node_id: int) -> PartitionRole:
    """The role of this node."""
    return PartitionRole(
        partition.leader == node_id,
        partition.leader,
        partition.partition_epoch,
        tuple(one for one in partition.replicas if one != node_id),
        tuple(one for one in partition.isr if one != node_id and one in partition.replicas),
    )
