"""Guards against sequence gaps: refuses batches of idempotent producers behind one that a dead I/O
process refused.

A producer sends up to five requests ahead. When its first one for a partition is lost with the home
and the second one finds the next life of that, which does not know the producer, the second could
begin anywhere (`logstore/producer_state.py`) and the first would be out of sequence for ever. So
what stands behind the refused one is refused as well, until that is back: a client sends all of
them again, in order.

Bounded twice, because it may never come back here (another node leads, the client gave up): in
number and in time. Nothing is known, and nothing looked at, while nothing was refused. No clock:
times come in, in ns.
"""

from typing import Final, NamedTuple

from appliance.wire.batch_header import (
    BASE_SEQUENCE_AT,
    HEADER_SIZE,
    INT16,
    INT32,
    INT64,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
)
from appliance.wire.produce import Batch

_AHEAD: Final = 5
"""Requests that an idempotent producer may have under way, as Kafka says."""
_PATIENCE_NS: Final = 10_000_000_000
_SEQUENCES: Final = 1 << 31


class _First(NamedTuple):
    """The first refused batch. left: how many more may be refused for its sake."""

    epoch: int
    sequence: int
    left: int


class SequenceGapGuard:
    """any: whether something was refused, not long ago."""

    __slots__ = ("_first", "_until_ns", "any")

    def __init__(self) -> None:
        self._first: dict[tuple[int, bytes, int], _First] = {}
        self._until_ns = 0
        self.any = False

    def refused(self, memory: memoryview, batch: Batch, now_ns: int) -> None:
        """The home of this batch's partition has died with it."""
        if batch.length < HEADER_SIZE:
            return
        producer_id, epoch, sequence = _of(memory, batch.position)
        if producer_id < 0:
            return
        key = producer_id, batch.topic, batch.partition
        known = self._first.get(key)
        if known is None or known.epoch != epoch or not _behind(sequence, known.sequence):
            self._first[key] = _First(epoch, sequence, _AHEAD)
        self._until_ns = now_ns + _PATIENCE_NS
        self.any = True

    def would(self, memory: memoryview, batch: Batch, now_ns: int) -> bool:
        """True if this batch would overtake a refused one that is not back."""
        if now_ns >= self._until_ns:
            self._first.clear()
            self.any = False
            return False
        if batch.length < HEADER_SIZE:
            return False
        producer_id, epoch, sequence = _of(memory, batch.position)
        key = producer_id, batch.topic, batch.partition
        known = self._first.get(key)
        if known is None:
            return False
        if epoch == known.epoch and known.left and _behind(sequence, known.sequence):
            self._first[key] = known._replace(left=known.left - 1)
            return True
        del self._first[key]
        self.any = bool(self._first)
        return False


def _of(memory: memoryview, at: int) -> tuple[int, int, int]:
    """Producer id, epoch and first sequence of the batch there."""
    (producer_id,) = INT64.unpack_from(memory, at + PRODUCER_ID_AT)
    (epoch,) = INT16.unpack_from(memory, at + PRODUCER_EPOCH_AT)
    (sequence,) = INT32.unpack_from(memory, at + BASE_SEQUENCE_AT)
    return producer_id, epoch, sequence


def _behind(sequence: int, first: int) -> bool:
    """Sequences begin again at 0 some day."""
    return 0 < (sequence - first) % _SEQUENCES < _SEQUENCES // 2
