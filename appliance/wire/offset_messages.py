"""OffsetCommit (API key 8) and OffsetFetch (9) by hand: consumers send the one more often than any
other request for their group, monitors ask for thousands of groups in the other.

What is read has the fields that kio's classes have, except that a topic's id is 16 bytes. Readers
raise one of `fields.UNREADABLE`, and hold every count and length against the bytes that remain
before anything is allocated. What is written is what the schemas write of the same plain values.
Callers: `messages.decode_request`, `plain.encode`, and the network process, which splits a fetch.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from struct import Struct
from typing import Any, Final

from appliance.wire.fields import read_uvarint
from appliance.wire.varint import STRING_MAX

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
COMMIT_VERSIONS: Final = range(5, 11)
FETCH_VERSIONS: Final = range(8, 11)
SPLIT: Final = 256
"""Topics and groups between two stops, some hundred µs."""
_FLEXIBLE_COMMIT: Final = 8
_IDS_SINCE: Final = 10

_TAGS_MAX: Final = 16
"""Tagged fields of one struct: this schema has none, and a later one has a few."""

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_ROW: Final = Struct(">iqi")  # partition, offset, leader epoch
_ROW_WITHOUT_EPOCH: Final = Struct(">iq")
_CODE: Final = Struct(">ih")  # partition, error code
_CODE_FLEXIBLE: Final = Struct(">ihx")
_FETCHED: Final = Struct(">iqi")
_NOBODY_ALL: Final = {8: b"\0\0", 9: b"\0\xff\xff\xff\xff\0\0", 10: b"\0\xff\xff\xff\xff\0\0"}
"""What follows a group's name in a fetch of all its offsets that no member makes."""


class CommitPartition:
    """committed_metadata: null is allowed."""

    __slots__ = (
        "committed_leader_epoch",
        "committed_metadata",
        "committed_offset",
        "partition_index",
    )

    def __init__(self, partition: int, offset: int, epoch: int, metadata: str | None) -> None:
        self.partition_index = partition
        self.committed_offset = offset
        self.committed_leader_epoch = epoch
        self.committed_metadata = metadata


class CommitTopic:
    """name: up to version 9, then topic_id."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: list[CommitPartition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class Commit:
    """An OffsetCommit request."""

    __slots__ = (
        "generation_id_or_member_epoch",
        "group_id",
        "group_instance_id",
        "member_id",
        "topics",
    )

    def __init__(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        topics: list[CommitTopic],
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation
        self.member_id = member_id
        self.group_instance_id = instance_id
        self.topics = topics


class FetchTopic:
    """name: up to version 9, then topic_id."""

    __slots__ = ("name", "partition_indexes", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partition_indexes: Sequence[int]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = partition_indexes


class FetchGroup:
    """topics None: all of them."""

    __slots__ = ("group_id", "member_epoch", "member_id", "topics")

    def __init__(
        self,
        group_id: str,
        member_id: str | None,
        member_epoch: int,
        topics: list[FetchTopic] | None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = topics


class OffsetFetch:
    """An OffsetFetch request."""

    __slots__ = ("groups", "require_stable")

    def __init__(self, groups: list[FetchGroup], require_stable: bool) -> None:
        self.groups = groups
        self.require_stable = require_stable


# Reading ------------------------------------------------------------------------------------------


def _text(data: bytes, at: int, flexible: bool) -> tuple[str | None, int]:
    """(text or None for null, next position)."""
    if flexible:
        length = data[at]
        at += 1
        if length > 127:
            length, at = read_uvarint(data, at - 1)
        length -= 1
    else:
        length = _SHORT.unpack_from(data, at)[0]
        at += 2
    if length <= 0:
        if length < -1:
            raise ValueError(f"string of {length} bytes")
        return (None if length else ""), at
    end = at + length
    if length > STRING_MAX or end > len(data):
        raise ValueError(f"string of {length} bytes, {len(data) - at} remain")
    return data[at:end].decode(), end


def _named(data: bytes, at: int, flexible: bool) -> tuple[str, int]:
    """A text that cannot be null."""
    text, at = _text(data, at, flexible)
    if text is None:
        raise ValueError("null for a string that cannot be null")
    return text, at


def _count(data: bytes, at: int, flexible: bool, least: int) -> tuple[int, int]:
    """(elements of an array or -1 for null, next position); each takes `least` bytes."""
    if flexible:
        count = data[at]
        at += 1
        if count > 127:
            count, at = read_uvarint(data, at - 1)
        count -= 1
    else:
        count = _INT.unpack_from(data, at)[0]
        at += 4
    if count < -1 or count * least > len(data) - at:
        raise ValueError(f"array of {count} elements in {len(data) - at} bytes")
    return count, at


def _tags(data: bytes, at: int) -> int:
    """The position after tagged fields, none of which is known."""
    count = data[at]
    if count == 0:
        return at + 1
    count, at = read_uvarint(data, at)
    if count > _TAGS_MAX:
        raise ValueError(f"{count} tagged fields, at most {_TAGS_MAX} are taken")
    for _ in range(count):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
        if at > len(data):
            raise ValueError(f"tagged field of {size} bytes ends beyond the request")
    return at


def read_commit(version: int, data: bytes, elements_max: int) -> Commit:
    """An OffsetCommit request of one of COMMIT_VERSIONS. elements_max: of all its arrays."""
    flexible = version >= _FLEXIBLE_COMMIT
    group_id, at = _named(data, 0, flexible)
    generation: int = _INT.unpack_from(data, at)[0]
    member_id, at = _named(data, at + 4, flexible)
    instance_id = None
    if version >= 7:
        instance_id, at = _text(data, at, flexible)
    count, at = _count(data, at, flexible, 3)
    left = elements_max - count
    topics: list[CommitTopic] = []
    if count < 0 or left < 0:
        raise ValueError(f"{count} topics")
    for _ in range(count):
        name, topic_id = "", b""
        if version >= _IDS_SINCE:
            topic_id = data[at : at + 16]
            at += 16
        else:
            name, at = _named(data, at, flexible)
        rows, at = _count(data, at, flexible, 12)
        left -= rows
        if rows < 0 or left < 0:
            raise ValueError(f"{rows} partitions")
        partitions: list[CommitPartition] = []
        for _ in range(rows):
            epoch = -1
            if version >= 6:
                partition, offset, epoch = _ROW.unpack_from(data, at)
                at += 16
            else:
                partition, offset = _ROW_WITHOUT_EPOCH.unpack_from(data, at)
                at += 12
            metadata, at = _text(data, at, flexible)
            if flexible:
                at = _tags(data, at)
            partitions.append(CommitPartition(partition, offset, epoch, metadata))
        if flexible:
            at = _tags(data, at)
        topics.append(CommitTopic(name, topic_id, partitions))
    if flexible:
        _tags(data, at)
    return Commit(group_id, generation, member_id, instance_id, topics)


def _plain_group(data: bytes, at: int, rest: bytes) -> tuple[str, int]:
    """(the name, next position) of a group that a monitor asks for: `rest` follows the name.
    Position -1: it is another kind of group."""
    end = at + data[at]
    if 1 < data[at] < 128 and data.startswith(rest, end):
        return data[at + 1 : end].decode(), end + len(rest)
    return "", -1


def _fetch_group(version: int, data: bytes, at: int, left: int) -> tuple[FetchGroup, int, int]:
    """(the group at this position, next position, array elements that may still come)."""
    name, end = _plain_group(data, at, _NOBODY_ALL[version])
    if end > 0:
        return FetchGroup(name, None, -1, None), end, left
    group_id, at = _named(data, at, True)
    member_id, member_epoch = None, -1
    if version >= 9:
        member_id, at = _text(data, at, True)
        member_epoch = _INT.unpack_from(data, at)[0]
        at += 4
    count, at = _count(data, at, True, 3)
    topics: list[FetchTopic] | None = None
    if count >= 0:
        topics = []
        left -= count
        for _ in range(count):
            name, topic_id = "", b""
            if version >= _IDS_SINCE:
                topic_id = data[at : at + 16]
                at += 16
            else:
                name, at = _named(data, at, True)
            rows, at = _count(data, at, True, 4)
            left -= rows
            if rows < 0 or left < 0:
                raise ValueError(f"{rows} partitions")
            indexes = [_INT.unpack_from(data, at + 4 * row)[0] for row in range(rows)]
            at = _tags(data, at + 4 * rows)
            topics.append(FetchTopic(name, topic_id, indexes))
    at = _tags(data, at)
    if left < 0:
        raise ValueError("more elements in one message than are taken")
    return FetchGroup(group_id, member_id, member_epoch, topics), at, left


def read_fetch(version: int, data: bytes, elements_max: int) -> OffsetFetch:
    """An OffsetFetch request of one of FETCH_VERSIONS. elements_max: of all its arrays."""
    count, at = _count(data, 0, True, 3)
    if count < 0:
        raise ValueError("null for an array that cannot be null")
    groups: list[FetchGroup] = []
    left = elements_max - count
    for _ in range(count):
        group, at, left = _fetch_group(version, data, at, left)
        groups.append(group)
    require_stable = data[at] != 0
    _tags(data, at + 1)
    return OffsetFetch(groups, require_stable)


def split_fetch(
    version: int,
    data: bytes,
    elements_max: int,
    partition_of: Callable[[str, int], int],
    partitions: int,
) -> list[tuple[int, bytes]]:
    """(partition, the request for its groups) for each partition that has one of the groups, in
    ascending order; for one at least: the first, by who asks about no group."""
    count, at = _count(data, 0, True, 3)
    if count < 0:
        raise ValueError("null for an array that cannot be null")
    found: dict[int, list[bytes]] = {}
    left = elements_max - count
    plain = _NOBODY_ALL[version]
    for _ in range(count):
        begin = at
        name, at = _plain_group(data, begin, plain)
        if at < 0:
            group, at, left = _fetch_group(version, data, begin, left)
            name = group.group_id
        partition = partition_of(name, partitions)
        pieces = found.get(partition)
        if pieces is None:
            pieces = found[partition] = []
        pieces.append(data[begin:at])
    end = _tags(data, at + 1)
    if len(found) < 2:
        return [(next(iter(found), 0), data)]
    rest = data[at:end]
    asked: list[tuple[int, bytes]] = []
    for partition in sorted(found):
        pieces = found[partition]
        asked.append((partition, uvarint(len(pieces) + 1) + b"".join(pieces) + rest))
    return asked


def split_fetch_in_slices(
    version: int,
    data: bytes,
    elements_max: int,
    partition_of: Callable[[str, int], int],
    partitions: int,
) -> Generator[None, None, list[tuple[int, bytes]]]:
    """(partition, the request for some of its groups) for all of them, with a stop after every
    SPLIT topics and groups; a request has so many of them or one group. One at least is made. A
    group that no member asks all offsets of is asked once, however often it is named."""
    count, at = _count(data, 0, True, 3)
    if count < 0:
        raise ValueError("null for an array that cannot be null")
    found: dict[int, list[list[bytes]]] = {}
    sizes: dict[int, int] = {}
    plain, seen = _NOBODY_ALL[version], set[str]()
    left = [elements_max - count]
    for number in range(1, count + 1):
        begin, before = at, left[0]
        name, at = _plain_group(data, begin, plain)
        if at < 0:
            name, at = yield from _skip_group(version, data, begin, left)
        elif name in seen:
            continue
        else:
            seen.add(name)
        partition, size = partition_of(name, partitions), 1 + before - left[0]
        requests = found.setdefault(partition, [])
        if not requests or sizes[partition] + size > SPLIT:
            requests.append([])
            sizes[partition] = 0
        requests[-1].append(data[begin:at])
        sizes[partition] += size
        if number % SPLIT == 0:
            yield
    rest = data[at : _tags(data, at + 1)]
    asked = [
        (partition, uvarint(len(groups) + 1) + b"".join(groups) + rest)
        for partition in sorted(found)
        for groups in found[partition]
    ]
    return asked or [(0, data)]


def _skip_group(
    version: int, data: bytes, at: int, left: list[int]
) -> Generator[None, None, tuple[str, int]]:
    """(the name of the group at this position, next position), with a stop after every SPLIT
    topics. left: array elements that may still come."""
    group_id, at = _named(data, at, True)
    if version >= 9:
        _, at = _text(data, at, True)
        at += 4
    count, at = _count(data, at, True, 3)
    left[0] -= max(count, 0)
    for number in range(1, count + 1):
        if version >= _IDS_SINCE:
            at += 16
        else:
            _, at = _named(data, at, True)
        rows, at = _count(data, at, True, 4)
        left[0] -= rows
        if rows < 0 or left[0] < 0:
            raise ValueError(f"{rows} partitions")
        at = _tags(data, at + 4 * rows)
        if number % SPLIT == 0:
            yield
    return group_id, _tags(data, at)


# Writing ------------------------------------------------------------------------------------------


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    if value < 128:
        return _SMALL[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL: Final = [bytes((value,)) for value in range(128)]
_INTS: Final = [_INT.pack(value) for value in range(128)]


def _length(count: int, flexible: bool) -> bytes:
    """The length of an array."""
    if flexible:
        return uvarint(count + 1)
    return _INTS[count] if count < 128 else _INT.pack(count)


def _put_text(out: list[bytes], text: str | None, flexible: bool) -> None:
    if text is None:
        out.append(b"\0" if flexible else b"\xff\xff")
        return
    encoded = text.encode()
    size = len(encoded)
    assert size <= STRING_MAX, f"string of {size} bytes"
    out.append(uvarint(size + 1) if flexible else _SHORT.pack(size))
    out.append(encoded)


def write_commit(version: int, values: Mapping[str, Any]) -> bytes:
    """An OffsetCommit answer of one of COMMIT_VERSIONS."""
    flexible = version >= _FLEXIBLE_COMMIT
    topics = values["topics"]
    out = [_INT.pack(values["throttle_time"]), _length(len(topics), flexible)]
    row = _CODE_FLEXIBLE if flexible else _CODE
    for topic in topics:
        if version >= _IDS_SINCE:
            out.append(topic["topic_id"])
        else:
            _put_text(out, topic["name"], flexible)
        partitions = topic["partitions"]
        out.append(_length(len(partitions), flexible))
        for one in partitions:
            out.append(row.pack(one["partition_index"], one["error_code"]))  # noqa: PERF401
        if flexible:
            out.append(b"\0")
    if flexible:
        out.append(b"\0")
    return b"".join(out)


def write_fetch(version: int, values: Mapping[str, Any]) -> bytes:
    """An OffsetFetch answer of one of FETCH_VERSIONS."""
    groups = values["groups"]
    out = [_INT.pack(values["throttle_time"]), uvarint(len(groups) + 1)]
    for group in groups:
        _put_text(out, group["group_id"], True)
        topics = group["topics"]
        out.append(uvarint(len(topics) + 1))
        for topic in topics:
            if version >= _IDS_SINCE:
                out.append(topic["topic_id"])
            else:
                _put_text(out, topic["name"], True)
            partitions = topic["partitions"]
            out.append(uvarint(len(partitions) + 1))
            for one in partitions:
                out.append(
                    _FETCHED.pack(
                        one["partition_index"],
                        one["committed_offset"],
                        one.get("committed_leader_epoch", -1),
                    )
                )
                _put_text(out, one["metadata"], True)
                out.append(_SHORT.pack(one["error_code"]))
                out.append(b"\0")
            out.append(b"\0")
        out.append(_SHORT.pack(group.get("error_code", 0)))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)
