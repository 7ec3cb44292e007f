"""The consumer's own messages inside the classic protocol: subscription and assignment.

Clients wrap them in JoinGroup and SyncGroup; only a group that classic members and consumer members
share makes us read and write them (versions 0 to 3: each adds fields at the end; newer ones are
read as 3). Caller: `consumer_classic`, `migration`.
"""

from collections.abc import Mapping
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.errors import INCONSISTENT_GROUP_PROTOCOL, PeerError
from appliance.wire.fields import UNREADABLE, Field, StructLayout, reader, writer

NEWEST: Final = 3
_TOPIC = StructLayout(
    dict, (Field("topic", "string"), Field("partitions", "int32", array=True)), False
)
_OWNED = Field("owned", "struct", array=True, nested=_TOPIC)
_USER_DATA = Field("user_data", "bytes", nullable=True)
_FIELDS: Final = (
    (Field("topics", "string", array=True), _USER_DATA),
    (_OWNED,),
    (Field("generation", "int32"),),
    (Field("rack", "string", nullable=True),),
)
_SUBSCRIPTIONS = [
    reader(StructLayout(dict, tuple(f for part in _FIELDS[: version + 1] for f in part), False))
    for version in range(NEWEST + 1)
]


class _Assignment:
    """An assignment in the shape that the writer takes."""

    __slots__ = ("owned", "user_data")

    def __init__(self, owned: tuple["_Topic", ...]) -> None:
        self.owned = owned
        self.user_data = None


class _Topic:
    __slots__ = ("partitions", "topic")

    def __init__(self, topic: str, partitions: tuple[int, ...]) -> None:
        self.topic = topic
        self.partitions = partitions


_ASSIGNMENT = StructLayout(dict, (_OWNED, _USER_DATA), False)
_read_assignment = reader(_ASSIGNMENT)
_write_assignment = writer(_ASSIGNMENT)

ByName = dict[str, tuple[int, ...]]
"""Topic name → partitions."""


@dataclass(slots=True, frozen=True)
class MemberSubscription:
    """owned: what the member says it owns; empty from members that give up all before they join."""

    topics: tuple[str, ...]
    owned: ByName
    rack: str | None


def subscription(metadata: bytes) -> MemberSubscription:
    """Raises PeerError(INCONSISTENT_GROUP_PROTOCOL) for bytes that are none."""
    try:
        found, _ = _SUBSCRIPTIONS[_version(metadata)](metadata, 2, [len(metadata)])
    except UNREADABLE as cause:
        raise PeerError(
            INCONSISTENT_GROUP_PROTOCOL, f"no consumer subscription: {cause}"
        ) from cause
    rack = found.get("rack")
    return MemberSubscription(found["topics"], _by_name(found.get("owned", ())), rack or None)


def _version(data: bytes) -> int:
    if len(data) < 2:
        raise ValueError(f"{len(data)} bytes")
    return max(0, min(int.from_bytes(data[:2], "big", signed=True), NEWEST))


def version_of(metadata: bytes) -> bytes:
    """The version as its two bytes: an assignment is written in that of the subscription."""
    return metadata[:2] if len(metadata) >= 2 else b"\x00\x00"


def assignment(data: bytes) -> ByName:
    """The partitions by topic that a classic leader assigned; empty before it did. Raises PeerError
    as `subscription`.
    """
    if not data:
        return {}
    try:
        _version(data)
        found, _ = _read_assignment(data, 2, [len(data)])
    except UNREADABLE as cause:
        raise PeerError(INCONSISTENT_GROUP_PROTOCOL, f"no consumer assignment: {cause}") from cause
    return _by_name(found["owned"])


def encode_assignment(partitions: Mapping[str, tuple[int, ...]], version: bytes) -> bytes:
    """The bytes of an assignment; version: as `version_of` gives it."""
    topics = tuple(_Topic(name, partitions[name]) for name in sorted(partitions))
    out = [version]
    _write_assignment(out, _Assignment(topics))
    return b"".join(out)


def _by_name(rows: tuple[dict[str, object], ...]) -> ByName:
    found: dict[str, tuple[int, ...]] = {}
    for row in rows:
        name, partitions = row["topic"], row["partitions"]
        assert isinstance(name, str) and isinstance(partitions, tuple)
        found[name] = found.get(name, ()) + partitions
    return found
