"""The members of a transaction: AddPartitionsToTxn (24) and AddOffsetsToTxn (25).

AddPartitionsToTxn, versions 0 to 5. 2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH. 3:
flexible. 4: several transactions, from brokers; `verify_only` asks whether partitions belong to
one. 5: they may be added that way (KIP-890). AddOffsetsToTxn, versions 0 to 4: the group's
partition of `__consumer_offsets` is added.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from appliance.authorization.needs import WRITE_TOPIC
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.ending import Opening, Partition
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.transactions.answers import answered, code_for
from appliance.coordinators.transactions.state import Turn, move
from appliance.coordinators.transactions.states import ONGOING, PREPARED
from appliance.coordinators.transactions.transaction import EPOCH_RISES, LAST_EPOCH

OF_BROKERS = 4
"""Version from which a request is a broker's, about several transactions."""


class Asked(NamedTuple):
    """One transaction of a request, whatever its version. topics: with name and partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: Iterable[Any]

    @property
    def partitions(self) -> list[Partition]:
        return [(topic.name, index) for topic in self.topics for index in topic.partitions]


def asked(call: Call, request: Any) -> list[Asked]:
    """The transactions that a request is about."""
    if call.version < OF_BROKERS:
        return [
            Asked(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
                False,
                request.v3_and_below_topics,
            )
        ]
    return [
        Asked(
            one.transactional_id,
            one.producer_id,
            one.producer_epoch,
            one.verify_only,
            one.topics,
        )
        for one in request.transactions
    ]


def add_partitions(turn: Turn, call: Call, request: Any) -> None:
    """AddPartitionsToTxn."""
    every = [
        (one, _codes(turn, call, one))
        for one in asked(call, request)
        if turn.state.owns(one.transactional_id)
    ]
    turn.answer(call, _told(call, every))


def partitions_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """Every partition says why nothing was added."""
    code = code_for(code, call, 2)
    told = [
        (one, dict.fromkeys(one.partitions, code))
        for one in asked(call, request)
        if turn.state.owns(one.transactional_id) or call.version < OF_BROKERS
    ]
    return _told(call, told)


def _told(call: Call, every: list[tuple[Asked, dict[Partition, int]]]) -> dict[str, Any]:
    results = [
        {
            "transactional_id": one.transactional_id,
            "topic_results": [
                {
                    "name": topic.name,
                    "results_by_partition": [
                        {
                            "partition_index": index,
                            "partition_error_code": codes[topic.name, index],
                        }
                        for index in topic.partitions
                    ],
                }
                for topic in one.topics
            ],
        }
        for one, codes in every
    ]
    values = {"throttle_time": 0, "error_code": errors.NONE, "results_by_transaction": results}
    if call.version < OF_BROKERS:
        values["results_by_topic_v3_and_below"] = results[0]["topic_results"]
    return values


def _codes(turn: Turn, call: Call, one: Asked) -> dict[Partition, int]:
    """The error code of each partition. When one may not be added none is."""
    partitions = one.partitions
    if not one.transactional_id:
        return dict.fromkeys(partitions, errors.INVALID_REQUEST)
    wrong = {
        partition: code
        for partition in partitions
        if (code := _wrong(turn, call, partition)) != errors.NONE
    }
    if wrong:
        return dict.fromkeys(partitions, errors.OPERATION_NOT_ATTEMPTED) | wrong
    try:
        if one.verify_only:
            return _verified(turn, one)
        version = 0 if call.version < OF_BROKERS else EPOCH_RISES
        add(turn, one, frozenset(partitions), version)
    except PeerError as refused:
        return dict.fromkeys(partitions, code_for(refused.code, call, 2))
    return dict.fromkeys(partitions, errors.NONE)


def _wrong(turn: Turn, call: Call, partition: Partition) -> int:
    if call.version < OF_BROKERS:  # brokers have asked that themselves
        if partition[0] in INTERNAL_TOPICS:
            return errors.TOPIC_AUTHORIZATION_FAILED
        if code := call.rights.refusal(WRITE_TOPIC, partition[0]):
            return code
    there = turn.state.image.partition(*partition) is not None
    return errors.NONE if there else errors.UNKNOWN_TOPIC_OR_PARTITION


def add(turn: Turn, one: Any, partitions: frozenset[Partition], version: int) -> None:
    """Partitions belong to the transaction of a producer from now on; the first begins it. one: who
    says which id, producer and epoch. version: transaction.version of the client. Raises
    PeerError."""
    known = turn.state.of(one.transactional_id, one.producer_id)
    found = known.transaction
    _check_epoch(found.epoch, one.producer_epoch)
    if found.state == ONGOING and partitions <= found.partitions:
        return
    to = found.with_partitions(partitions, version, turn.wall_ms)
    move(turn, known.transactional_id, to)
    turn.state.openings.append(Opening(to.producer_id, to.epoch, partitions))


def _verified(turn: Turn, one: Asked) -> dict[Partition, int]:
    """Checks that each partition belongs to the open transaction. The producer id and epoch are
    checked before pending markers, so a fenced producer does not retry.
    """
    known = turn.state.of(one.transactional_id, one.producer_id, pending=True)
    found = known.transaction
    _check_epoch(found.epoch, one.producer_epoch)
    if found.state in PREPARED:
        raise PeerError(errors.CONCURRENT_TRANSACTIONS, "its markers are pending")
    return {
        partition: errors.NONE if partition in found.partitions else errors.TRANSACTION_ABORTABLE
        for partition in one.partitions
    }


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
    add(turn, request, frozenset(((OFFSETS_TOPIC, index),)), 0)
    turn.answer(call, answered(errors.NONE))


def offsets_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """An AddOffsetsToTxn that added nothing."""
    return answered(code_for(code, call, 2))
