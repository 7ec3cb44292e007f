"""What each idempotent producer wrote last, so that a batch sent twice is stored once (KIP-98,
KIP-360).

Invariant: the state is a function of the batches in the log below `end`; it is rebuilt from a
snapshot and the batches behind it. Hot functions: `check` before a batch is staged, `update` when
it is.
"""

from collections import deque
from typing import Final

from appliance.base.errors import (
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PeerError,
)
from appliance.logstore.scan import HeaderFields
from appliance.wire.batch_header import CONTROL_BIT, TRANSACTIONAL_BIT

WINDOW: Final = 5
"""Batches remembered per producer: as many as a client may have in flight."""

_SEQUENCES: Final = 1 << 31
"""Sequence numbers run from 0 to 2^31-1 and begin again."""

NO_EPOCH: Final = -1

Written = tuple[int, int, int, int]
"""A batch: last sequence, last offset, last offset delta, timestamp."""


class Producer:
    """epoch: the newest seen. batches: newest last. next_sequence: what must follow, 0 in a new
    epoch.

    last_timestamp: of its last batch, as the producer said. last_seen_ms: when that arrived here.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_seen_ms",
        "last_timestamp",
        "next_sequence",
        "txn_start",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[Written] = deque(maxlen=WINDOW)
        self.next_sequence = 0
        self.last_timestamp = -1
        self.last_seen_ms = 0
        # Of transactions: epoch of the coordinator of the last marker, where the open one began.
        self.coordinator_epoch = -1
        self.txn_start = -1


class ProducerStates:
    """Every producer of one partition by its id."""

    __slots__ = ("producers",)

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}

    def check(self, header: HeaderFields) -> int:
        """Whether a produced batch with a producer id may be appended.

        Returns -1 when it is new, and the base offset of the original when it is a duplicate of
        one of the producer's last five. Raises PeerError(INVALID_PRODUCER_EPOCH) for an epoch that
        was replaced and PeerError(OUT_OF_ORDER_SEQUENCE_NUMBER) for a gap. A producer that is not
        known (any more) may begin anywhere, as with Kafka.
        """
        known = self.producers.get(header[9])
        if known is None:
            return -1
        epoch, sequence = header[10], header[11]
        if epoch == known.epoch:
            if sequence == known.next_sequence:
                return -1
            last = (sequence + header[6]) % _SEQUENCES
            for last_sequence, last_offset, delta, _ in known.batches:
                if last_sequence == last and delta == header[6]:
                    return last_offset - delta
            expected = known.next_sequence
        elif epoch < known.epoch:
            raise PeerError(
                INVALID_PRODUCER_EPOCH,
                f"producer {header[9]} has epoch {known.epoch}, the batch {epoch}: "
                "another instance of the producer took over",
            )
        elif sequence == 0:
            return -1
        else:
            expected = 0
        raise PeerError(
            OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header[9]} with epoch {epoch} sent sequence {sequence}, "
            f"{expected} should follow",
        )

    def update(self, header: HeaderFields, base_offset: int, now_ms: int) -> None:
        """A batch with a producer id is in the log now, at `base_offset`."""
        epoch, attributes, delta = header[10], header[5], header[6]
        known = self.producers.get(header[9])
        if known is None:
            known = self.producers[header[9]] = Producer(epoch)
        elif epoch != known.epoch:
            known.epoch = epoch
            known.batches.clear()
            known.next_sequence = 0
        known.last_timestamp = header[8]
        known.last_seen_ms = now_ms
        if attributes & CONTROL_BIT:
            known.txn_start = (
                -1
            )  # the marker ends a transaction; its value names the coordinator's epoch
            return
        if attributes & TRANSACTIONAL_BIT and known.txn_start < 0:
            known.txn_start = base_offset
        last = (header[11] + delta) % _SEQUENCES
        known.next_sequence = (last + 1) % _SEQUENCES
        known.batches.append((last, base_offset + delta, delta, header[8]))

    def replay(self, header: HeaderFields, now_ms: int) -> None:
        """`update` while a log is opened: the batch may be part of the state already."""
        known = self.producers.get(header[9])
        if known is not None and known.batches:
            last_offset = known.batches[-1][1]
            if last_offset >= header[0]:
                known.batches.clear()
        self.update(header, header[0], now_ms)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that sent nothing for `expiration_ms` (producer.id.expiration.ms).

        By our clock, not by the records' timestamps: who loads old data is not an old producer.
        """
        oldest = now_ms - expiration_ms
        gone = [
            producer_id
            for producer_id, known in self.producers.items()
            if known.last_seen_ms <= oldest and known.txn_start < 0
        ]
        for producer_id in gone:
            del self.producers[producer_id]
