"""InitProducerId (22) of a transactional id: versions 0 to 5.

3: the producer's present id and epoch, to go on after an error (KIP-360). 4: PRODUCER_FENCED
instead of INVALID_PRODUCER_EPOCH. 5: TRANSACTION_ABORTABLE. Who asks takes the id over: an open
transaction is aborted first, and its end is waited for.
"""

from datetime import timedelta
from typing import Any

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.bounds import TRANSACTIONAL_IDS
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.transactions.answers import answered, code_for
from appliance.coordinators.transactions.delayed_requests import TooEarly
from appliance.coordinators.transactions.state import (
    ID_BYTES,
    TransactionalId,
    Turn,
    lacks_bytes,
    move_transaction,
    refuse,
)
from appliance.coordinators.transactions.states import ONGOING, PREPARED
from appliance.coordinators.transactions.transaction import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    Transaction,
    exhausted,
    first,
)
from appliance.coordinators.transactions.transaction_end import fence

_MS = timedelta(milliseconds=1)
Expected = tuple[int, int]
"""Producer id and epoch that the asking producer has."""


def init(turn: Turn, call: Call, request: Any) -> None:
    """InitProducerId."""
    state = turn.state
    timeout_ms = request.transaction_timeout // _MS
    expected = _expected(request)
    if not 0 < timeout_ms <= state.settings.max_timeout_ms:
        raise PeerError(
            errors.INVALID_TRANSACTION_TIMEOUT,
            f"a transaction timeout of {timeout_ms} ms is above transaction.max.timeout.ms="
            f"{state.settings.max_timeout_ms}, or not above 0",
        )
    known = state.known.get(request.transactional_id)
    if known is None:
        _check_room(turn, request.transactional_id)
        found = first(turn.state.fresh_id(), timeout_ms, turn.wall_ms)
    else:
        found = known.transaction
        _check(found, expected, request.transactional_id)
        if found.state == ONGOING:
            fence(turn, known)
            init(turn, call, request)  # goes on when that is aborted
            return
    producer_id, epoch, last_epoch = _next(turn, found, known, expected)
    made = found.initialized(producer_id, epoch, timeout_ms, turn.wall_ms)
    move_transaction(turn, request.transactional_id, made).last_epoch = last_epoch
    turn.answer(call, answered(errors.NONE, producer_id=producer_id, producer_epoch=epoch))


def init_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """An InitProducerId that gave nothing."""
    return answered(code_for(code, call, 4))


def _expected(request: Any) -> Expected | None:
    producer_id = getattr(request, "producer_id", NO_ID)
    epoch = getattr(request, "producer_epoch", NO_EPOCH)
    if (producer_id == NO_ID) != (epoch == NO_EPOCH):
        raise PeerError(errors.INVALID_REQUEST, "a producer id comes with its epoch")
    return None if producer_id == NO_ID else (producer_id, epoch)


def _check_room(turn: Turn, transactional_id: str) -> None:
    """Raises PeerError(POLICY_VIOLATION), fatal to producers, where one more is too many."""
    room = turn.state.room
    if room.is_full():
        what = f"{room.most} transactional ids are kept"
        raise refuse(turn, TRANSACTIONAL_IDS, transactional_id, what, errors.POLICY_VIOLATION)
    if room.lacks(ID_BYTES + len(transactional_id)):
        raise lacks_bytes(turn, transactional_id, errors.POLICY_VIOLATION)


def _check(found: Transaction, expected: Expected | None, transactional_id: str) -> None:
    """Checks that the asking producer may go on with this id."""
    if found.state in PREPARED:
        raise TooEarly(transactional_id)
    if expected is None:
        return
    producer_id, epoch = expected
    rotated = producer_id == found.previous_id and exhausted(epoch)
    if producer_id != found.producer_id and not rotated:
        raise _fenced(found)
    # Kafka aborts the transaction before it looks at the epoch, and then fences both producers.
    if found.state == ONGOING and expected != (found.producer_id, found.epoch):
        raise _fenced(found)


def _next(
    turn: Turn, found: Transaction, known: TransactionalId | None, expected: Expected | None
) -> tuple[int, int, int]:
    """Producer id, epoch, and the epoch before that a repeated request may name."""
    epoch = found.epoch
    asked = NO_EPOCH if expected is None else expected[1]
    # Behind the fence that used up the last epoch nobody else has taken over: it goes on.
    fenced = epoch == LAST_EPOCH and known is not None and asked == known.last_epoch
    if exhausted(epoch) and (expected is None or asked == epoch or fenced):
        return turn.state.fresh_id(), 0, asked
    if expected is None:
        return found.producer_id, epoch + 1, NO_EPOCH
    if epoch in (NO_EPOCH, asked):
        return found.producer_id, epoch + 1, epoch
    if known is not None and asked == known.last_epoch:
        return found.producer_id, epoch, known.last_epoch
    raise _fenced(found)


def _fenced(found: Transaction) -> PeerError:
    return PeerError(
        errors.PRODUCER_FENCED,
        f"the transactional id has producer {found.producer_id} with epoch {found.epoch}",
    )
