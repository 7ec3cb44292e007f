"""The members of a transaction: AddPartitionsToTxn (24) and AddOffsetsToTxn (25).

AddPartitionsToTxn, versions 0 to 5. 2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH. 3:
flexible. 4: several transactions, from brokers; `verify_only` asks whether partitions belong to
one. 5: they may be added that way (KIP-890). AddOffsetsToTxn, versions 0 to 4: the group's
partition of `__consumer_offsets` is added.
"""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from appliance.authorization.needs import WRITE_TOPIC
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.runtime.request_parts import ROWS
from appliance.coordinators.runtime.rows import rows
from appliance.coordinators.runtime.transaction_effects import Partition, PartitionsAdded
from appliance.coordinators.transactions.answers import answered, code_for
from appliance.coordinators.transactions.record_bytes import EncodedPartitions, topic_bytes
from appliance.coordinators.transactions.state import (
    PARTITION_BYTES,
    TransactionsState,
    Turn,
    lacks_bytes,
    move_transaction,
)
from appliance.coordinators.transactions.states import ONGOING, PREPARED
from appliance.coordinators.transactions.transaction import EPOCH_RISES, LAST_EPOCH

OF_BROKERS = 4
"""Version from which a request is a broker's, about several transactions."""


class TransactionPartitions(NamedTuple):
    """One transaction of a request, whatever its version. topics: with name and partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: Sequence[Any]


class LookedAt(NamedTuple):
    """The partitions of one transaction of a request. wrong: those that may not be added, and why.
    over: those that the transaction had, where `more` is encoded: what it has not yet."""

    partitions: frozenset[Partition]
    wrong: dict[Partition, int]
    over: frozenset[Partition] = frozenset()
    more: EncodedPartitions | None = None


class PartitionCodes(NamedTuple):
    """An answer's code for every partition but some."""

    most: int
    some: Mapping[Partition, int] = {}


def asked(call: Call, request: Any) -> list[TransactionPartitions]:
    """The transactions that a request is about."""
    if call.version < OF_BROKERS:
        return [
            TransactionPartitions(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
                False,
                request.v3_and_below_topics,
            )
        ]
    return [
        TransactionPartitions(
            one.transactional_id,
            one.producer_id,
            one.producer_epoch,
            one.verify_only,
            one.topics,
        )
        for one in request.transactions
    ]


def look_at_all(
    state: TransactionsState, call: Call, request: Any
) -> Generator[None, None, list[LookedAt | None]]:
    """Steps that look at the partitions of each transaction, None: another coordinator does."""
    found: list[LookedAt | None] = []
    for one in asked(call, request):
        looked = None
        if one.transactional_id and state.owns(one.transactional_id):
            looked = yield from _look_in_slices(state, call, one)
            if not looked.wrong and not one.verify_only:
                looked = yield from _encode_in_slices(state, one, looked)
        found.append(looked)
        yield
    return found


def _look_in_slices(
    state: TransactionsState, call: Call, one: TransactionPartitions
) -> Generator[None, None, LookedAt]:
    wrong: dict[Partition, int] = {}
    partitions: list[Partition] = []
    count = 0
    for topic in one.topics:
        for at in range(0, len(topic.partitions), ROWS):
            indexes = topic.partitions[at : at + ROWS]
            _look_at_some(state, call, topic.name, indexes, partitions, wrong)
            count += 1 + len(indexes)
            if count >= ROWS:
                count = 0
                yield
    return LookedAt(frozenset(partitions), wrong)


def _look_at_some(
    state: TransactionsState,
    call: Call,
    topic: str,
    indexes: Sequence[int],
    partitions: list[Partition],
    wrong: dict[Partition, int],
) -> None:
    """Adds these partitions to `partitions`, those that may not be added also to `wrong`."""
    code = _refused(call, topic)
    for index in indexes:
        partition = topic, index
        partitions.append(partition)
        if code or state.image.partition(topic, index) is None:
            wrong[partition] = code or errors.UNKNOWN_TOPIC_OR_PARTITION


def _encode_in_slices(
    state: TransactionsState, one: TransactionPartitions, looked: LookedAt
) -> Generator[None, None, LookedAt]:
    known = state.known.get(one.transactional_id)
    over = frozenset() if known is None else known.transaction.partitions
    fresh = set(looked.partitions - over)
    more, topics, body, count = frozenset(fresh), 0, [], 0
    for topic in one.topics:
        for at in range(0, len(topic.partitions), ROWS):
            indexes = {i for i in topic.partitions[at : at + ROWS] if (topic.name, i) in fresh}
            fresh.difference_update((topic.name, index) for index in indexes)
            if indexes:
                topics += 1
                body.append(topic_bytes(topic.name, indexes))
            count += 1 + len(indexes)
            if count >= ROWS:
                count = 0
                yield
    return looked._replace(over=over, more=EncodedPartitions(more, topics, b"".join(body)))


def _refused(call: Call, topic: str) -> int:
    if call.version >= OF_BROKERS:  # brokers have asked that themselves
        return errors.NONE
    if topic in INTERNAL_TOPICS:
        return errors.TOPIC_AUTHORIZATION_FAILED
    return call.rights.refusal(WRITE_TOPIC, topic)


def add_partitions(turn: Turn, call: Call, request: Any) -> None:
    """AddPartitionsToTxn: each of its transactions as a whole."""
    every = asked(call, request)
    looked = call.prepared or [None] * len(every)
    told = [
        (one, _codes(turn, call, one, known))
        for one, known in zip(every, looked, strict=True)
        if turn.state.owns(one.transactional_id)
    ]
    turn.answer(call, _told(call, told))


def partitions_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """Every partition says why nothing was added."""
    codes = PartitionCodes(code_for(code, call, 2))
    told = [
        (one, codes)
        for one in asked(call, request)
        if turn.state.owns(one.transactional_id) or call.version < OF_BROKERS
    ]
    return _told(call, told)


def _told(call: Call, every: list[tuple[TransactionPartitions, PartitionCodes]]) -> dict[str, Any]:
    results = [
        {
            "transactional_id": one.transactional_id,
            "topic_results": rows(one.topics, partial(_topic_told, codes)),
        }
        for one, codes in every
    ]
    values = {"throttle_time": 0, "error_code": errors.NONE, "results_by_transaction": results}
    if call.version < OF_BROKERS:
        values["results_by_topic_v3_and_below"] = results[0]["topic_results"]
    return values


def _topic_told(codes: PartitionCodes, topic: Any) -> dict[str, Any]:
    most, some, name = codes.most, codes.some, topic.name

    def partition_row(index: int) -> dict[str, int]:
        code = some.get((name, index), most)
        return {"partition_index": index, "partition_error_code": code}

    return {"name": name, "results_by_partition": rows(topic.partitions, partition_row)}


def _codes(
    turn: Turn, call: Call, one: TransactionPartitions, looked: LookedAt | None
) -> PartitionCodes:
    """The error code of each partition. When one may not be added none is."""
    if not one.transactional_id:
        return PartitionCodes(errors.INVALID_REQUEST)
    if looked is None:
        wrong: dict[Partition, int] = {}
        partitions: list[Partition] = []
        for topic in one.topics:
            _look_at_some(turn.state, call, topic.name, topic.partitions, partitions, wrong)
        looked = LookedAt(frozenset(partitions), wrong)
    if looked.wrong:
        return PartitionCodes(errors.OPERATION_NOT_ATTEMPTED, looked.wrong)
    try:
        if one.verify_only:
            return _verified(turn, one, looked.partitions)
        version = 0 if call.version < OF_BROKERS else EPOCH_RISES
        add(turn, one, looked.partitions, version, looked)
    except PeerError as refused:
        return PartitionCodes(code_for(refused.code, call, 2))
    return PartitionCodes(errors.NONE)


def add(
    turn: Turn, one: Any, partitions: frozenset[Partition], version: int, looked: LookedAt | None
) -> None:
    """Partitions belong to the transaction of a producer from now on; the first begins it. one: who
    says which id, producer and epoch. version: transaction.version of the client. looked: where
    the request was long. Raises PeerError."""
    known = turn.state.of(one.transactional_id, one.producer_id)
    found = known.transaction
    _check_epoch(found.epoch, one.producer_epoch)
    if found.state == ONGOING and partitions <= found.partitions:
        return
    more = None if looked is None else looked.more
    if looked is not None and more is not None and looked.over != found.partitions:
        raise PeerError(errors.CONCURRENT_TRANSACTIONS, "it has changed meanwhile")
    fresh = PARTITION_BYTES * len(partitions - found.partitions)
    if turn.state.room.lacks(fresh):
        raise lacks_bytes(turn, known.transactional_id, errors.TRANSACTION_ABORTABLE)
    to = found.with_partitions(partitions, version, turn.wall_ms)
    move_transaction(turn, known.transactional_id, to, more)
    turn.state.openings.append(PartitionsAdded(to.producer_id, to.epoch, partitions))


def _verified(
    turn: Turn, one: TransactionPartitions, partitions: frozenset[Partition]
) -> PartitionCodes:
    """Checks that each partition belongs to the open transaction. The producer id and epoch are
    checked before pending markers, so a fenced producer does not retry.
    """
    known = turn.state.of(one.transactional_id, one.producer_id, pending=True)
    found = known.transaction
    _check_epoch(found.epoch, one.producer_epoch)
    if found.state in PREPARED:
        raise PeerError(errors.CONCURRENT_TRANSACTIONS, "its markers are pending")
    missing = partitions - found.partitions
    return PartitionCodes(errors.NONE, dict.fromkeys(missing, errors.TRANSACTION_ABORTABLE))


def _check_epoch(present: int, asked_for: int) -> None:
    if present != asked_for or present == LAST_EPOCH:
        raise PeerError(
            errors.PRODUCER_FENCED,
            f"the transactional id has epoch {present}: nobody writes with {asked_for}",
        )


def add_offsets(turn: Turn, call: Call, request: Any) -> None:
    """AddOffsetsToTxn."""
    topic = turn.state.image.topics_by_name.get(OFFSETS_TOPIC)
    if topic is None:
        raise PeerError(errors.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} is being created")
    index = partition_of(request.group_id, len(topic.partitions))
    add(turn, request, frozenset(((OFFSETS_TOPIC, index),)), 0, None)
    turn.answer(call, answered(errors.NONE))


def offsets_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """An AddOffsetsToTxn that added nothing."""
    return answered(code_for(code, call, 2))
