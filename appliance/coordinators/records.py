"""The records of `__consumer_offsets`: classes and their bytes, as Kafka's own tools read them.

A key is a record type (int16) and its fields, never flexible; a value is its version (int16) and
its fields, flexible from the version that the class names. Keys of type 0 are offsets as old
brokers wrote them. The classes are the tables (`wire/declared.py`); a protocol that adds records
adds classes with `declare`. Callers: `Turn.write` (encode) and `Shard.replay` (decode).
"""

from functools import cache
from struct import Struct
from typing import Any, ClassVar, Final, TypeVar

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.wire.declared import layout_of, of, record
from appliance.wire.fields import UNREADABLE, Layout, Reader, Writer, reader, writer

_I16: Final = Struct(">h")
STRING_MAX: Final = 0x7FFF
"""Bytes in a text of a key or of a value that is not flexible."""
_Key = TypeVar("_Key")

_TYPES: Final[dict[int, tuple[Any, Any]]] = {}


def declare(*types: int, value: type) -> Any:
    """A class decorator: records whose key has one of these types have keys of this class."""

    def register(key: type[_Key]) -> type[_Key]:
        for one in types:
            assert one not in _TYPES, f"two records of type {one}"
            _TYPES[one] = key, value
        return key

    return register


@record
class OffsetCommitValue:
    """A committed offset. Times are ms since 1970, leader_epoch -1 is unknown.

    Version 1 alone has expire_timestamp; 3 adds leader_epoch, 4 the topic's id (zero: unknown).
    """

    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4
    ONLY_IN: ClassVar = {"expire_timestamp": 1}
    offset: int = of("int64")
    leader_epoch: int = of("int32", since=3, default=-1)
    metadata: str = of("string")
    commit_timestamp: int = of("int64")
    expire_timestamp: int = of("int64", since=1, default=-1)
    topic_id: bytes = of("uuid", since=4, tag=0, default=bytes(16))


@declare(0, 1, value=OffsetCommitValue)
@record
class OffsetCommitKey:
    TYPE: ClassVar = 1
    group: str = of("string")
    topic: str = of("string")
    partition: int = of("int32")


@record
class MemberMetadata:
    """rebalance_timeout, session_timeout: ms; the first is -1 in version 0."""

    member_id: str = of("string")
    group_instance_id: str | None = of("string", since=3, nullable=True, default=None)
    client_id: str = of("string")
    client_host: str = of("string")
    rebalance_timeout: int = of("int32", since=1, default=-1)
    session_timeout: int = of("int32")
    subscription: bytes = of("bytes")
    assignment: bytes = of("bytes")


@record
class GroupMetadataValue:
    """A classic group as of a finished rebalance. protocol_type "": none was ever joined."""

    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4
    protocol_type: str = of("string")
    generation: int = of("int32")
    protocol: str | None = of("string", nullable=True)
    leader: str | None = of("string", nullable=True)
    current_state_timestamp: int = of("int64", since=2, default=-1)
    members: tuple[MemberMetadata, ...] = of("[]struct")


@declare(2, value=GroupMetadataValue)
@record
class GroupMetadataKey:
    TYPE: ClassVar = 2
    group: str = of("string")


def fits(*texts: str | None) -> bool:
    """Whether each of these texts can be written."""
    return all(text is None or len(text.encode()) <= STRING_MAX for text in texts)


def encode_key(key: Any) -> bytes:
    """The bytes of a record's key."""
    out = [_I16.pack(key.TYPE)]
    cls: type = type(key)
    _key_writer(cls)(out, key)
    return b"".join(out)


def encode_value(value: Any, version: int) -> bytes:
    """The bytes of a record's value in the version to write."""
    out = [_I16.pack(version)]
    cls: type = type(value)
    _value_writer(cls, version)(out, value)
    return b"".join(out)


def decode(key: bytes | None, value: bytes | None) -> tuple[Any, Any] | None:
    """(key, value or None for a tombstone); None for a type that nobody here knows.

    A value of a newer version than ours is read as our newest: from the first flexible version on,
    versions add tagged fields only (KIP-915). Raises PeerError(CORRUPT_MESSAGE).
    """
    try:
        if key is None:
            raise ValueError("it has no key")
        found = _TYPES.get(_I16.unpack_from(key)[0])
        if found is None:
            return None
        decoded_key, _ = _key_reader(found[0])(key, 2, [len(key)])
        if value is None:
            return decoded_key, None
        version = min(_I16.unpack_from(value)[0], found[1].VERSIONS[-1])
        if version not in found[1].VERSIONS:
            raise ValueError(f"version {version} of {found[1].__name__} is not known")
        decoded, _ = _value_reader(found[1], version)(value, 2, [len(value)])
    except UNREADABLE as cause:
        raise PeerError(CORRUPT_MESSAGE, f"record of a group: {cause}") from cause
    return decoded_key, decoded


def _stiff(layout: Layout) -> Layout:
    """The same fields without compact lengths and tags."""
    fields = tuple(
        field._replace(nested=field.nested and _stiff(field.nested)) for field in layout.fields
    )
    return Layout(layout.make, fields, False)


def _value_layout(cls: Any, version: int) -> Layout:
    layout = layout_of(cls, version)
    only_in = getattr(cls, "ONLY_IN", {})
    kept = tuple(f for f in layout.fields if only_in.get(f.name, version) == version)
    layout = layout._replace(fields=kept)
    return layout if version >= cls.FLEXIBLE_SINCE else _stiff(layout)


@cache
def _key_writer(cls: type) -> Writer:
    return writer(_stiff(layout_of(cls, 0)))


@cache
def _key_reader(cls: type) -> Reader:
    return reader(_stiff(layout_of(cls, 0)))


@cache
def _value_writer(cls: type, version: int) -> Writer:
    return writer(_value_layout(cls, version))


@cache
def _value_reader(cls: type, version: int) -> Reader:
    return reader(_value_layout(cls, version))
