"""The ISR that a leader proposes for a partition (AlterPartition, KIP-497).

Between the partition's home and control it goes as the bytes of ISR_CHANGE. Brokers go with the
epoch under which they fetch, so that who was registered anew meanwhile does not count (KIP-903).
"""

from struct import Struct
from typing import Final, NamedTuple

_HEAD: Final = Struct("<16siiii")  # topic id, partition, leader epoch, partition epoch, count
_MEMBER: Final = Struct("<iq")


class IsrChange(NamedTuple):
    """isr: node id → broker epoch (-1: not known), the leader among them. The epochs are those of
    the metadata that it was decided by."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: dict[int, int]


def encode(change: IsrChange) -> bytes:
    """The payload of ISR_CHANGE."""
    topic_id, partition, leader_epoch, partition_epoch, isr = change
    head = _HEAD.pack(topic_id, partition, leader_epoch, partition_epoch, len(isr))
    return head + b"".join(_MEMBER.pack(*one) for one in isr.items())


def decode(payload: bytes) -> IsrChange:
    """Returns the value that `encode` was given."""
    topic_id, partition, leader_epoch, partition_epoch, count = _HEAD.unpack_from(payload)
    assert len(payload) == _HEAD.size + count * _MEMBER.size, "one process wrote it"
    isr = dict(_MEMBER.iter_unpack(payload[_HEAD.size :]))
    return IsrChange(topic_id, partition, leader_epoch, partition_epoch, isr)
