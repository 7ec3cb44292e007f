"""Produce (API key 0, versions 0 to 13) by hand: it is the hot path, and its record bytes must stay
where they are.

`parse` names each batch by its place in the buffer and copies nothing but topic names. Versions 0-8
have fixed lengths (0-2 no transactional id), 9 and later compact ones with tagged fields (KIP-482),
13 a topic id in place of the name (KIP-516).
"""

from collections.abc import Generator
from functools import partial
from struct import Struct, error
from struct import pack as _pack
from typing import Final, NamedTuple

from appliance.base.errors import MalformedRequest
from appliance.config.bounds import ELEMENTS
from appliance.wire.varint import SMALL, STRING_MAX, read_uvarint, skip_tagged_fields, uvarint

HIGHEST = 13
FIRST_BATCHES = 3
FIRST_ZSTD = 7
FIRST_FLEXIBLE = 9
FIRST_TOPIC_ID = 13
FIRST_RECORD_ERRORS = 8
FIRST_LEADER = 10
SLICE: Final = 256
"""Partitions between two stops, some hundred µs."""
_ANY_NUMBER: Final = 1 << 62

_I16 = Struct(">h").unpack_from
_I32 = Struct(">i").unpack_from
_ACKS_TIMEOUT_COUNT = Struct(">hii").unpack_from
_ACKS_TIMEOUT_COUNT8 = Struct(">hiB").unpack_from  # the last one is a varint's first byte
_INDEX_LENGTH = Struct(">ii").unpack_from
_INDEX_LENGTH8 = Struct(">iB").unpack_from
_ONE_BYTE: Final = 127  # the largest value of a varint of one byte


class ManyBatches(Exception):
    """The request names more partitions than are to be parsed at once."""


class Batch(NamedTuple):
    """One partition's records: `position` and `length` (bytes) name them in the buffer."""

    topic: bytes  # name in UTF-8, or the 16-byte topic id from version 13 on
    partition: int
    position: int
    length: int  # -1: null


class ProduceRequest(NamedTuple):
    transactional_id: bytes | None
    acks: int
    timeout_ms: int
    batches: list[Batch]  # in request order; those of one topic entry follow one another
    topics: list[tuple[bytes, int]]  # every topic entry, with the number of batches up to its end


class RecordError(NamedTuple):
    """A record that a batch was refused for: its index in the batch, and why."""

    batch_index: int
    message: str


class PartitionAnswer(NamedTuple):
    """The result of one batch. Times in ms, -1 where there is none. leader: who leads the
    partition, as tagged fields (`wire/leaders.py`).
    """

    error: int
    base_offset: int
    log_append_time: int
    log_start_offset: int
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    leader: bytes = b"\x00"


# The constructor of a NamedTuple is a function of Python: 0.25 µs. These are of C.
_batch: Final = partial(tuple.__new__, Batch)
_request: Final = partial(tuple.__new__, ProduceRequest)
answered: Final = partial(tuple.__new__, PartitionAnswer)
"""A PartitionAnswer of one tuple with all its fields."""


def parse(
    memory: memoryview, position: int, end: int, version: int, most: int = _ANY_NUMBER
) -> ProduceRequest:
    """Parse the body that lies at memory[position:end]. Raises MalformedRequest, never reads past
    `end`, and ManyBatches when it names more than `most` topics and partitions."""
    p = position
    try:
        if version < FIRST_FLEXIBLE:
            return _parse_fixed(memory, p, end, version, most)
        body = memory[:end]  # what lies behind belongs to others: reading there is an IndexError
        size = body[p]
        p += 1
        if size > _ONE_BYTE:
            size, p = read_uvarint(body, p - 1, end)
        transactional_id = None
        if size > 0:
            _check_string(size - 1, end - p)
            transactional_id = bytes(body[p : p + size - 1])
            p += size - 1
        acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT8(body, p)
        p += 7
        if topic_count > _ONE_BYTE:
            topic_count, p = read_uvarint(body, p - 1, end)
        if not 0 < topic_count <= 1 + (end - p) // 3:
            raise _too_many(topic_count - 1, end - p)
        batches: list[Batch] = []
        topics: list[tuple[bytes, int]] = []
        for _ in range(topic_count - 1):
            p = _add_topic(body, p, end, version, batches, topics, most)
        if body[p]:
            p = skip_tagged_fields(body, p, end)
        else:
            p += 1
        if p != end:
            raise _not_at_its_end(p, end)
        return _request((transactional_id, acks, timeout_ms, batches, topics))
    except (error, IndexError) as cause:
        raise MalformedRequest("Produce request ends inside a field") from cause


def _add_topic(
    body: memoryview,
    p: int,
    end: int,
    version: int,
    batches: list[Batch],
    topics: list[tuple[bytes, int]],
    most: int,
) -> int:
    """One topic entry at `p`, added to the lists; the position after it. Raises ManyBatches."""
    size = 17
    if version < FIRST_TOPIC_ID:
        size, p = body[p], p + 1
        if size > _ONE_BYTE:
            size, p = read_uvarint(body, p - 1, end)
    if not 0 < size <= STRING_MAX + 1 or p + size - 1 > end:
        raise MalformedRequest(f"topic name of {size - 1} bytes, {end - p} remain")
    topic = bytes(body[p : p + size - 1])
    p += size - 1
    count, p = body[p], p + 1
    if count > _ONE_BYTE:
        count, p = read_uvarint(body, p - 1, end)
    if not 0 < count <= 1 + (end - p) // 6:
        raise _too_many(count - 1, end - p)
    if len(topics) + len(batches) + count > most:
        raise ManyBatches
    for _ in range(count - 1):
        partition, length = _INDEX_LENGTH8(body, p)
        p += 5
        if length > _ONE_BYTE:
            if body[p] <= _ONE_BYTE:  # less than 16 KB, as most are
                length, p = length - 128 | body[p] << 7, p + 1
            else:
                length, p = read_uvarint(body, p - 1, end)
        length -= 1
        if p + length > end:
            raise MalformedRequest(f"records of {length} bytes, {end - p} remain")
        batches.append(_batch((topic, partition, p, length)))
        if length > 0:
            p += length
        p = skip_tagged_fields(body, p, end) if body[p] else p + 1
    topics.append((topic, len(batches)))
    return skip_tagged_fields(body, p, end) if body[p] else p + 1


def parse_in_slices(
    memory: memoryview, position: int, end: int, version: int, most: int
) -> Generator[None, None, ProduceRequest]:
    """The request that `parse` gives, with a stop after every SLICE partitions. Raises
    MalformedRequest, also for more than `most` topics and partitions."""
    try:
        return (yield from _parse_slices(memory[:end], position, end, version, most))
    except (error, IndexError) as cause:
        raise MalformedRequest("Produce request ends inside a field") from cause


def _parse_slices(
    body: memoryview, p: int, end: int, version: int, most: int
) -> Generator[None, None, ProduceRequest]:
    flexible = version >= FIRST_FLEXIBLE
    head = _head_flexible(body, p, end) if flexible else _head_fixed(body, p, end, version)
    transactional_id, acks, timeout_ms, topic_count, p = head
    batches: list[Batch] = []
    topics: list[tuple[bytes, int]] = []
    done = 0
    for _ in range(topic_count):
        if flexible:
            topic, left, p = _topic_flexible(body, p, end, version)
        else:
            topic, left, p = _topic_fixed(body, p, end)
        if len(topics) + len(batches) + left >= most:
            raise MalformedRequest(
                f"more than {most} topics and partitions (penstock.request.max.elements)", ELEMENTS
            )
        while left:
            count = min(left, SLICE)
            if flexible:
                p = _batches_flexible(body, p, end, topic, count, batches)
            else:
                p = _batches_fixed(body, p, end, topic, count, batches)
            left -= count
            if left:
                yield
        topics.append((topic, len(batches)))
        if flexible:
            p = skip_tagged_fields(body, p, end) if body[p] else p + 1
        if len(topics) + len(batches) - done >= SLICE:
            done = len(topics) + len(batches)
            yield
    if flexible:
        p = skip_tagged_fields(body, p, end) if body[p] else p + 1
    if p != end:
        raise _not_at_its_end(p, end)
    return _request((transactional_id, acks, timeout_ms, batches, topics))


def _head_flexible(body: memoryview, p: int, end: int) -> tuple[bytes | None, int, int, int, int]:
    """(transactional id, acks, timeout in ms, topics, position of the first topic)."""
    size = body[p]
    p += 1
    if size > _ONE_BYTE:
        size, p = read_uvarint(body, p - 1, end)
    transactional_id = None
    if size > 0:
        _check_string(size - 1, end - p)
        transactional_id = bytes(body[p : p + size - 1])
        p += size - 1
    acks, timeout_ms, count = _ACKS_TIMEOUT_COUNT8(body, p)
    p += 7
    if count > _ONE_BYTE:
        count, p = read_uvarint(body, p - 1, end)
    if not 0 < count <= 1 + (end - p) // 3:
        raise _too_many(count - 1, end - p)
    return transactional_id, acks, timeout_ms, count - 1, p


def _head_fixed(
    body: memoryview, p: int, end: int, version: int
) -> tuple[bytes | None, int, int, int, int]:
    transactional_id, size = None, -1
    if version >= FIRST_BATCHES:
        (size,) = _I16(body, p)
        p += 2
    if size >= 0:
        _check_string(size, end - p)
        transactional_id = bytes(body[p : p + size])
        p += size
    acks, timeout_ms, count = _ACKS_TIMEOUT_COUNT(body, p)
    p += 10
    _check_count(count, end - p, 6)
    return transactional_id, acks, timeout_ms, count, p


def _parse_fixed(memory: memoryview, p: int, end: int, version: int, most: int) -> ProduceRequest:
    transactional_id, acks, timeout_ms, topic_count, p = _head_fixed(memory, p, end, version)
    batches: list[Batch] = []
    topics: list[tuple[bytes, int]] = []
    for _ in range(topic_count):
        topic, count, p = _topic_fixed(memory, p, end)
        if len(topics) + len(batches) + count > most:
            raise ManyBatches
        p = _batches_fixed(memory, p, end, topic, count, batches)
        topics.append((topic, len(batches)))
    if p != end:
        raise _not_at_its_end(p, end)
    return _request((transactional_id, acks, timeout_ms, batches, topics))


def _topic_fixed(memory: memoryview, p: int, end: int) -> tuple[bytes, int, int]:
    """(name, partitions, position of the first one) of the topic entry at `p`."""
    (size,) = _I16(memory, p)
    p += 2
    if size < 0 or p + size > end:
        raise MalformedRequest(f"topic name of {size} bytes, {end - p} remain")
    topic = bytes(memory[p : p + size])
    p += size
    (count,) = _I32(memory, p)
    p += 4
    _check_count(count, end - p, 8)
    return topic, count, p


def _batches_fixed(
    memory: memoryview, p: int, end: int, topic: bytes, count: int, batches: list[Batch]
) -> int:
    """Add the next `count` partitions; the position behind them."""
    for _ in range(count):
        partition, length = _INDEX_LENGTH(memory, p)
        p += 8
        if length < -1 or p + length > end:
            raise MalformedRequest(f"records of {length} bytes, {end - p} remain")
        batches.append(_batch((topic, partition, p, length)))
        if length > 0:
            p += length
    return p


def _topic_flexible(body: memoryview, p: int, end: int, version: int) -> tuple[bytes, int, int]:
    """(name or id, partitions, position of the first one) of the topic entry at `p`."""
    size = 17
    if version < FIRST_TOPIC_ID:
        size, p = body[p], p + 1
        if size > _ONE_BYTE:
            size, p = read_uvarint(body, p - 1, end)
    if not 0 < size <= STRING_MAX + 1 or p + size - 1 > end:
        raise MalformedRequest(f"topic name of {size - 1} bytes, {end - p} remain")
    topic = bytes(body[p : p + size - 1])
    p += size - 1
    count, p = body[p], p + 1
    if count > _ONE_BYTE:
        count, p = read_uvarint(body, p - 1, end)
    if not 0 < count <= 1 + (end - p) // 6:
        raise _too_many(count - 1, end - p)
    return topic, count - 1, p


def _batches_flexible(
    body: memoryview, p: int, end: int, topic: bytes, count: int, batches: list[Batch]
) -> int:
    """Add the next `count` partitions; the position behind them."""
    for _ in range(count):
        partition, length = _INDEX_LENGTH8(body, p)
        p += 5
        if length > _ONE_BYTE:
            if body[p] <= _ONE_BYTE:  # less than 16 KB, as most are
                length, p = length - 128 | body[p] << 7, p + 1
            else:
                length, p = read_uvarint(body, p - 1, end)
        length -= 1
        if p + length > end:
            raise MalformedRequest(f"records of {length} bytes, {end - p} remain")
        batches.append(_batch((topic, partition, p, length)))
        if length > 0:
            p += length
        p = skip_tagged_fields(body, p, end) if body[p] else p + 1
    return p


def _check_string(size: int, remaining: int) -> None:
    """Checks that a string lies within the request: bytes behind it belong to another one."""
    if size > remaining or size > STRING_MAX:
        raise MalformedRequest(
            f"transactional id of {size} bytes, {remaining} remain, at most {STRING_MAX} are taken"
        )


def _check_count(count: int, remaining: int, smallest: int) -> None:
    """An array of `count` elements of at least `smallest` bytes must fit what remains, before
    anything is allocated."""
    if count < 0 or count * smallest > remaining:
        raise _too_many(count, remaining)


def _too_many(count: int, remaining: int) -> MalformedRequest:
    return MalformedRequest(f"array of {count} elements in {remaining} bytes")


def _not_at_its_end(position: int, end: int) -> MalformedRequest:
    return MalformedRequest(f"Produce request: {end - position} bytes after its end")


_FIXED_5 = Struct(">ihqqq")
_FIXED_2 = Struct(">ihqq")
_NO_ERRORS_NO_MESSAGE = b"\x00\x00\x00\x00\xff\xff"
_NOTHING_FLEXIBLE = b"\x01\x00\x00"  # no record errors, null message, no tags


def encode(
    request: ProduceRequest, answers: list[PartitionAnswer], version: int, throttle_ms: int
) -> bytes:
    """The response body (no header) to `request`; answers[i] belongs to request.batches[i]. Of a
    flexible version the last byte says that there are no tagged fields."""
    if version < FIRST_FLEXIBLE:
        return _encode_fixed(request, answers, version, throttle_ms)
    count = len(request.topics) + 1
    out = [SMALL[count] if count <= _ONE_BYTE else uvarint(count)]
    first = 0
    for topic, last in request.topics:
        if version < FIRST_TOPIC_ID:
            size = len(topic) + 1
            out.append(SMALL[size] if size <= _ONE_BYTE else uvarint(size))
        out.append(topic)
        count = last - first + 1
        out.append(SMALL[count] if count <= _ONE_BYTE else uvarint(count))
        for batch, answer in zip(request.batches[first:last], answers[first:last], strict=True):
            out.append(_FIXED_5.pack(batch.partition, *answer[:4]))
            out.append(_NOTHING_FLEXIBLE if answer.message is None else _message_flexible(answer))
        out.append(b"\x00")
        first = last
    out.append(_pack(">ib", throttle_ms, 0))
    return b"".join(out)


def _encode_fixed(
    request: ProduceRequest, answers: list[PartitionAnswer], version: int, throttle_ms: int
) -> bytes:
    out = [_count_of_topics(request, flexible=False)]
    first = 0
    for topic, last in request.topics:
        out.append(_topic_head(topic, last - first, version))
        _add_answers_fixed(out, request.batches, answers, first, last, version)
        first = last
    return b"".join(out) + (_pack(">i", throttle_ms) if version else b"")


def encode_in_slices(
    request: ProduceRequest, answers: list[PartitionAnswer], version: int, throttle_ms: int
) -> Generator[None, None, bytes]:
    """The body that `encode` gives, with a stop after every SLICE topics and partitions."""
    flexible = version >= FIRST_FLEXIBLE
    out = [_count_of_topics(request, flexible=flexible)]
    first = done = 0
    for topic, last in request.topics:
        out.append(_topic_head(topic, last - first, version))
        while first < last:
            end = min(last, first + SLICE)
            _add_answers(out, request.batches, answers, first, end, version)
            first = end
            if first < last:
                yield
        if flexible:
            out.append(b"\x00")
        if len(out) - done >= SLICE:
            done = len(out)
            yield
    pause = _pack(">ib", throttle_ms, 0) if flexible else _pack(">i", throttle_ms)
    return b"".join(out) + (pause if version else b"")


def _count_of_topics(request: ProduceRequest, *, flexible: bool) -> bytes:
    count = len(request.topics)
    return uvarint(count + 1) if flexible else _pack(">i", count)


def _topic_head(topic: bytes, count: int, version: int) -> bytes:
    """The bytes before the answers for `count` partitions of a topic."""
    if version < FIRST_FLEXIBLE:
        return _pack(f">h{len(topic)}si", len(topic), topic, count)
    if version >= FIRST_TOPIC_ID:
        return topic + uvarint(count + 1)
    return uvarint(len(topic) + 1) + topic + uvarint(count + 1)


def _add_answers(
    out: list[bytes], batches: list[Batch], answers: list[PartitionAnswer], first: int, last: int,
    version: int,
) -> None:  # fmt: skip
    """Add the answers for these partitions of one topic."""
    if version < FIRST_FLEXIBLE:
        _add_answers_fixed(out, batches, answers, first, last, version)
        return
    for batch, answer in zip(batches[first:last], answers[first:last], strict=True):
        out.append(_FIXED_5.pack(batch.partition, *answer[:4]))
        out.append(_NOTHING_FLEXIBLE if answer.message is None else _message_flexible(answer))


def _add_answers_fixed(
    out: list[bytes], batches: list[Batch], answers: list[PartitionAnswer], first: int, last: int,
    version: int,
) -> None:  # fmt: skip
    for batch, answer in zip(batches[first:last], answers[first:last], strict=True):
        if version >= 5:
            out.append(_FIXED_5.pack(batch.partition, *answer[:4]))
        elif version >= 2:
            out.append(_FIXED_2.pack(batch.partition, *answer[:3]))
        else:
            out.append(_pack(">ihq", batch.partition, *answer[:2]))
        if version >= 8:
            out.append(_message_fixed(answer))


def _message_fixed(answer: PartitionAnswer) -> bytes:
    if answer.message is None:
        return _NO_ERRORS_NO_MESSAGE
    out = [_pack(">i", len(answer.record_errors))]
    for one in answer.record_errors:
        why = one.message.encode()[:STRING_MAX]
        out.append(_pack(f">ih{len(why)}s", one.batch_index, len(why), why))
    text = answer.message.encode()[:STRING_MAX]
    out.append(_pack(f">h{len(text)}s", len(text), text))
    return b"".join(out)


def _message_flexible(answer: PartitionAnswer) -> bytes:
    assert answer.message is not None, "who is told of a leader is told why"
    out = [uvarint(len(answer.record_errors) + 1)]
    for one in answer.record_errors:
        why = one.message.encode()
        out += (_pack(">i", one.batch_index), uvarint(len(why) + 1), why, b"\x00")
    text = answer.message.encode()
    out += (uvarint(len(text) + 1), text, answer.leader)
    return b"".join(out)
