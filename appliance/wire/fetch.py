"""Fetch (API key 1, versions 4 to 18) by hand: the other half of the hot path.

A response is a list of pieces: bytes, and file ranges in the places where records belong, so that
nobody ever holds record bytes in user space. Sources: KIP-98, KIP-227 (sessions), KIP-392 (rack),
KIP-516 (topic ids), KIP-903.
"""

from struct import Struct, error
from typing import NamedTuple

from appliance.base.errors import MalformedRequest
from appliance.wire.varint import STRING_MAX, read_uvarint, skip_tagged_fields, uvarint

LOWEST = 4
HIGHEST = 18
FIRST_FLEXIBLE = 12
FIRST_TOPIC_ID = 13
FIRST_REPLICA_STATE = 15

_I16 = Struct(">h").unpack_from
_I32 = Struct(">i").unpack_from
_REPLICA_STATE = Struct(">iq").unpack_from
_HEAD_4 = Struct(
    ">iiiib"
).unpack_from  # replica id, max wait, min bytes, max bytes, isolation level
_HEAD_15 = Struct(">iiib").unpack_from  # the same without the replica id
_SESSION = Struct(">ii").unpack_from
_PARTITION = {
    4: Struct(">iqi"),  # partition, fetch offset, max bytes
    5: Struct(">iqqi"),  # partition, fetch offset, log start offset, max bytes
    9: Struct(
        ">iiqqi"
    ),  # partition, current leader epoch, fetch offset, log start offset, max bytes
    12: Struct(
        ">iiqiqi"
    ),  # partition, current leader epoch, fetch offset, last fetched epoch, log start, max bytes
}


class FetchPartition(NamedTuple):
    """One partition asked for. `topic` is the name, or the 16-byte topic id from version 13 on."""

    topic: bytes
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1


class FetchRequest(NamedTuple):
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    session_id: int
    session_epoch: int
    partitions: list[FetchPartition]
    forgotten: list[tuple[bytes, int]]


class PartitionData(NamedTuple):
    """The answer for one partition; `length` bytes of records are sent from a file by whoever
    sends. committed: whether aborted transactions were to be told (there are none), null if not."""

    topic: bytes
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    length: int
    committed: bool = True


def parse(memory: memoryview, position: int, end: int, version: int) -> FetchRequest:
    """Parse the body at memory[position:end]. Raises MalformedRequest, never reads past `end`."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _parse_flexible(memory, position, end, version)
        return _parse_fixed(memory, position, end, version)
    except (error, IndexError) as cause:
        raise MalformedRequest("Fetch request ends inside a field") from cause


def _partition(topic: bytes, fields: tuple[int, ...], version: int) -> FetchPartition:
    if version >= FIRST_FLEXIBLE:
        return FetchPartition(topic, fields[0], fields[2], fields[5], fields[1])
    if version >= 9:
        return FetchPartition(topic, fields[0], fields[2], fields[4], fields[1])
    return FetchPartition(topic, fields[0], fields[1], fields[-1])


def _layout(version: int) -> Struct:
    return _PARTITION[12 if version >= 12 else 9 if version >= 9 else 5 if version >= 5 else 4]


def _parse_fixed(memory: memoryview, p: int, end: int, version: int) -> FetchRequest:
    replica_id, max_wait, min_bytes, max_bytes, isolation = _HEAD_4(memory, p)
    p += 17
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
    if version >= 11:
        _, p = _name(memory, p, end)
    _check_end(p, end)
    return FetchRequest(
        replica_id,
        max_wait,
        min_bytes,
        max_bytes,
        isolation == 1,
        session_id,
        session_epoch,
        partitions,
        forgotten,
    )


def _parse_flexible(memory: memoryview, p: int, end: int, version: int) -> FetchRequest:
    replica_id = -1
    if version < FIRST_REPLICA_STATE:
        replica_id, max_wait, min_bytes, max_bytes, isolation = _HEAD_4(memory, p)
        p += 17
    else:
        max_wait, min_bytes, max_bytes, isolation = _HEAD_15(memory, p)
        p += 13
    session_id, session_epoch = _SESSION(memory, p)
    layout = _layout(version)
    partitions: list[FetchPartition] = []
    topic_count, p = _compact_count(memory, p + 8, end, 3)
    for _ in range(topic_count):
        topic, p = _compact_topic(memory, p, end, version)
        count, p = _compact_count(memory, p, end, layout.size)
        for _ in range(count):
            partitions.append(_partition(topic, layout.unpack_from(memory, p), version))
            p = skip_tagged_fields(memory, p + layout.size, end)
        p = skip_tagged_fields(memory, p, end)
    forgotten: list[tuple[bytes, int]] = []
    topic_count, p = _compact_count(memory, p, end, 3)
    for _ in range(topic_count):
        topic, p = _compact_topic(memory, p, end, version)
        count, p = _compact_count(memory, p, end, 4)
        for _ in range(count):
            forgotten.append((topic, _I32(memory, p)[0]))
            p += 4
        p = skip_tagged_fields(memory, p, end)
    size, p = read_uvarint(memory, p, end)  # rack id, not used: there is one host
    if size > STRING_MAX + 1:
        raise MalformedRequest(f"rack id of {size - 1} bytes, at most {STRING_MAX} are taken")
    p += max(size - 1, 0)
    replica_id, p = _read_tags(memory, p, end, version, replica_id)
    _check_end(p, end)
    return FetchRequest(
        replica_id,
        max_wait,
        min_bytes,
        max_bytes,
        isolation == 1,
        session_id,
        session_epoch,
        partitions,
        forgotten,
    )


def _read_tags(
    memory: memoryview, p: int, end: int, version: int, replica_id: int
) -> tuple[int, int]:
    """Top-level tags: 1 is the replica state (id, epoch) from version 15 on; all others are
    skipped."""
    count, p = read_uvarint(memory, p, end)
    for _ in range(count):
        tag, p = read_uvarint(memory, p, end)
        size, p = read_uvarint(memory, p, end)
        if p + size > end:
            raise MalformedRequest(f"tagged field {tag} of {size} bytes, {end - p} remain")
        if tag == 1 and version >= FIRST_REPLICA_STATE and size >= 12:
            replica_id, _ = _REPLICA_STATE(memory, p)
        p += size
    return replica_id, p


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
    if count < 0 or count * smallest > end - p:
        raise MalformedRequest(f"array of {count} elements in {end - p} bytes")
    return count, p + 4


def _compact_count(memory: memoryview, p: int, end: int, smallest: int) -> tuple[int, int]:
    count, p = read_uvarint(memory, p, end)
    if count < 1 or (count - 1) * smallest > end - p:
        raise MalformedRequest(f"array of {count - 1} elements in {end - p} bytes")
    return count - 1, p


def _check_end(position: int, end: int) -> None:
    if position != end:
        raise MalformedRequest(f"Fetch request: {end - position} bytes after its end")


# The answer ---------------------------------------------------------------------------------------

_P4 = Struct(
    ">ihqqii"
)  # partition, error, high watermark, last stable offset, aborted (0, or -1: null), records length
_P5 = Struct(">ihqqqii")  # … with the log start offset
_P11 = Struct(">ihqqqiii")  # … with the preferred read replica (-1)
_P12 = Struct(">ihqqqbi")  # compact: aborted is one byte, then preferred read replica
_TOP_4 = Struct(">ii")
_TOP_7 = Struct(">ihii")
_TOP_12 = Struct(">ihi")


def top(
    version: int, throttle_ms: int, error_code: int, session_id: int, topic_count: int
) -> bytes:
    """The response body up to its first topic."""
    if version >= FIRST_FLEXIBLE:
        return _TOP_12.pack(throttle_ms, error_code, session_id) + uvarint(topic_count + 1)
    if version >= 7:
        return _TOP_7.pack(throttle_ms, error_code, session_id, topic_count)
    return _TOP_4.pack(throttle_ms, topic_count)


def topic_head(version: int, topic: bytes, partition_count: int) -> bytes:
    """What opens one topic entry."""
    if version >= FIRST_TOPIC_ID:
        return topic + uvarint(partition_count + 1)
    if version >= FIRST_FLEXIBLE:
        return uvarint(len(topic) + 1) + topic + uvarint(partition_count + 1)
    return len(topic).to_bytes(2, "big") + topic + partition_count.to_bytes(4, "big")


def partition_head(version: int, data: PartitionData) -> bytes:
    """One partition's fields up to and with the length of its records; the records follow."""
    _, partition, code, high_watermark, stable, start, length, committed = data
    aborted = 0 if committed else -1
    if version >= FIRST_FLEXIBLE:
        head = _P12.pack(partition, code, high_watermark, stable, start, aborted + 1, -1)
        return head + uvarint(length + 1)
    if version >= 11:
        return _P11.pack(partition, code, high_watermark, stable, start, aborted, -1, length)
    if version >= 5:
        return _P5.pack(partition, code, high_watermark, stable, start, aborted, length)
    return _P4.pack(partition, code, high_watermark, stable, aborted, length)


def partition_tail(version: int) -> bytes:
    """What follows the records of a partition: no tagged fields."""
    return b"\x00" if version >= FIRST_FLEXIBLE else b""


topic_tail = partition_tail  # a topic entry, and the body, end in the same way
body_tail = partition_tail
