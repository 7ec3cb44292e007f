"""The effect of each record on a state: the only code that changes durable state.

A step that was just decided comes as the Transaction that its bytes were made of.
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.coordinators.transactions.records import TransactionLogKey, TransactionLogValue
from appliance.coordinators.transactions.state import (
    ID_BYTES,
    PARTITION_BYTES,
    TransactionalId,
    TransactionsState,
)
from appliance.coordinators.transactions.transaction import Transaction, of_record


def _transaction(
    state: TransactionsState,
    key: TransactionLogKey,
    value: TransactionLogValue | Transaction | None,
) -> None:
    if value is None:
        gone = state.known.pop(key.transactional_id, None)
        if gone is not None:
            state.count_bytes(gone, 0)
        return
    transaction = value if isinstance(value, Transaction) else of_record(value)
    known = state.known.get(key.transactional_id)
    if known is None:
        known = TransactionalId(key.transactional_id, transaction, state.due)
        state.known[key.transactional_id] = known
    known.transaction = transaction
    partitions = len(transaction.partitions) * PARTITION_BYTES
    held = ID_BYTES + len(key.transactional_id) + partitions
    if held != known.held_bytes:
        state.count_bytes(known, held)


APPLY: Final[dict[type, Callable[[TransactionsState, Any, Any], None]]] = {
    TransactionLogKey: _transaction
}
"""By the class of the record's key."""
