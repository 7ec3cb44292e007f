"""ListOffsets, API key 2, versions 1 to 11.

2: isolation level. 4: leader epochs. 6: flexible. 7: -3 asks for the record with the greatest
timestamp. 8: -4 earliest local. 9: -5 latest tiered. 10: timeout of remote lookups. 11: -6 earliest
pending upload. Nothing is tiered here, so -4 is the log start offset, and -5 and -6 find nothing,
as Kafka answers without remote storage. Whoever is no consumer (a replica id other than -1) is told
the log end as the latest offset, and who is neither consumer nor replica (-2) by any replica.
"""

from typing import Any

from appliance.authorization.apis import declared
from appliance.authorization.needs import DESCRIBE_TOPIC
from appliance.base import errors
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.handlers.gather import GatheredPartition, Gathering, Values
from appliance.ring.messages import (
    ANY_REPLICA,
    LIST_OFFSET,
    READ_COMMITTED,
    READ_REPLICA,
    Message,
)
from appliance.ring.slots import read_listed

_SPECIAL_SINCE = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
_CONSUMER = -1
_DEBUGGING = -2  # who looks how far replicas are, as Apache Kafka names it
_FIRST_NOT_AVAILABLE = 5  # OFFSET_NOT_AVAILABLE (KIP-207)
_NOTHING_THERE = (-5, -6)


def begin_list_offsets(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    flags = READ_COMMITTED if getattr(request, "isolation_level", 0) == 1 else 0
    anywhere = request.replica_id == _DEBUGGING
    if request.replica_id != _CONSUMER:
        flags = READ_REPLICA | (ANY_REPLICA if anywhere else 0)
    told_as = failed if x.version >= _FIRST_NOT_AVAILABLE else _failed_before
    asked_of = LIST_OFFSET, DESCRIBE_TOPIC, told_as, answered, "name"
    gathering = Gathering(*asked_of, anywhere=anywhere)
    count = sum(len(topic.partitions) for topic in request.topics)
    gather.ask_partitions(host, x, gathering, count, _plan(x, request, gathering, flags))


def _plan(x: Exchange, request: Any, gathering: Gathering, flags: int) -> Steps:
    doubled: set[tuple[str, int]] = set()
    yield from _find_doubled(request, doubled)
    told: set[tuple[str, int]] = set()
    flat, count = gathering.flat, 0
    for topic in request.topics:
        rows = gathering.add_topic(topic.name)
        for partition in topic.partitions:
            epoch = getattr(partition, "current_leader_epoch", -1)
            asked = GatheredPartition(partition.partition_index, partition.timestamp, epoch, flags)
            place = topic.name, asked.partition
            if place in doubled:
                asked.answer = failed(asked, errors.INVALID_REQUEST)
            elif asked.value < 0 and x.version < _SPECIAL_SINCE.get(asked.value, 99):
                asked.answer = failed(asked, errors.UNSUPPORTED_VERSION)
            elif asked.value in _NOTHING_THERE:
                asked.answer = failed(asked, errors.NONE)
            if asked.answer is None or place not in told:
                rows.append(asked)
                flat.append(asked)
            told.add(place)
            count += 1
            if count % gather.MANY == 0:
                yield


def _find_doubled(request: Any, doubled: set[tuple[str, int]]) -> Steps:
    """Adds the partitions that are named twice."""
    seen: set[tuple[str, int]] = set()
    count = 0
    for topic in request.topics:
        for partition in topic.partitions:
            place = topic.name, partition.partition_index
            (doubled if place in seen else seen).add(place)
            count += 1
            if count % gather.MANY == 0:
                yield


def failed(asked: GatheredPartition, code: int) -> Values:
    return {"partition_index": asked.partition, "error_code": code, "timestamp": -1, "offset": -1}


def _failed_before(asked: GatheredPartition, code: int) -> Values:
    if code == errors.OFFSET_NOT_AVAILABLE:
        code = errors.LEADER_NOT_AVAILABLE
    return failed(asked, code)


def answered(asked: GatheredPartition, message: Message) -> Values:
    listed = read_listed(message)
    return {
        "partition_index": asked.partition,
        "error_code": 0,
        "timestamp": listed.timestamp,
        "offset": listed.offset,
        "leader_epoch": listed.leader_epoch,
    }


HANDLER = Handler(*declared(2), begin_list_offsets, gather.complete, slices=True)
