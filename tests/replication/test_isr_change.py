"""What a leader proposes, and what the metadata says of a node's part in a partition."""

from appliance.metadata.parts import PartitionImage
from appliance.replication import isr_change
from appliance.replication.isr_change import IsrChange
from appliance.replication.role import PartitionRole, role_of


def image(leader, replicas, isr):
    return PartitionImage(
        index=0, leader=leader, leader_epoch=5, partition_epoch=9, replicas=replicas, isr=isr
    )


def test_a_proposal_crosses_the_ring_as_it_was():
    for isr in ({}, {1: -1}, {1: 2**62, 3: 7, 2: -1}):
        change = IsrChange(bytes(range(16)), 70_000, 5, 2**31 - 1, isr)
        assert isr_change.decode(isr_change.encode(change)) == change
        assert list(isr_change.decode(isr_change.encode(change)).isr) == list(isr), "in its order"


def test_a_role_names_the_others():
    partition = image(2, (3, 1, 2), (2, 3))
    assert role_of(partition, 2) == PartitionRole(True, 2, 9, (3, 1), (3,))
    assert role_of(partition, 1) == PartitionRole(False, 2, 9, (3, 2), (2, 3))
    assert role_of(image(-1, (1,), (1,)), 1) == PartitionRole(False, -1, 9, (), ())
