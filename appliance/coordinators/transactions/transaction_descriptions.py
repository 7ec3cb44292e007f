"""DescribeTransactions (65), version 0, and ListTransactions (66), versions 0 to 2.

ListTransactions 1: only those that have been open for longer (KIP-994). 2: only ids that an
expression of RE2 fits (KIP-1152).
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.authorization.needs import DESCRIBE_TOPIC, DESCRIBE_TRANSACTION
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.transactions.state import Turn
from appliance.coordinators.transactions.states import NAMES
from appliance.coordinators.transactions.transaction import Transaction

_MEMORY: Final = 1 << 20
"""Bytes that one compiled expression may take."""


def describe(turn: Turn, call: Call, request: Any) -> None:
    """DescribeTransactions: of the ids that this partition owns, with the topics that the caller
    may see."""
    rows = [
        _described(turn, call, name)
        for name in dict.fromkeys(request.transactional_ids)
        if turn.state.owns(name)
    ]
    turn.answer(call, {"throttle_time": 0, "transaction_states": rows})


def describe_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """The same error for each id."""
    rows = [_unknown(name, code) for name in request.transactional_ids if turn.state.owns(name)]
    return {"throttle_time": 0, "transaction_states": rows}


def _described(turn: Turn, call: Call, name: str) -> dict[str, Any]:
    if code := call.rights.refusal(DESCRIBE_TRANSACTION, name):
        return _unknown(name, code)
    if not name:
        return _unknown(name, errors.INVALID_REQUEST)
    known = turn.state.known.get(name)
    if known is None:
        return _unknown(name, errors.TRANSACTIONAL_ID_NOT_FOUND)
    found = known.transaction
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(found.partitions):
        topics.setdefault(topic, []).append(index)
    if not call.rights.everything:
        topics = {one: topics[one] for one in topics if call.rights.may(DESCRIBE_TOPIC, one)}
    return {
        "error_code": errors.NONE,
        "transactional_id": name,
        "transaction_state": NAMES[found.state],
        "transaction_timeout": found.timeout_ms,
        "transaction_start_time": found.started_ms,
        "producer_id": found.producer_id,
        "producer_epoch": found.epoch,
        "topics": [
            {"topic": topic, "partitions": tuple(indexes)} for topic, indexes in topics.items()
        ],
    }


def _unknown(name: str, code: int) -> dict[str, Any]:
    return {
        "error_code": code,
        "transactional_id": name,
        "transaction_state": "",
        "transaction_timeout": 0,
        "transaction_start_time": 0,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": [],
    }


def list_all(turn: Turn, call: Call, request: Any) -> None:
    """ListTransactions: of this partition."""
    fits = _fitting(getattr(request, "transactional_id_pattern", None))
    longer_ms = getattr(request, "duration_filter", -1)
    states, producers = set(request.state_filters), set(request.producer_id_filters)

    def wanted(name: str, found: Transaction) -> bool:
        return (
            (not states or NAMES[found.state] in states)
            and (not producers or found.producer_id in producers)
            and (longer_ms <= 0 or turn.wall_ms - found.started_ms > longer_ms)
            and fits(name)
            and call.rights.may(DESCRIBE_TRANSACTION, name)
        )

    rows = [
        {
            "transactional_id": name,
            "producer_id": known.transaction.producer_id,
            "transaction_state": NAMES[known.transaction.state],
        }
        for name, known in turn.state.known.items()
        if wanted(name, known.transaction)
    ]
    unknown = tuple(sorted(states - set(NAMES.values())))
    turn.answer(call, _listed(errors.NONE, rows, unknown))


def list_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """The answer of a partition that cannot list its transactions."""
    return _listed(code, [], ())


def _listed(code: int, rows: list[dict[str, Any]], unknown: tuple[str, ...]) -> dict[str, Any]:
    return {
        "throttle_time": 0,
        "error_code": code,
        "unknown_state_filters": unknown,
        "transaction_states": rows,
    }


def _fitting(expression: str | None) -> Callable[[str], Any]:
    if not expression:
        return lambda name: True
    import re2  # a C++ library: few ask with an expression

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        fits: Callable[[str], Any] = re2.compile(expression, options).fullmatch
    except re2.error as cause:
        raise PeerError(
            errors.INVALID_REGULAR_EXPRESSION,
            f"`{expression[:200]}` is no regular expression of RE2",
        ) from cause
    return fits
