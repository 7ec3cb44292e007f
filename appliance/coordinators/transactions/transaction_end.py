"""How transactions end: EndTxn (26), an abort without the producer, markers, expiry.

EndTxn, versions 0 to 5. 2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH. 4:
TRANSACTION_ABORTABLE. 5: the answer carries the producer's next id and epoch (KIP-890).

A transaction is decided by one record; from then on it will end like that, whatever dies. Its
markers are handed out (`TransactionShard.take_endings`) and the last one that is written completes
it. Invariant: `unmarked` is not empty while an id is PREPARED and its markers are handed out.
"""

from typing import Any

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.transaction_effects import Ending, Partition
from appliance.coordinators.transactions.answers import answered, code_for
from appliance.coordinators.transactions.delayed_requests import TooEarly, WaitingRequest, resume
from appliance.coordinators.transactions.records import TransactionLogKey
from appliance.coordinators.transactions.state import TransactionalId, Turn, move_transaction
from appliance.coordinators.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    MOVES,
    NAMES,
    ONGOING,
    PREPARED,
    RESTING,
)
from appliance.coordinators.transactions.transaction import (
    EPOCH_RISES,
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    Transaction,
    exhausted,
)

_RISING_SINCE = 5


def end_transaction(turn: Turn, call: Call, request: Any) -> None:
    """EndTxn. One that comes while markers are pending waits for them."""
    try:
        _end(turn, call, request)
    except TooEarly as early:
        WaitingRequest(call, request, turn.now_ms, _end, end_refused).wait(turn, early.wanted)


def _end(turn: Turn, call: Call, request: Any) -> None:
    version = EPOCH_RISES if call.version >= _RISING_SINCE else 0
    known = turn.state.known.get(request.transactional_id)
    if known is None:
        raise PeerError(
            errors.INVALID_PRODUCER_ID_MAPPING,
            f"there is no transactional id {request.transactional_id}",
        )
    judge = _risen if version >= EPOCH_RISES else _plain
    found = known.transaction
    who = request.transactional_id, found, request.producer_id, request.producer_epoch
    if judge(*who, request.committed):
        _decide(turn, known, commit=request.committed, version=version)
        found = known.transaction
        if found.next_id != NO_ID:  # the last epoch of the old id is nobody's but the markers'
            found = found._replace(producer_id=found.next_id, epoch=0)
    spent = version >= EPOCH_RISES and found.epoch == LAST_EPOCH
    assert not spent, "what is written with that no marker can end"
    turn.answer(
        call,
        answered(errors.NONE, producer_id=found.producer_id, producer_epoch=found.epoch),
    )


def end_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """An EndTxn that changed nothing."""
    return answered(code_for(code, call, 2))


def _plain(name: str, found: Transaction, producer_id: int, epoch: int, commit: bool) -> bool:
    """True if a client of transaction.version 0 or 1 ends its transaction now; False if it has
    already ended like that. Raises PeerError.
    """
    if found.producer_id != producer_id:
        raise _not_its(found)
    if found.epoch != epoch:
        raise _fenced(found)
    if found.state in PREPARED:
        raise TooEarly(name)
    if found.state == ONGOING:
        return True
    if found.state == (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
        return False
    raise _nothing_open(found)


def _risen(name: str, found: Transaction, producer_id: int, epoch: int, commit: bool) -> bool:
    """As `_plain`, for a client whose epoch rises with each transaction: with the epoch before it
    asks again, with the present one it asks for the next end, and may abort what it did not
    begin. While markers are pending neither the producer id nor the epoch is judged, because a
    client may ask for the next end before them, under the producer id that follows."""
    if found.state in PREPARED:
        raise TooEarly(name)
    overflowed = (
        found.previous_id == producer_id and epoch == LAST_EPOCH - 1 and found.epoch == 0
    ) and found.state in (COMPLETE_COMMIT, COMPLETE_ABORT)
    again = found.epoch == epoch + 1 or overflowed
    current = found.epoch == epoch
    if found.state in (EMPTY, ONGOING):
        sound, again = current, False
    else:
        sound = again or current
    if found.producer_id != producer_id and not overflowed:
        raise _not_its(found)
    if not sound:
        raise _fenced(found)
    if found.state == ONGOING:
        return True
    if again:
        if found.state == (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
            return found.epoch == LAST_EPOCH  # it was fenced, and goes on with another id
    elif not commit:
        return True
    raise _nothing_open(found)


def _not_its(found: Transaction) -> PeerError:
    return PeerError(
        errors.INVALID_PRODUCER_ID_MAPPING,
        f"the transactional id has producer id {found.producer_id}",
    )


def _fenced(found: Transaction) -> PeerError:
    return PeerError(
        errors.PRODUCER_FENCED,
        f"the transactional id has epoch {found.epoch}: another producer took it over",
    )


def _nothing_open(found: Transaction) -> PeerError:
    return PeerError(
        errors.INVALID_TXN_STATE, f"in state {NAMES[found.state]} it cannot be ended like that"
    )


# Deciding -----------------------------------------------------------------------------------------


def fence(turn: Turn, known: TransactionalId) -> None:
    """Abort an open transaction without its producer, who is of an older epoch from now on."""
    version, before = turn.state.version, known.transaction
    decided = before.fenced(turn.wall_ms).decided(
        commit=False, version=version, next_id=NO_ID, now_ms=turn.wall_ms
    )
    # As after an end by the producer itself: it may go on, if nobody has taken the id over.
    known.last_epoch = before.epoch if version >= EPOCH_RISES else NO_EPOCH
    _prepare(turn, known, decided)


def _decide(turn: Turn, known: TransactionalId, *, commit: bool, version: int) -> None:
    before = known.transaction
    next_id = NO_ID
    if version >= EPOCH_RISES and exhausted(before.epoch):
        next_id = turn.state.fresh_id()
    decided = before.decided(commit=commit, version=version, next_id=next_id, now_ms=turn.wall_ms)
    if version >= EPOCH_RISES:
        known.last_epoch = before.epoch
    _prepare(turn, known, decided)


def _prepare(turn: Turn, known: TransactionalId, decided: Transaction) -> None:
    move_transaction(turn, known.transactional_id, decided)
    hand_out(turn, known)


def hand_out(turn: Turn, known: TransactionalId) -> None:
    """Its markers are to be written, in those of its partitions that there still are."""
    state, decided = turn.state, known.transaction
    topics = state.image.topics_by_name
    there = sorted(
        one
        for one in decided.partitions
        if (topic := topics.get(one[0])) is not None and 0 <= one[1] < len(topic.partitions)
    )
    known.unmarked = set(there)
    if not there:
        _complete(turn, known)
        return
    state.ended += 1
    known.ending = state.ended
    state.endings.append(
        Ending(
            known.ending,
            known.transactional_id,
            decided.producer_id,
            decided.epoch,
            decided.committed,
            state.epoch,
            decided.version,
            tuple(there),
        )
    )


def marked(turn: Turn, ending: Ending, partitions: tuple[Partition, ...]) -> None:
    """Markers are written in these partitions, durably; the last one completes the transaction.
    What is of an ending that is over is not heard."""
    known = turn.state.known.get(ending.transactional_id)
    if known is None:
        return
    same = known.ending == ending.number and turn.state.epoch == ending.coordinator_epoch
    if not same or known.transaction.state not in PREPARED:
        return
    known.unmarked.difference_update(partitions)
    if not known.unmarked:
        _complete(turn, known)


def _complete(turn: Turn, known: TransactionalId) -> None:
    move_transaction(turn, known.transactional_id, known.transaction.completed(turn.wall_ms))
    resume(turn, known.transactional_id)


def forget_topic(turn: Turn, name: str) -> None:
    """Its partitions need no markers any more."""
    for known in list(turn.state.known.values()):
        gone = {one for one in known.unmarked if one[0] == name}
        if gone and known.transaction.state in PREPARED:
            known.unmarked -= gone
            if not known.unmarked:
                _complete(turn, known)


# Time ---------------------------------------------------------------------------------------------


def due(turn: Turn, known: TransactionalId) -> None:
    """The deadline of an id has come: abort what is open, forget what rests."""
    if known.transaction.state == ONGOING:
        fence(turn, known)
    elif known.transaction.state in RESTING:
        assert DEAD in MOVES[known.transaction.state]
        turn.write_record(TransactionLogKey(transactional_id=known.transactional_id), None)
