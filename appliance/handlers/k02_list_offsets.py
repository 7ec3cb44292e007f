"""ListOffsets, API key 2, versions 1 to 11, and 0 with penstock.legacy.protocol.

0: several offsets before a time, of which the newest and the log start are told. 2: isolation
level. 4: leader epochs. 6: flexible. 7: -3 asks for the record with the greatest timestamp. 8: -4
earliest local. 9: -5 latest tiered. 10: timeout of remote lookups. 11: -6 earliest pending upload.
Where a partition has no remote segments, -4 is the log start offset, and -5 and -6 find nothing, as
Kafka answers. Whoever is no consumer (a replica id other than -1) is told the log end as
the latest offset, and who is neither consumer nor replica (-2) by any replica.
"""

from struct import Struct, error
from typing import Any, Final

from appliance.authorization.apis import declared
from appliance.authorization.needs import DESCRIBE_TOPIC
from appliance.base import errors
from appliance.base.errors import MalformedRequest
from appliance.config.bounds import ELEMENTS
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
from appliance.ring.partition_table import HIGH_WATERMARK, LOG_END, LOG_START
from appliance.ring.slots import read_listed
from appliance.wire.messages import elements_max

_SPECIAL_SINCE = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
_CONSUMER = -1
_EARLIEST = -2
_DEBUGGING = -2  # who looks how far replicas are, as Apache Kafka names it
_FIRST_NOT_AVAILABLE = 5  # OFFSET_NOT_AVAILABLE (KIP-207)


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


# Version 0 ----------------------------------------------------------------------------------------

_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_ROW: Final = Struct(">iqi")  # partition, time, most offsets
_ANSWER: Final = Struct(">ihi")  # partition, error code, number of offsets


def begin_version_0(host: Host, x: Exchange) -> None:
    """Answers with offsets, newest first: that of the time (the end, where all is older), then the
    log start, as many as are asked for. Raises MalformedRequest."""
    body = bytes(host.memory[x.position : x.end])
    try:
        (replica,) = _I32.unpack_from(body)
        topics = _read_topics(body, elements_max(x.handler.key))
    except (error, UnicodeDecodeError) as cause:
        raise MalformedRequest(f"ListOffsets version 0: {cause}") from cause
    flags = 0 if replica == _CONSUMER else READ_REPLICA
    flags |= ANY_REPLICA if replica == _DEBUGGING else 0
    most: dict[int, int] = {}

    def answered_before(asked: GatheredPartition, message: Message) -> Values:
        end, start = LOG_END if flags else HIGH_WATERMARK, LOG_START
        read = host.partitions.read_column
        offset = read_listed(message).offset
        offset = offset if offset >= 0 else read(message.handle, end)
        found = list(dict.fromkeys((offset, read(message.handle, start))))
        return _told(asked, errors.NONE, found[: max(0, most[id(asked)])])

    asked_of = LIST_OFFSET, DESCRIBE_TOPIC, _failed_version_0, answered_before, "name"
    gathering = Gathering(*asked_of, _reply_version_0, replica == _DEBUGGING)
    count = sum(len(rows) for _, rows in topics)

    def plan() -> Steps:
        for topic, rows in topics:
            made = [GatheredPartition(at, time, -1, flags) for at, time, _ in rows]
            most.update((id(one), row[2]) for one, row in zip(made, rows, strict=True))
            for one in made:
                if one.value < _EARLIEST:
                    one.answer = _told(one, errors.UNSUPPORTED_VERSION, [])
            yield from gathering.add_rows(topic, made)

    gather.ask_partitions(host, x, gathering, count, plan())


def _read_topics(body: bytes, limit: int) -> list[tuple[str, list[tuple[int, int, int]]]]:
    """(name, rows) of each topic. Raises MalformedRequest, struct.error."""
    topics: list[tuple[str, list[tuple[int, int, int]]]] = []
    at, elements = 8, 0
    for _ in range(*_I32.unpack_from(body, 4)):
        (size,) = _I16.unpack_from(body, at)
        (count,) = _I32.unpack_from(body, at + 2 + size)
        elements += 1 + max(0, count)
        if size < 0 or elements > limit:
            raise MalformedRequest(f"more than {limit} topics and partitions", ELEMENTS)
        name, at = body[at + 2 : at + 2 + size].decode(), at + 6 + size
        rows = [_ROW.unpack_from(body, at + n * _ROW.size) for n in range(count)]
        at += len(rows) * _ROW.size
        topics.append((name, rows))
    return topics


def _told(asked: GatheredPartition, code: int, offsets: list[int]) -> Values:
    return {"partition_index": asked.partition, "error_code": code, "offsets": offsets}


def _failed_version_0(asked: GatheredPartition, code: int) -> Values:
    return _told(asked, _failed_before(asked, code)["error_code"], [])


def _reply_version_0(host: Host, x: Exchange, values: Values, count: int) -> None:
    out = [_I32.pack(len(values["topics"]))]
    for topic in values["topics"]:
        name = topic["name"].encode()
        out += (_I16.pack(len(name)), name, _I32.pack(len(topic["partitions"])))
        for one in topic["partitions"]:
            code, offsets = one["error_code"], one["offsets"]
            out.append(_ANSWER.pack(one["partition_index"], code, len(offsets)))
            out += (offset.to_bytes(8, "big", signed=True) for offset in offsets)
            if code:
                host.failed(x, code)
    host.finish(x, [b"".join(out)])


HANDLER = Handler(*declared(2), begin_list_offsets, gather.complete, slices=True)
