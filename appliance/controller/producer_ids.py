"""Hand out producer ids in blocks (KIP-730), so that a restart never gives one twice.

A block is taken by a ProducerIdsRecord; only when that is committed are its ids given away. Ids of
a block that were not given before a restart are lost, which is harmless: there are 2^63.
"""

from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.broker_states import check_broker_epoch
from appliance.controller.decision import Record, Situation
from appliance.wire import kraft_records as kraft

BLOCK: Final = 1000
_LAST: Final = 2**63 - 1


def allocate_block(situation: Situation) -> tuple[list[Record], int]:
    """The record that takes the next block for this node, and the first of its BLOCK ids."""
    broker = situation.image.brokers.get(situation.node_id)
    return _next_block(situation, situation.node_id, broker.epoch if broker else -1)


def allocate_block_for(
    situation: Situation, broker_id: int, broker_epoch: int
) -> tuple[list[Record], int]:
    """The same for a broker that asks (AllocateProducerIds, API key 67, version 0). Raises
    PeerError, STALE_BROKER_EPOCH among others."""
    check_broker_epoch(situation.image, broker_id, broker_epoch)
    return _next_block(situation, broker_id, broker_epoch)


def _next_block(
    situation: Situation, broker_id: int, broker_epoch: int
) -> tuple[list[Record], int]:
    first = situation.image.next_producer_id
    if first > _LAST - BLOCK:
        raise PeerError(errors.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
    record = kraft.ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK
    )
    return [record], first


class ProducerIdBlocks:
    """The block that is being given out; `allocate_block` refills it, or another controller."""

    __slots__ = ("_end", "_given", "_next")

    def __init__(self) -> None:
        self._next = self._end = 0
        self._given = False

    @property
    def left(self) -> int:
        """Returns the ids left of a block that another controller allocated."""
        return self._end - self._next if self._given else 0

    def add_block(self, first: int, count: int) -> None:
        """Another node, which leads, has committed that this block is taken for us."""
        self._next, self._end, self._given = first, first + count, True

    def take_id(self, situation: Situation) -> tuple[list[Record], int]:
        """A producer id nobody had, and the record it depends on when a block had to be taken."""
        records: list[Record] = []
        taken = situation.image.next_producer_id  # of blocks whose record was replayed
        if self._next == self._end or (self._end > taken and not self._given):
            records, self._next = allocate_block(situation)
            self._end, self._given = self._next + BLOCK, False
        self._next += 1
        return records, self._next - 1

    def block(self, situation: Situation) -> tuple[list[Record], int]:
        """`allocate_block`, for somebody else to give out."""
        records, first = allocate_block(situation)
        if first < self._end:  # the record that took ours never came true
            self._next = self._end = 0
        return records, first
