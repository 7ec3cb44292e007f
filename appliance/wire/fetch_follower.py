"""Fetch (API key 1, versions 13 to 17) as a follower speaks it: the request as bytes, the answer
where it was received.

Records are named as a view of the answer, so they go from the receive buffer to the file. Sources:
KIP-227 (sessions), KIP-516 (topic ids), KIP-595 (diverging epoch), KIP-903 (replica state).
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct, error
from typing import Final, NamedTuple, TypeVar

from appliance.base.errors import MalformedRequest
from appliance.wire.varint import read_uvarint, skip_tagged_fields, uvarint

VERSIONS: Final = range(13, 18)

_FIRST_STATE: Final = 15  # before it the replica id stands first, without an epoch
_I32: Final = Struct(">i")
_HEAD: Final = Struct(">iiibii")  # wait, min and max bytes, isolation level, session id and epoch
_PARTITION: Final = Struct(">iiqiqib")  # …, the last one: no tagged fields
_STATE: Final = Struct(">bbbiqb")  # one tagged field, its tag, its size, id, epoch, no tagged ones
_STATE_SIZE: Final = 13
_TOP: Final = Struct(">ihi")  # throttle time, error, session id
_ANSWER: Final = Struct(">ihqqq")  # partition, error, high watermark, last stable, log start
_ABORTED: Final = 16
_DIVERGING: Final = Struct(">iq")
_DIVERGING_TAG: Final = 0

T = TypeVar("T")

PartitionAsked = tuple[tuple[bytes, int], int, int, int, int]
"""(topic id, partition), leader epoch, fetch offset, last fetched epoch, log start offset."""


class FollowerFetchLimits(NamedTuple):
    """wait_ms, min_bytes: until when and for how much a leader may wait. max_bytes: of the answer.
    partition_bytes: of each partition in it."""

    wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_bytes: int


class FollowerPartitionAnswer(NamedTuple):
    """diverging: (epoch, end offset) where the logs part, or None."""

    topic_id: bytes
    partition: int
    error: int
    high_watermark: int
    log_start: int
    diverging: tuple[int, int] | None
    records: memoryview


class FollowerFetchAnswer(NamedTuple):
    """partitions: to be read once, in order; raises MalformedRequest."""

    error: int
    session_id: int
    partitions: Iterator[FollowerPartitionAnswer]


def encode(
    version: int,
    replica: tuple[int, int],
    limits: FollowerFetchLimits,
    session: tuple[int, int],
    partitions: Sequence[PartitionAsked],
    forgotten: Sequence[tuple[bytes, int]],
) -> bytes:
    """The body of a request. replica: broker id and epoch. session: id and epoch."""
    assert version in VERSIONS
    wait_ms, min_bytes, max_bytes, most = limits
    out = [_I32.pack(replica[0])] if version < _FIRST_STATE else []
    out.append(_HEAD.pack(wait_ms, min_bytes, max_bytes, 0, *session))
    topics = _by_topic((one[0][0], one) for one in partitions)
    out.append(uvarint(len(topics) + 1))
    for topic_id, asked in topics.items():
        out += (topic_id, uvarint(len(asked) + 1))
        for (_, index), epoch, offset, last_epoch, log_start in asked:
            out.append(_PARTITION.pack(index, epoch, offset, last_epoch, log_start, most, 0))
        out.append(b"\0")
    gone = _by_topic(forgotten)
    out.append(uvarint(len(gone) + 1))
    for topic_id, indexes in gone.items():
        out += (topic_id, uvarint(len(indexes) + 1))
        out += [_I32.pack(index) for index in indexes]
        out.append(b"\0")
    out.append(b"\x01")  # no rack
    if version < _FIRST_STATE:
        out.append(b"\0")
    else:
        out.append(_STATE.pack(1, 1, _STATE_SIZE, *replica, 0))
    return b"".join(out)


def _by_topic(keyed: Iterable[tuple[bytes, T]]) -> dict[bytes, list[T]]:
    found: dict[bytes, list[T]] = {}
    for topic_id, one in keyed:
        found.setdefault(topic_id, []).append(one)
    return found


def decode(body: memoryview) -> FollowerFetchAnswer:
    """The answer. Raises MalformedRequest."""
    try:
        _, code, session_id = _TOP.unpack_from(body)
    except error as cause:
        raise MalformedRequest("a Fetch answer ends inside a field") from cause
    return FollowerFetchAnswer(code, session_id, _partitions(body, _TOP.size))


def _partitions(body: memoryview, at: int) -> Iterator[FollowerPartitionAnswer]:
    end = len(body)
    try:
        topics, at = read_uvarint(body, at, end)
        for _ in range(topics - 1):
            topic_id = bytes(body[at : at + 16])
            count, at = read_uvarint(body, at + 16, end)
            for _ in range(count - 1):
                one, at = _partition(body, at, end, topic_id)
                yield one
            at = skip_tagged_fields(body, at, end)
    except (error, IndexError) as cause:
        raise MalformedRequest("a Fetch answer ends inside a field") from cause


def _partition(
    body: memoryview, at: int, end: int, topic_id: bytes
) -> tuple[FollowerPartitionAnswer, int]:
    index, code, high_watermark, _, log_start = _ANSWER.unpack_from(body, at)
    count, at = read_uvarint(body, at + _ANSWER.size, end)
    for _ in range(count - 1):
        at = skip_tagged_fields(body, at + _ABORTED, end)
    size, at = read_uvarint(body, at + _I32.size, end)  # behind the preferred read replica
    length = max(size - 1, 0)
    if at + length > end:
        raise MalformedRequest(f"{length} bytes of records, {end - at} remain")
    records = body[at : at + length]
    diverging, at = _tagged(body, at + length, end)
    answer = FollowerPartitionAnswer(
        topic_id, index, code, high_watermark, log_start, diverging, records
    )
    return answer, at


def _tagged(body: memoryview, at: int, end: int) -> tuple[tuple[int, int] | None, int]:
    """The diverging epoch, if there is one."""
    diverging = None
    count, at = read_uvarint(body, at, end)
    for _ in range(count):
        tag, at = read_uvarint(body, at, end)
        size, at = read_uvarint(body, at, end)
        if at + size > end:
            raise MalformedRequest(f"tagged field {tag} of {size} bytes, {end - at} remain")
        if tag == _DIVERGING_TAG and size >= _DIVERGING.size:
            diverging = _DIVERGING.unpack_from(body, at)
        at += size
    return diverging, at
