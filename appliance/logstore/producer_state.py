"""The last batches of each idempotent producer, so that a batch sent twice is stored once, and the
open transactions (KIP-98, KIP-360, KIP-890).

Invariant: the state is a function of the batches in the log below `end`; it is rebuilt from a
snapshot and the batches behind it. Hot functions: `check` before a batch is staged, `update` when
it is.
"""

from typing import Final, NamedTuple

from appliance.base.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    PeerError,
)
from appliance.logstore.aborted import Aborted
from appliance.logstore.scan import HeaderFields
from appliance.wire.batch_header import TRANSACTIONAL_BIT
from appliance.wire.markers import Marker

WINDOW: Final = 5
"""Batches remembered per producer: as many as a client may have in flight."""

_SEQUENCES: Final = 1 << 31
"""Sequence numbers run from 0 to 2^31-1 and begin again."""

NO_EPOCH: Final = -1

_GUARD_BITS: Final = 16
"""A guard is a time in ms and, below, a number: so many are given in a millisecond."""

Written = tuple[int, int, int, int]
"""A batch: last sequence (-1 of a coordinator's), last offset, last offset delta, timestamp."""

Change = tuple[int, int, int, int]
"""A transaction began or ended: producer id, first offset, the offset behind its marker or -1 while
it is open, the last stable offset then if it was aborted, else -1."""


class Producer:
    """epoch: the newest seen. batches: newest last. next_sequence: what must follow, 0 in a new
    epoch.

    last_timestamp: of its last batch, as the producer said. last_seen_ms: when that arrived here.
    coordinator_epoch: of who sent its last marker, -1 before there was one.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_seen_ms",
        "last_timestamp",
        "next_sequence",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[Written] = []  # a deque takes five times the memory
        self.next_sequence = 0
        self.last_timestamp = -1
        self.last_seen_ms = 0
        self.coordinator_epoch = -1


class Unverified(NamedTuple):
    """A transaction that a producer says to have begun, while none of it is written. epoch: the
    newest that asked. lowest: the first sequence that it asked to write. adds: by what adds the
    partition to the transaction (KIP-890). since_ms: when it first asked."""

    guard: int
    epoch: int
    lowest: int
    adds: bool
    since_ms: int


class ProducerStates:
    """producers: every one of a partition by its id. open: by the id of its producer, where a
    transaction that has no marker began. unverified: by the id of its producer, one that is not
    known to be open; forgotten when it is, and with every marker. verified: the epoch with which a
    producer may begin one, as its coordinator said unasked; forgotten with every marker. news: what
    became of transactions since somebody who wants to know looked; None while nobody does. counted:
    how many producers are counted of it (`ioproc/requests/producer_limit.py`)."""

    __slots__ = ("_guard", "counted", "news", "open", "producers", "unverified", "verified")

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self.open: dict[int, int] = {}
        self.unverified: dict[int, Unverified] = {}
        self.verified: dict[int, int] = {}
        self.news: list[Change] | None = None
        self.counted = 0
        self._guard = 0

    def size(self) -> int:
        """How many producers it remembers, those included that have asked for a guard only."""
        return len(self.producers) + len(self.unverified)

    def remembers(self, producer_id: int) -> bool:
        """True if it remembers the producer."""
        return producer_id in self.producers or producer_id in self.unverified

    def become(self, other: "ProducerStates") -> None:
        """The log went back to where it had that state."""
        self.producers, self.open = other.producers, other.open
        self.unverified.clear()
        self.verified.clear()
        if self.news is not None:
            self.news.clear()

    def check(self, header: HeaderFields) -> int:
        """Validates epoch and sequence of a produced batch with a producer id.

        Returns -1 when it is new, and the base offset of the original when it is a duplicate of
        one of the producer's last five. Raises PeerError: INVALID_PRODUCER_EPOCH for an epoch that
        was replaced, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, INVALID_TXN_STATE for a plain batch
        inside the producer's transaction. A producer that is not known (any more) may begin
        anywhere, as with Kafka; but not with what stands behind a batch that died with the home
        (`handlers/sequence_gap_guard.py`).
        """
        known = self.producers.get(header[9])
        if known is None:
            if self.unverified:
                self._check_first(header)
            return -1
        epoch, sequence = header[10], header[11]
        if epoch == known.epoch:
            if sequence == known.next_sequence:
                if self.open:
                    self._check_belongs(header)
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
            if self.open:
                self._check_belongs(header)
            return -1
        else:
            expected = 0
        raise PeerError(
            OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header[9]} with epoch {epoch} sent sequence {sequence}, "
            f"{expected} should follow",
        )

    def _check_belongs(self, header: HeaderFields) -> None:
        first = self.open.get(header[9], -1)
        if first >= 0 and not header[5] & TRANSACTIONAL_BIT:
            raise PeerError(
                INVALID_TXN_STATE,
                f"producer {header[9]} sent a batch outside its transaction, which began at offset "
                f"{first}: commit or abort that first",
            )

    def _check_first(self, header: HeaderFields) -> None:
        """Checks that an unknown producer begins its transaction with its first batch."""
        asked = self.unverified.get(header[9])
        if asked is None:
            return
        first = 0 if asked.adds else asked.lowest
        if header[11] > first:
            raise PeerError(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header[9]} began a transaction with sequence {header[11]}, {first} "
                "should be the first",
            )

    def guard(
        self, producer_id: int, epoch: int, sequence: int, guard: int, now_ms: int, *, adds: bool
    ) -> int:
        """Returns 0 if the producer may write in its transaction now, because it is open here or
        `guard` was given for it and holds. Otherwise returns a guard to come back with once the
        coordinator has verified the partition.

        A guard holds until the next marker of the producer, so it is never good for another
        transaction (KIP-890). No two are the same, those of an earlier process included. adds:
        asking adds the partition. The lowest sequence of a producer that is not known is remembered
        in any case: its first batch must have that.
        """
        if producer_id in self.open and self.producers[producer_id].epoch == epoch:
            return 0
        verified = self.verified.get(producer_id) == epoch
        if verified and producer_id in self.producers:
            return 0
        found = self.unverified.get(producer_id)
        if found is None:
            self._guard = max(self._guard + 1, now_ms << _GUARD_BITS)
            found = Unverified(self._guard, epoch, sequence, adds, now_ms)
        elif guard == found.guard:
            return 0
        elif epoch > found.epoch or (epoch == found.epoch and sequence < found.lowest):
            found = Unverified(found.guard, epoch, sequence, adds, found.since_ms)
        self.unverified[producer_id] = found
        return 0 if verified else found.guard

    def check_end(self, producer_id: int, epoch: int, marker: Marker, version: int) -> None:
        """Checks that a coordinator may end the producer's transaction with this epoch.

        version: the transaction's (KIP-890): from 2 on the epoch rises with every marker, and the
        same marker again is harmless once nothing is open. Raises PeerError:
        INVALID_PRODUCER_EPOCH for a marker that comes too late, TRANSACTION_COORDINATOR_FENCED for
        one of a coordinator that another one followed. Guards that were given before end here, even
        if the marker need not be written again.
        """
        self._forget(producer_id)
        known = self.producers.get(producer_id)
        if known is None:
            return
        again = version >= 2 and epoch == known.epoch and producer_id not in self.open
        if (epoch <= known.epoch if version >= 2 else epoch < known.epoch) and not again:
            raise PeerError(
                INVALID_PRODUCER_EPOCH,
                f"a marker with epoch {epoch} of transaction version {version} for producer "
                f"{producer_id}, whose epoch is {known.epoch}: that transaction has ended",
            )
        if marker.coordinator_epoch < known.coordinator_epoch:
            raise PeerError(
                TRANSACTION_COORDINATOR_FENCED,
                f"a marker of coordinator epoch {marker.coordinator_epoch} for producer "
                f"{producer_id}: {known.coordinator_epoch} has written here",
            )

    def _forget(self, producer_id: int) -> None:
        """Drops the verification of a transaction, which its marker ends."""
        self.unverified.pop(producer_id, None)
        self.verified.pop(producer_id, None)

    def has_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> bool:
        """True if the producer's last transaction ended here by a marker with these epochs, so that
        the same marker again changes nothing.
        """
        known = self.producers.get(producer_id)
        return (
            known is not None
            and producer_id not in self.open
            and known.epoch == epoch
            and known.coordinator_epoch == coordinator_epoch
        )

    def update(self, header: HeaderFields, base_offset: int, now_ms: int) -> None:
        """A batch of records with a producer id is in the log now, at `base_offset`."""
        epoch, delta = header[10], header[6]
        known = self.producers.get(header[9])
        if known is None:
            known = self.producers[header[9]] = Producer(epoch)
        elif epoch != known.epoch:
            known.epoch = epoch
            known.batches.clear()
            known.next_sequence = 0
        known.last_timestamp = header[8]
        known.last_seen_ms = now_ms
        if header[5] & TRANSACTIONAL_BIT and header[9] not in self.open:
            self.open[header[9]] = base_offset
            self.unverified.pop(header[9], None)
            if self.news is not None:
                self.news.append((header[9], base_offset, -1, -1))
        last = -1 if header[11] < 0 else (header[11] + delta) % _SEQUENCES
        known.next_sequence = (last + 1) % _SEQUENCES
        batches = known.batches
        batches.append((last, base_offset + delta, delta, header[8]))
        if len(batches) > WINDOW:
            del batches[0]

    def end_transaction(
        self, header: HeaderFields, offset: int, now_ms: int, marker: Marker | None
    ) -> Aborted | None:
        """A control batch with a producer id is in the log now, at `offset`. marker: None when
        compaction has taken it out. What its transaction was, if it was aborted and had records."""
        producer_id, epoch = header[9], header[10]
        known = self.producers.get(producer_id)
        if known is None:
            known = self.producers[producer_id] = Producer(epoch)
        elif epoch != known.epoch:
            known.epoch = epoch
            known.batches.clear()
            known.next_sequence = 0
        known.last_seen_ms = now_ms
        if marker is None:
            return None
        known.last_timestamp = header[8]
        known.coordinator_epoch = marker.coordinator_epoch
        self._forget(producer_id)
        first = self.open.pop(producer_id, -1)
        if first < 0:
            return None
        stable = -1
        if not marker.committed:
            stable = min(self.open.values(), default=offset + 1)
        if self.news is not None:
            self.news.append((producer_id, first, offset + 1, stable))
        return None if marker.committed else (producer_id, first, offset, stable)

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
            if known.last_seen_ms <= oldest and producer_id not in self.open
        ]
        for producer_id in gone:
            del self.producers[producer_id]
        for producer_id, asked in list(self.unverified.items()):
            if asked.since_ms <= oldest:
                del self.unverified[producer_id]
