"""AlterPartition, API key 56, versions 2 and 3; flexible from 0.

2: topic ids. 3: the new ISR with broker epochs (KIP-903). The leader of a partition asks the active
controller for another ISR; only brokers do.
"""

from itertools import groupby

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.alter_partition import (
    UNCHECKED,
    AlteredPartition,
    NewIsr,
    alter_partitions,
)
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.wire.uuids import uuid_bytes


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = [
        NewIsr(
            uuid_bytes(topic.topic_id),
            row.partition_index,
            row.leader_epoch,
            row.partition_epoch,
            _isr(row, version),
            row.leader_recovery_state,
        )
        for topic in request.topics
        for row in topic.partitions
    ]
    try:
        records, results = alter_partitions(
            context.situation, request.broker_id, request.broker_epoch, wanted
        )
    except PeerError as error:
        return Answer([], _values(error.code, []))
    return Answer(records, _values(errors.NONE, results))


def _isr(row: Message, version: int) -> list[tuple[int, int]]:
    if version < 3:
        return [(one, UNCHECKED) for one in row.new_isr]
    return [(one.broker_id, one.broker_epoch) for one in row.new_isr_with_epochs]


def _values(code: int, results: list[AlteredPartition]) -> Values:
    return {
        "throttle_time": 0,
        "error_code": code,
        "topics": [
            {"topic_id": topic_id, "partitions": [_row(one) for one in rows]}
            for topic_id, rows in groupby(results, lambda one: one.topic_id)
        ],
    }


def _row(one: AlteredPartition) -> Values:
    return {
        "partition_index": one.index,
        "error_code": one.code,
        "leader_id": one.leader,
        "leader_epoch": one.leader_epoch,
        "isr": one.isr,
        "leader_recovery_state": one.recovery_state,
        "partition_epoch": one.partition_epoch,
    }


def refused(request: Message, told: Values) -> Values:
    return {"error_code": told["error_code"], "topics": []}


API = Api(*declared(56), decide, refused=refused)
