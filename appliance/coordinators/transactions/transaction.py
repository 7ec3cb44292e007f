"""The state of one transactional id, and each step that it may take.

Invariant: a Transaction is a value; every step makes the next one and is in the table of moves.
Epochs follow KIP-890: from transaction version 2 on each transaction ends with the epoch raised, so
a write that comes late is of an older one. Callers: the decisions of this room; replay.
"""

from typing import Final, NamedTuple

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.coordinators.runtime.transaction_effects import Partition
from appliance.coordinators.transactions.records import TransactionLogValue
from appliance.coordinators.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    MOVES,
    NAMES,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    PREPARED,
    RESTING,
)

"""Topic and index."""

NO_EPOCH: Final = -1
NO_ID: Final = -1
LAST_EPOCH: Final = (1 << 15) - 1
EPOCH_RISES: Final = 2
"""transaction.version from which on every transaction ends with a new epoch."""
UNLIMITED_MS: Final = (1 << 31) - 1
"""The timeout of a transaction that another coordinator decides (KIP-939): it has none."""


def exhausted(epoch: int) -> bool:
    """True if a producer id has no epoch left to give: the last one is kept for fencing."""
    return epoch >= LAST_EPOCH - 1


class Transaction(NamedTuple):
    """previous_id: producer id before the last step. next_id: what follows the present one when
    this transaction has ended, or -1. epoch: -1 before the first InitProducerId. version:
    transaction.version that its client works by. Times in ms, started_ms -1 while nothing is open.
    """

    producer_id: int
    previous_id: int
    next_id: int
    epoch: int
    timeout_ms: int
    state: int
    partitions: frozenset[Partition]
    started_ms: int
    updated_ms: int
    version: int

    @property
    def committed(self) -> bool:
        """True if the decided transaction commits, False if it aborts."""
        assert self.state in (PREPARE_COMMIT, COMPLETE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT)
        return self.state in (PREPARE_COMMIT, COMPLETE_COMMIT)

    # Steps ----------------------------------------------------------------------------------------

    def initialized(
        self, producer_id: int, epoch: int, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        """A producer takes the id over, or goes on with it."""
        assert epoch < LAST_EPOCH, "what is written with that no marker can end"
        return self._to(
            EMPTY,
            now_ms,
            producer_id=producer_id,
            epoch=epoch,
            timeout_ms=timeout_ms,
            started_ms=-1,
        )

    def with_partitions(
        self, more: frozenset[Partition], version: int, now_ms: int
    ) -> "Transaction":
        """Partitions belong to the open transaction, which begins with the first of them."""
        started = now_ms if self.state in RESTING else self.started_ms
        partitions = more if self.state in RESTING else self.partitions | more
        return self._to(ONGOING, now_ms, partitions=partitions, started_ms=started, version=version)

    def fenced(self, now_ms: int) -> "Transaction":
        """Its producer may write no more: an abort without it follows, with a new epoch."""
        return self._to(PREPARE_EPOCH_FENCE, now_ms, epoch=min(self.epoch + 1, LAST_EPOCH))

    def decided(self, *, commit: bool, version: int, next_id: int, now_ms: int) -> "Transaction":
        """It will be committed, or aborted, whatever happens. next_id: a new producer id when the
        epochs of this one are used up, else -1."""
        raised = version >= EPOCH_RISES and self.state != PREPARE_EPOCH_FENCE
        return self._to(
            PREPARE_COMMIT if commit else PREPARE_ABORT,
            now_ms,
            epoch=min(self.epoch + 1, LAST_EPOCH) if raised else self.epoch,
            partitions=frozenset() if self.state in RESTING else self.partitions,
            started_ms=now_ms if self.state in RESTING else self.started_ms,
            next_id=next_id,
            version=version,
        )

    def completed(self, now_ms: int) -> "Transaction":
        """All markers are written."""
        goes_on = self.next_id == NO_ID
        return self._to(
            COMPLETE_COMMIT if self.state == PREPARE_COMMIT else COMPLETE_ABORT,
            now_ms,
            producer_id=self.producer_id if goes_on else self.next_id,
            epoch=self.epoch if goes_on else 0,
            partitions=frozenset(),
            next_id=NO_ID,
        )

    def _to(
        self,
        state: int,
        now_ms: int,
        *,
        producer_id: int | None = None,
        epoch: int | None = None,
        timeout_ms: int | None = None,
        partitions: frozenset[Partition] | None = None,
        started_ms: int | None = None,
        next_id: int | None = None,
        version: int | None = None,
    ) -> "Transaction":
        assert state in MOVES[self.state], (NAMES[self.state], NAMES[state])
        made = Transaction(
            producer_id=self.producer_id if producer_id is None else producer_id,
            previous_id=self.producer_id,
            next_id=self.next_id if next_id is None else next_id,
            epoch=self.epoch if epoch is None else epoch,
            timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms,
            state=state,
            partitions=self.partitions if partitions is None else partitions,
            started_ms=self.started_ms if started_ms is None else started_ms,
            updated_ms=max(now_ms, self.updated_ms),
            version=self.version if version is None else version,
        )
        assert made.state not in RESTING or not made.partitions
        assert made.epoch >= self.epoch or made.producer_id != self.producer_id, "epochs only rise"
        assert made.next_id == NO_ID or made.state in PREPARED
        return made


def first(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """A transactional id that nobody knew; its first InitProducerId gives it epoch 0."""
    return Transaction(
        producer_id=producer_id,
        previous_id=NO_ID,
        next_id=NO_ID,
        epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        state=EMPTY,
        partitions=frozenset(),
        started_ms=-1,
        updated_ms=now_ms,
        version=0,
    )


def of_record(value: TransactionLogValue) -> Transaction:
    """The Transaction in a record. Raises PeerError(CORRUPT_MESSAGE) for a state that is never
    recorded.
    """
    state = value.transaction_status
    if state not in RESTING and state not in PREPARED and state != ONGOING:
        raise PeerError(CORRUPT_MESSAGE, f"a transactional id in state {state}")
    topics = () if state == EMPTY else value.transaction_partitions or ()
    return Transaction(
        producer_id=value.producer_id,
        previous_id=value.previous_producer_id,
        next_id=value.next_producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout,
        state=state,
        partitions=frozenset((one.topic, index) for one in topics for index in one.partition_ids),
        started_ms=value.start_timestamp,
        updated_ms=value.last_update_timestamp,
        version=value.client_transaction_version,
    )
