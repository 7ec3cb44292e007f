"""Fetch (API key 1, versions 0 to 18) by hand: the other half of the hot path.

A response is a list of pieces: bytes, and file ranges in the places where records belong, so that
nobody ever holds record bytes in user space. Sources: KIP-98, KIP-227 (sessions), KIP-392 (rack),
KIP-516 (topic ids), KIP-903.
"""

from functools import partial
from struct import Struct, error
from typing import Final, NamedTuple

from appliance.base.errors import MalformedRequest
from appliance.wire.aborted import array, compact_array
from appliance.wire.varint import SMALL, STRING_MAX, read_uvarint, skip_tagged_fields, uvarint

HIGHEST = 18
FIRST_MAX_BYTES = 3
FIRST_BATCHES = 4
FIRST_RACK = 11
FIRST_FLEXIBLE = 12
FIRST_TOPIC_ID = 13
FIRST_REPLICA_STATE = 15
FIRST_LEADER = 16

_I16 = Struct(">h").unpack_from
_I32 = Struct(">i").unpack_from
_REPLICA_STATE = Struct(">iq").unpack_from
_HEAD_4 = Struct(
    ">iiiib"
).unpack_from  # replica id, max wait, min bytes, max bytes, isolation level
_HEAD_3 = Struct(">iiii").unpack_from
_HEAD_0 = Struct(">iii").unpack_from
_NO_LIMIT: Final = (1 << 31) - 1
_HEAD_15 = Struct(">iiib").unpack_from  # the same without the replica id
_SESSION = Struct(">ii").unpack_from
_SESSION_COUNT8 = Struct(">iiB").unpack_from  # the last one is a varint's first byte
_PARTITION = {
    4: Struct(">iqi"),  # partition, fetch offset, max bytes
    5: Struct(">iqqi"),  # partition, fetch offset, log start offset, max bytes
    9: Struct(
        ">iiqqi"
    ),  # partition, current leader epoch, fetch offset, log start offset, max bytes
}
_12 = Struct(">iiqiqi")  # …, current leader epoch, fetch offset, last fetched epoch, log start, max
_PARTITION_12 = _12.unpack_from
_SIZE_12: Final = _12.size
_ONE_BYTE: Final = 127  # the largest value of a varint of one byte


class FetchPartition(NamedTuple):
    """One partition asked for. `topic` is the name, or the 16-byte topic id from version 13 on.
    last_fetched_epoch, log_start: of another replica's log, -1: not told."""

    topic: bytes
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start: int = -1


class FetchRequest(NamedTuple):
    """replica_id: node id of another replica, below 0: a consumer. replica_epoch: its broker epoch
    (KIP-903), -1: not told. rack: where a consumer stands (KIP-392), empty: not told."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    session_id: int
    session_epoch: int
    partitions: list[FetchPartition]
    forgotten: list[tuple[bytes, int]]
    rack: bytes = b""


class PartitionData(NamedTuple):
    """The answer for one partition; `length` bytes of records are sent from a file by whoever
    sends. aborted: the aborted transactions in them (`wire/aborted.py`), None: not to be told.
    nearest: node id of the replica to read from instead (version 11: KIP-392), -1: none."""

    topic: bytes
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    length: int
    aborted: bytes | None = b""
    nearest: int = -1


_named: Final = partial(tuple.__new__, FetchPartition)  # in C, not by a function of Python


def parse(memory: memoryview, position: int, end: int, version: int) -> FetchRequest:
    """Parse the body at memory[position:end]. Raises MalformedRequest, never reads past `end`."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _parse_flexible(memory, position, end, version)
        return _parse_fixed(memory, position, end, version)
    except (error, IndexError) as cause:
        raise MalformedRequest("Fetch request ends inside a field") from cause


def _partition(topic: bytes, fields: tuple[int, ...], version: int) -> FetchPartition:
    if version >= 9:
        partition, epoch, offset, log_start, most = fields
        return FetchPartition(topic, partition, offset, most, epoch, -1, log_start)
    log_start = fields[2] if version >= 5 else -1
    return FetchPartition(topic, fields[0], fields[1], fields[-1], -1, -1, log_start)


def _layout(version: int) -> Struct:
    return _PARTITION[9 if version >= 9 else 5 if version >= 5 else 4]


def _parse_fixed(memory: memoryview, p: int, end: int, version: int) -> FetchRequest:
    replica_id, max_bytes, isolation = -1, _NO_LIMIT, 0  # no replica speaks the oldest versions
    if version >= FIRST_BATCHES:
        replica_id, max_wait, min_bytes, max_bytes, isolation = _HEAD_4(memory, p)
        p += 17
    elif version >= FIRST_MAX_BYTES:
        _, max_wait, min_bytes, max_bytes = _HEAD_3(memory, p)
        p += 16
    else:
        _, max_wait, min_bytes = _HEAD_0(memory, p)
        p += 12
    session_id, session_epoch = 0, -1
    if version >= 7:
        session_id, session_epoch = _SESSION(memory, p)
        p += 8
    layout = _layout(version)
    partitions: list[FetchPartition] = []
    topic_count, p = _count(memory, p, end, 6)
    for _ in range(topic_count):
        topic, p = _name(memory, p, end)
        count, p = _count(memory, p, end, layout.size)
        for _ in range(count):
            partitions.append(_partition(topic, layout.unpack_from(memory, p), version))
            p += layout.size
    forgotten: list[tuple[bytes, int]] = []
    if version >= 7:
        topic_count, p = _count(memory, p, end, 6)
        for _ in range(topic_count):
            topic, p = _name(memory, p, end)
            count, p = _count(memory, p, end, 4)
            for _ in range(count):
                forgotten.append((topic, _I32(memory, p)[0]))
                p += 4
    rack = b""
    if version >= FIRST_RACK:
        rack, p = _name(memory, p, end)
    if p != end:
        raise _not_at_its_end(p, end)
    return FetchRequest(
        replica_id,
        -1,
        max_wait,
        min_bytes,
        max_bytes,
        isolation == 1,
        session_id,
        session_epoch,
        partitions,
        forgotten,
        rack,
    )


def _parse_flexible(memory: memoryview, p: int, end: int, version: int) -> FetchRequest:
    body = memory[:end]  # what lies behind belongs to others: reading there is an IndexError
    replica_id = replica_epoch = -1
    if version < FIRST_REPLICA_STATE:
        replica_id, max_wait, min_bytes, max_bytes, isolation = _HEAD_4(body, p)
        p += 17
    else:
        max_wait, min_bytes, max_bytes, isolation = _HEAD_15(body, p)
        p += 13
    session_id, session_epoch, count = _SESSION_COUNT8(body, p)
    p += 9
    if count > _ONE_BYTE:
        count, p = read_uvarint(body, p - 1, end)
    if not 0 < count <= (end - p) // 3 + 1:
        _check_count(count - 1, 3, end - p)
    partitions: list[FetchPartition] = []
    for _ in range(count - 1):
        p = _topic_flexible(body, p, end, version, partitions)
    forgotten: list[tuple[bytes, int]] = []
    if body[p] != 1:  # else there are none
        p = _forgotten_flexible(body, p, end, version, forgotten)
    else:
        p += 1
    rack = b""
    size, p = body[p], p + 1
    if size > _ONE_BYTE:
        size, p = read_uvarint(body, p - 1, end)
    if size > STRING_MAX + 1:
        raise MalformedRequest(f"rack id of {size - 1} bytes, at most {STRING_MAX} are taken")
    if size > 1:
        rack = bytes(body[p : p + size - 1])
        p += size - 1
    if body[p]:
        replica_id, replica_epoch, p = _read_tags(body, p, end, version, replica_id)
    else:
        p += 1
    if p != end:
        raise _not_at_its_end(p, end)
    return FetchRequest(
        replica_id,
        replica_epoch,
        max_wait,
        min_bytes,
        max_bytes,
        isolation == 1,
        session_id,
        session_epoch,
        partitions,
        forgotten,
        rack,
    )


def _topic_flexible(
    body: memoryview, p: int, end: int, version: int, partitions: list[FetchPartition]
) -> int:
    """One topic entry at `p`, its partitions added to the list; the position after it."""
    size = 17
    if version < FIRST_TOPIC_ID:
        size, p = body[p], p + 1
        if size > _ONE_BYTE:
            size, p = read_uvarint(body, p - 1, end)
    if not 0 < size <= STRING_MAX + 1 or p + size - 1 > end:
        raise MalformedRequest(f"topic of {size - 1} bytes, {end - p} remain")
    topic = bytes(body[p : p + size - 1])
    p += size - 1
    count, p = body[p], p + 1
    if count > _ONE_BYTE:
        count, p = read_uvarint(body, p - 1, end)
    if not 0 < count <= (end - p) // _SIZE_12 + 1:
        _check_count(count - 1, _SIZE_12, end - p)
    for _ in range(count - 1):
        partition, epoch, offset, last_epoch, log_start, max_bytes = _PARTITION_12(body, p)
        p += _SIZE_12
        partitions.append(
            _named((topic, partition, offset, max_bytes, epoch, last_epoch, log_start))
        )
        p = skip_tagged_fields(body, p, end) if body[p] else p + 1
    return skip_tagged_fields(body, p, end) if body[p] else p + 1


def _forgotten_flexible(
    body: memoryview, p: int, end: int, version: int, forgotten: list[tuple[bytes, int]]
) -> int:
    topic_count, p = _compact_count(body, p, end, 3)
    for _ in range(topic_count):
        topic, p = _compact_topic(body, p, end, version)
        count, p = body[p], p + 1
        if count > _ONE_BYTE:
            count, p = read_uvarint(body, p - 1, end)
        if not 0 < count <= (end - p) // 4 + 1:
            _check_count(count - 1, 4, end - p)
        for _ in range(count - 1):
            forgotten.append((topic, _I32(body, p)[0]))
            p += 4
        p = skip_tagged_fields(body, p, end) if body[p] else p + 1
    return p


def _read_tags(
    memory: memoryview, p: int, end: int, version: int, replica_id: int
) -> tuple[int, int, int]:
    """Top-level tags: 1 is the replica state (id, epoch) from version 15 on; all others are
    skipped."""
    replica_epoch = -1
    count, p = read_uvarint(memory, p, end)
    for _ in range(count):
        tag, p = read_uvarint(memory, p, end)
        size, p = read_uvarint(memory, p, end)
        if p + size > end:
            raise MalformedRequest(f"tagged field {tag} of {size} bytes, {end - p} remain")
        if tag == 1 and version >= FIRST_REPLICA_STATE and size >= 12:
            replica_id, replica_epoch = _REPLICA_STATE(memory, p)
        p += size
    return replica_id, replica_epoch, p


def _name(memory: memoryview, p: int, end: int) -> tuple[bytes, int]:
    (size,) = _I16(memory, p)
    if size < 0 or p + 2 + size > end:
        raise MalformedRequest(f"string of {size} bytes, {end - p - 2} remain")
    return bytes(memory[p + 2 : p + 2 + size]), p + 2 + size


def _compact_topic(memory: memoryview, p: int, end: int, version: int) -> tuple[bytes, int]:
    size = 17
    if version < FIRST_TOPIC_ID:
        size, p = read_uvarint(memory, p, end)
    if not 0 < size <= STRING_MAX + 1 or p + size - 1 > end:
        raise MalformedRequest(f"topic of {size - 1} bytes, {end - p} remain")
    return bytes(memory[p : p + size - 1]), p + size - 1


def _count(memory: memoryview, p: int, end: int, smallest: int) -> tuple[int, int]:
    (count,) = _I32(memory, p)
    _check_count(count, smallest, end - p)
    return count, p + 4


def _compact_count(memory: memoryview, p: int, end: int, smallest: int) -> tuple[int, int]:
    count, p = read_uvarint(memory, p, end)
    _check_count(count - 1, smallest, end - p)
    return count - 1, p


def _check_count(count: int, smallest: int, remaining: int) -> None:
    """An array of `count` elements of at least `smallest` bytes must fit what remains."""
    if count < 0 or count * smallest > remaining:
        raise MalformedRequest(f"array of {count} elements in {remaining} bytes")


def _not_at_its_end(position: int, end: int) -> MalformedRequest:
    return MalformedRequest(f"Fetch request: {end - position} bytes after its end")


# The answer ---------------------------------------------------------------------------------------

_P0 = Struct(">ihqi")  # partition, error, high watermark, records length
_P4 = Struct(
    ">ihqqii"
)  # partition, error, high watermark, last stable offset, aborted (0, or -1: null), records length
_P5 = Struct(">ihqqqii")  # … with the log start offset
_P11 = Struct(">ihqqqiii")  # … with the preferred read replica
_P12 = Struct(">ihqqqbi")  # compact: aborted is one byte, then preferred read replica
_P_BEGIN = Struct(">ihqq")  # partition, error, high watermark, last stable offset
_DIVERGING = Struct(">BBBiqB")  # one tag, number 0, its size, epoch, end offset, no tags in it
_NO_REPLICA = b"\xff\xff\xff\xff"  # preferred read replica: none
_TOP_4 = Struct(">ii")
_TOP_7 = Struct(">ihii")
_TOP_12 = Struct(">ihi")


def top(
    version: int, throttle_ms: int, error_code: int, session_id: int, topic_count: int
) -> bytes:
    """The response body up to its first topic."""
    if version >= FIRST_FLEXIBLE:
        count = topic_count + 1
        written = SMALL[count] if count <= _ONE_BYTE else uvarint(count)
        return _TOP_12.pack(throttle_ms, error_code, session_id) + written
    if version >= 7:
        return _TOP_7.pack(throttle_ms, error_code, session_id, topic_count)
    if version:
        return _TOP_4.pack(throttle_ms, topic_count)
    return topic_count.to_bytes(4, "big")


def topic_head(version: int, topic: bytes, partition_count: int) -> bytes:
    """The bytes that open one topic entry."""
    if version >= FIRST_FLEXIBLE:
        size, count = len(topic) + 1, partition_count + 1
        written = SMALL[count] if count <= _ONE_BYTE else uvarint(count)
        if version >= FIRST_TOPIC_ID:
            return topic + written
        return (SMALL[size] if size <= _ONE_BYTE else uvarint(size)) + topic + written
    return len(topic).to_bytes(2, "big") + topic + partition_count.to_bytes(4, "big")


def partition_head(version: int, data: PartitionData) -> bytes:
    """One partition's fields up to and with the length of its records; the records follow."""
    _, partition, code, high_watermark, stable, start, length, transactions, nearest = data
    if transactions:
        return _head_with_aborted(version, data, transactions)
    aborted = -1 if transactions is None else 0
    if version >= FIRST_FLEXIBLE:
        head = _P12.pack(partition, code, high_watermark, stable, start, aborted + 1, nearest)
        return head + (SMALL[length + 1] if length < _ONE_BYTE else uvarint(length + 1))
    if version >= FIRST_RACK:
        return _P11.pack(partition, code, high_watermark, stable, start, aborted, nearest, length)
    if version >= 5:
        return _P5.pack(partition, code, high_watermark, stable, start, aborted, length)
    if version >= FIRST_BATCHES:
        return _P4.pack(partition, code, high_watermark, stable, aborted, length)
    return _P0.pack(partition, code, high_watermark, length)


def _head_with_aborted(version: int, data: PartitionData, transactions: bytes) -> bytes:
    """Every layout again, in parts: the aborted transactions stand in the middle."""
    assert data.nearest < 0, "beside that there are no records"
    _, partition, code, high_watermark, stable, start, length, _, _ = data
    head = _P_BEGIN.pack(partition, code, high_watermark, stable)
    if version >= 5:
        head += start.to_bytes(8, "big", signed=True)
    if version >= FIRST_FLEXIBLE:
        return head + compact_array(transactions) + _NO_REPLICA + uvarint(length + 1)
    head += array(transactions)
    return head + (_NO_REPLICA if version >= FIRST_RACK else b"") + length.to_bytes(4, "big")


def diverging(epoch: int, end_offset: int) -> bytes:
    """The end of a partition from version 12 on for a replica whose log diverges from the leader's
    (KIP-595): the tagged field 0.
    """
    return _DIVERGING.pack(1, 0, 13, epoch, end_offset, 0)


def tail(version: int) -> bytes:
    """The end of a partition (behind its records), a topic entry and the body: no tagged fields."""
    return b"\x00" if version >= FIRST_FLEXIBLE else b""
