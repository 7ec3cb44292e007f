"""Requests of group members and committers, encoded by hand, and readers of their answers.

The oldest versions that carry what is needed: classic encodings for the classic protocol, flexible
ones where the consumer protocol (KIP-848) knows no other. Answers are taken without length and
correlation id. Called by the loads of groups and by the
tests that put many members into one process.
"""

from struct import Struct, pack, unpack_from
from typing import Final

from benchmarks.requests import compact, frame, string, unsigned

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
CONSUMER_HEARTBEAT = 68
_I16: Final = Struct(">h")


def find_coordinator(group: str, correlation: int = 0) -> bytes:
    """FindCoordinator v1. The answer's body: throttle time, error code, message, node, address."""
    return frame(FIND_COORDINATOR, 1, correlation, string(group) + b"\0")


def commit(
    group: str,
    places: list[tuple[str, int, int]],
    correlation: int,
    generation: int = -1,
    member: str = "",
) -> bytes:
    """OffsetCommit v7 of (topic, partition, offset)."""
    body = string(group) + pack(">i", generation) + string(member) + b"\xff\xff"
    body += pack(">i", len(places))
    for topic, partition, offset in places:
        body += string(topic) + pack(">iiqi", 1, partition, offset, -1) + string("")
    return frame(OFFSET_COMMIT, 7, correlation, body)


def consumer_commit(
    group: str, topic: str, offsets: dict[int, int], epoch: int, member: str, correlation: int
) -> bytes:
    """OffsetCommit v9, by a member of the consumer protocol, of {partition: offset}."""
    body = compact(group.encode()) + pack(">i", epoch) + compact(member.encode()) + b"\0"
    body += b"\2" + compact(topic.encode()) + unsigned(len(offsets) + 1)
    for partition, offset in offsets.items():
        body += pack(">iqi", partition, offset, -1) + b"\1\0"
    return frame(OFFSET_COMMIT, 9, correlation, body + b"\0\0", flexible=True)


def consumer_commit_errors(answer: bytes, topic: str) -> dict[int, int]:
    """{partition: error code} out of the answer to `consumer_commit`."""
    at = 1 + 4 + 1 + len(compact(topic.encode()))
    count = answer[at] - 1
    assert answer[at] < 0x80, "more partitions than one byte counts"
    found = {}
    for row in range(count):
        partition, code = unpack_from(">ih", answer, at + 1 + row * 7)
        found[partition] = code
    return found


def fetch_offsets(group: str, topic: str, partitions: list[int], correlation: int) -> bytes:
    """OffsetFetch v5 of one topic's partitions."""
    body = string(group) + pack(">i", 1) + string(topic) + pack(">i", len(partitions))
    body += pack(f">{len(partitions)}i", *partitions)
    return frame(OFFSET_FETCH, 5, correlation, body)


def fetch_all_offsets(group: str, correlation: int) -> bytes:
    """OffsetFetch v5 of whatever the group has committed."""
    return frame(OFFSET_FETCH, 5, correlation, string(group) + pack(">i", -1))


def fetched_offsets(answer: bytes) -> tuple[int, dict[int, int]]:
    """(error code, {partition: offset}) of an OffsetFetch v5 for at most one topic."""
    (topics,) = unpack_from(">i", answer, 4)
    at, found = 8, {}
    if topics:
        (name,) = _I16.unpack_from(answer, at)
        (count,) = unpack_from(">i", answer, at + 2 + name)
        at += 2 + name + 4
        for _ in range(count):
            partition, offset, _ = unpack_from(">iqi", answer, at)
            (metadata,) = _I16.unpack_from(answer, at + 16)
            at += 18 + max(metadata, 0)
            (code,) = _I16.unpack_from(answer, at)
            at += 2
            if code:
                return code, {}
            found[partition] = offset
    return _I16.unpack_from(answer, at)[0], found


def join(
    group: str, member: str, topic: str, session_ms: int, rebalance_ms: int, correlation: int
) -> bytes:
    """JoinGroup v5 with the protocol `range`, which `range_plan` carries out."""
    subscription = pack(">hi", 0, 1) + string(topic) + pack(">i", -1)
    body = string(group) + pack(">ii", session_ms, rebalance_ms) + string(member) + b"\xff\xff"
    body += string("consumer") + pack(">i", 1) + string("range")
    return frame(JOIN_GROUP, 5, correlation, body + pack(">i", len(subscription)) + subscription)


def joined(answer: bytes) -> tuple[int, int, str, str, list[str]]:
    """(error code, generation, leader, own member id, all member ids: of the leader only)."""
    code, generation = unpack_from(">hi", answer, 4)
    _, at = _text(answer, 10)
    leader, at = _text(answer, at)
    member, at = _text(answer, at)
    (count,) = unpack_from(">i", answer, at)
    at, members = at + 4, []
    for _ in range(count):
        name, at = _text(answer, at)
        _, at = _text(answer, at)
        (size,) = unpack_from(">i", answer, at)
        at += 4 + size
        members.append(name)
    return code, generation, leader, member, members


def sync(
    group: str, generation: int, member: str, plan: dict[str, bytes], correlation: int
) -> bytes:
    """SyncGroup v3. plan: assignments by member, empty but for the leader."""
    body = string(group) + pack(">i", generation) + string(member) + b"\xff\xff"
    body += pack(">i", len(plan))
    for name, assignment in plan.items():
        body += string(name) + pack(">i", len(assignment)) + assignment
    return frame(SYNC_GROUP, 3, correlation, body)


def synced(answer: bytes) -> tuple[int, frozenset[int]]:
    """(error code, assigned partitions of the one topic)."""
    code, size = unpack_from(">hi", answer, 4)
    if code or size <= 0:
        return code, frozenset()
    version, topics = unpack_from(">hi", answer, 10)
    assert version == 0, "we wrote it ourselves"
    if not topics:
        return code, frozenset()
    _, at = _text(answer, 16)
    (count,) = unpack_from(">i", answer, at)
    return code, frozenset(unpack_from(f">{count}i", answer, at + 4))


def spread(members: list[str], topic: str, partitions: int) -> dict[str, bytes]:
    """Who gets what: partitions dealt out one by one, as a leader of the classic protocol says."""
    ordered, plan = sorted(members), {}
    for at, member in enumerate(ordered):
        own = list(range(at, partitions, len(ordered)))
        rows = string(topic) + pack(f">i{len(own)}i", len(own), *own)
        plan[member] = pack(">hi", 0, 1) + rows + pack(">i", -1)
    return plan


def heartbeat(group: str, generation: int, member: str, correlation: int) -> bytes:
    """Heartbeat v3. The answer's body: throttle time, error code."""
    body = string(group) + pack(">i", generation) + string(member) + b"\xff\xff"
    return frame(HEARTBEAT, 3, correlation, body)


def leave(group: str, member: str, correlation: int) -> bytes:
    """LeaveGroup v2."""
    return frame(LEAVE_GROUP, 2, correlation, string(group) + string(member))


def consumer_heartbeat(
    group: str,
    member: str,
    epoch: int,
    correlation: int,
    *,
    topic: str | None = None,
    owned: tuple[bytes, frozenset[int]] | None = None,
    rebalance_ms: int = -1,
) -> bytes:
    """ConsumerGroupHeartbeat v1. topic: what to subscribe to; owned: (topic id, partitions), None
    when nothing changed, (b"", …) for nothing at all."""
    body = compact(group.encode()) + compact(member.encode()) + pack(">i", epoch)
    body += b"\0\0" + pack(">i", rebalance_ms)
    body += b"\0" if topic is None else b"\2" + compact(topic.encode())
    body += b"\0\0"
    if owned is None:
        body += b"\0"
    elif not owned[1]:
        body += b"\1"
    else:
        partitions = sorted(owned[1])
        body += b"\2" + owned[0] + unsigned(len(partitions) + 1)
        body += pack(f">{len(partitions)}i", *partitions) + b"\0"
    return frame(CONSUMER_HEARTBEAT, 1, correlation, body + b"\0", flexible=True)


def consumer_heard(answer: bytes) -> tuple[int, int, tuple[bytes, frozenset[int]] | None]:
    """(error code, epoch, (topic id, partitions) or None when the assignment did not change)."""
    (code,) = _I16.unpack_from(answer, 1 + 4)
    at = 7
    at = _skip_compact(answer, at)  # message
    at = _skip_compact(answer, at)  # member id
    epoch, _ = unpack_from(">ii", answer, at)
    at += 8
    if answer[at] == 0xFF:
        return code, epoch, None
    if answer[at + 1] == 1:
        return code, epoch, (b"", frozenset())
    topic_id = answer[at + 2 : at + 18]
    count, at = answer[at + 18], at + 19
    if count & 0x80:
        count, at = count & 0x7F | answer[at] << 7, at + 1
    return code, epoch, (topic_id, frozenset(unpack_from(f">{count - 1}i", answer, at)))


def _text(answer: bytes, at: int) -> tuple[str, int]:
    (size,) = _I16.unpack_from(answer, at)
    end = at + 2 + max(size, 0)
    return answer[at + 2 : end].decode(), end


def _skip_compact(answer: bytes, at: int) -> int:
    size, shift = 0, 0
    while True:
        byte = answer[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return at + max(size - 1, 0)
