"""The few requests a load generator needs, encoded once, and where the answers keep their numbers.

Every answer asked for here names one topic and one partition, so its fields lie at fixed places:
reading one is a single unpack_from. Called by the generator and by the tests that speak raw bytes.
"""

from collections.abc import Sequence
from struct import Struct, pack, unpack_from
from typing import Final, NamedTuple

CLIENT_ID: Final = b"bench"
PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, ELECT_LEADERS, DESCRIBE_QUORUM = 18, 19, 20, 43, 55
END_FIELDS: Final = Struct(">hqq")


def string(text: str) -> bytes:
    """STRING: 2-byte length, then UTF-8."""
    raw = text.encode()
    return pack(">h", len(raw)) + raw


def compact(raw: bytes) -> bytes:
    """COMPACT_STRING or COMPACT_BYTES: unsigned varint of the length plus one, then the bytes."""
    return unsigned(len(raw) + 1) + raw


def unsigned(value: int) -> bytes:
    """UNSIGNED_VARINT."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def frame(
    key: int, version: int, correlation: int, body: bytes, *, flexible: bool = False
) -> bytes:
    """A whole request: length, header (v1, or v2 when flexible), body."""
    head = pack(">hhih", key, version, correlation, len(CLIENT_ID)) + CLIENT_ID
    if flexible:
        head += b"\0"
    return pack(">i", len(head) + len(body)) + head + body


def produce(
    topic: str, partition: int, records: bytes, acks: int, correlation: int, version: int = 7
) -> bytes:
    """Produce v7 (classic encoding) or v9 (flexible), one batch for one partition."""
    if version >= 9:
        body = b"\0" + pack(">hi", acks, 30_000) + b"\2" + compact(topic.encode())
        body += b"\2" + pack(">i", partition) + compact(records) + b"\0\0\0"
        return frame(PRODUCE, version, correlation, body, flexible=True)
    body = pack(">hhii", -1, acks, 30_000, 1) + string(topic)
    body += pack(">iii", 1, partition, len(records)) + records
    return frame(PRODUCE, version, correlation, body)


def fetch(
    topic: str,
    partition: int,
    offset: int,
    max_bytes: int,
    correlation: int,
    version: int = 4,
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    others: int = 0,
) -> bytes:
    """Fetch v4 (classic encoding) or v12 (flexible), one partition. In v12: the session's id and
    epoch, and how many partitions more, from their beginning."""
    head = pack(">iiiib", -1, max_wait_ms, min_bytes, 0x7FFFFFFF, 0)
    if version >= 12:
        body = head + pack(">ii", *session) + b"\2" + compact(topic.encode())
        body += unsigned(2 + others)
        for at in (offset, *[0] * others):
            body += pack(">iiqiqi", partition, -1, at, -1, -1, max_bytes) + b"\0"
            partition += 1
        return frame(FETCH, version, correlation, body + b"\0\1" + b"\1\0", flexible=True)
    body = head + pack(">i", 1) + string(topic) + pack(">iiqi", 1, partition, offset, max_bytes)
    return frame(FETCH, version, correlation, body)


def end_offset(topic: str, partition: int, correlation: int = 1) -> bytes:
    """ListOffsets v2 for the log end of one partition. The answer ends with error, timestamp and
    offset (END_FIELDS)."""
    body = pack(">ibi", -1, 0, 1) + string(topic) + pack(">iiq", 1, partition, -1)
    return frame(LIST_OFFSETS, 2, correlation, body)


def create_topic(
    name: str,
    partitions: int,
    configs: dict[str, str],
    correlation: int = 1,
    *,
    factor: int = 1,
    replicas: Sequence[Sequence[int]] = (),
) -> bytes:
    """CreateTopics v2. replicas: of each partition, when they are chosen by hand."""
    count, copies = (-1, -1) if replicas else (partitions, factor)
    body = pack(">i", 1) + string(name) + pack(">ihi", count, copies, len(replicas))
    for index, nodes in enumerate(replicas):
        body += pack(f">ii{len(nodes)}i", index, len(nodes), *nodes)
    body += pack(">i", len(configs))
    for key, value in configs.items():
        body += string(key) + string(value)
    return frame(CREATE_TOPICS, 2, correlation, body + pack(">ib", 30_000, 0))


def delete_topic(name: str, correlation: int = 1) -> bytes:
    """DeleteTopics v1."""
    body = pack(">i", 1) + string(name) + pack(">i", 30_000)
    return frame(DELETE_TOPICS, 1, correlation, body)


def metadata(names: list[str], correlation: int = 1) -> bytes:
    """Metadata v4 without auto-creation."""
    body = pack(">i", len(names)) + b"".join(string(name) for name in names) + b"\0"
    return frame(METADATA, 4, correlation, body)


class Led(NamedTuple):
    """A partition as Metadata tells it. leader: -1 for none."""

    leader: int
    isr: tuple[int, ...]


def known(answer: bytes) -> tuple[list[int], dict[int, Led]]:
    """The brokers, and the partitions of the only topic, of an answer to `metadata`; none while it
    is not known."""
    (count,) = unpack_from(">i", answer, 4)
    at, brokers = 8, []
    for _ in range(count):
        number, host = unpack_from(">ih", answer, at)
        (rack,) = unpack_from(">h", answer, at + 10 + host)
        brokers.append(number)
        at += 12 + host + max(rack, 0)
    (cluster,) = unpack_from(">h", answer, at)
    at += 6 + max(cluster, 0)
    topics, _, name = unpack_from(">ihh", answer, at)
    assert topics == 1, topics
    at += 9 + name
    (count,) = unpack_from(">i", answer, at)
    at += 4
    partitions = {}
    for _ in range(count):
        _, index, leader, replicas = unpack_from(">hiii", answer, at)
        at += 14 + 4 * replicas
        (size,) = unpack_from(">i", answer, at)
        partitions[index] = Led(leader, unpack_from(f">{size}i", answer, at + 4))
        at += 4 + 4 * size
    return brokers, partitions


def describe_quorum(correlation: int = 1) -> bytes:
    """DescribeQuorum v0 of the metadata log. `QUORUM_LEADER` reads its answer."""
    body = b"\2" + compact(b"__cluster_metadata") + b"\2" + pack(">i", 0) + b"\0\0\0"
    return frame(DESCRIBE_QUORUM, 0, correlation, body, flexible=True)


def elect_preferred(correlation: int = 1) -> bytes:
    """ElectLeaders v0: the preferred leaders, of all partitions."""
    return frame(ELECT_LEADERS, 0, correlation, pack(">ii", -1, 60_000))


QUORUM_LEADER: Final = Struct(">xhx19xxihi")
"""Of an answer to `describe_quorum`: error, partition, its error, the leader."""


def api_versions(correlation: int = 1) -> bytes:
    """ApiVersions v0."""
    return frame(API_VERSIONS, 0, correlation, b"")


class Shape(NamedTuple):
    """Where an answer keeps its numbers. size: bytes of the whole answer, length field included
    (for Fetch: of everything before the records)."""

    size: int
    correlation: int
    fields: Struct
    at: int


def produce_shape(topic: str, version: int) -> Shape:
    """Fields: error code, base offset."""
    name = len(topic.encode())
    if version >= 9:
        at = 8 + 1 + 1 + len(compact(topic.encode())) + 1 + 4
        return Shape(at + 2 + 8 + 8 + 8 + 1 + 1 + 1 + 1 + 4 + 1, 4, Struct(">hq"), at)
    at = 8 + 4 + 2 + name + 4 + 4
    return Shape(at + 2 + 8 + 8 + 8 + 4, 4, Struct(">hq"), at)


def fetch_shape(topic: str, version: int) -> Shape:
    """Fields: error code, high watermark. What follows (aborted list, records) is read by the
    caller.
    """
    if version >= 12:
        at = 8 + 1 + 4 + 2 + 4 + 1 + len(compact(topic.encode())) + 1 + 4
        return Shape(at + 2 + 8 + 8 + 8 + 1 + 4, 4, Struct(">hq"), at)
    at = 8 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    return Shape(at + 2 + 8 + 8 + 4 + 4, 4, Struct(">hq"), at)
