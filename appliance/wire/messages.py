"""Every Kafka message but Produce and Fetch requests, by kio's classes and our own codec.

kio holds the schemas: a class per message and version, imported when first used (all of them take
2.3 s and 38 MB). Its own native reader is not used: it reserves memory for a count before it looks
at the bytes, which ends the process for a count of 2^31-1 in eight bytes, and it refuses unknown
tagged fields, which the protocol says to skip. Callers: handlers, the controller's shell, tools.
Values are kio's: uuid.UUID or None, timedelta, ErrorCode.
"""

import dataclasses
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin
from uuid import UUID

from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from appliance.base.errors import MalformedRequest, TooManyElements
from appliance.config.bounds import ELEMENTS
from appliance.wire.fields import UNREADABLE, Field, Reader, StructLayout, Writer, reader, writer
from appliance.wire.offset_messages import (
    COMMIT_VERSIONS,
    FETCH_VERSIONS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    read_commit,
    read_fetch,
)
from appliance.wire.sliced import SlicedReader, slices

ELEMENTS_MAX: Final = 1 << 15
"""Array elements in one request, if nothing else is set (`limit_elements`): two bytes cost a
hundred times as much once they are an object."""
_NODES_ELEMENTS_MAX: Final = 1 << 18
"""In what one node asks another one for all of its partitions at once."""
_BY_NODES: Final = frozenset((56, 73))
"""AlterPartition, AssignReplicasToDirs."""

elements: Final = [ELEMENTS_MAX]
"""The array elements that one request of a client may have now."""


def limit_elements(most: int) -> None:
    """Take so many array elements in one request of a client, in this process and its children
    (penstock.request.max.elements)."""
    elements[0] = most


def elements_max(api_key: int) -> int:
    """The array elements that one request of this API may have."""
    return _NODES_ELEMENTS_MAX if api_key in _BY_NODES else elements[0]


def request_versions(api_key: int) -> range:
    """The versions of a request whose schema is known; empty for an unknown key."""
    return _versions(api_key, EntityType.request)


@cache
def request_type(api_key: int, version: int) -> type:
    """The class of a request. Raises MalformedRequest when there is no such key or version."""
    try:
        return load_request_schema(api_key, version)
    except (UnknownAPIKey, UnknownEntity) as cause:
        raise MalformedRequest(f"API key {api_key} version {version} is not known") from cause


@cache
def response_type(api_key: int, version: int) -> type:
    """The class of a response. Raises MalformedRequest when there is no such key or version."""
    try:
        return load_response_schema(api_key, version)
    except (UnknownAPIKey, UnknownEntity) as cause:
        raise MalformedRequest(f"API key {api_key} version {version} is not known") from cause


def is_flexible(api_key: int, version: int) -> bool:
    """True if the request has compact lengths and tagged fields (and header 2)."""
    return bool(request_type(api_key, version).__flexible__)  # type: ignore[attr-defined]


def decode_request(api_key: int, version: int, body: bytes | memoryview) -> Any:
    """The request in `body` (what follows the header). Raises MalformedRequest.

    Bytes after its end are ignored, as Kafka ignores them. What is read by hand is no object of
    kio's, but has the same fields (`offset_messages`).
    """
    data = bytes(body)
    try:
        if api_key == OFFSET_COMMIT and version in COMMIT_VERSIONS:
            return read_commit(version, data, elements[0])
        if api_key == OFFSET_FETCH and version in FETCH_VERSIONS:
            return read_fetch(version, data, elements[0])
        most = _NODES_ELEMENTS_MAX if api_key in _BY_NODES else elements[0]
        message, _ = _reader(request_type(api_key, version))(data, 0, [most])
    except UNREADABLE as cause:
        raise _unreadable(api_key, version, cause) from cause
    return message


def decode_in_slices(api_key: int, version: int, body: bytes) -> Generator[None, None, Any]:
    """Makes what `decode_request` gives, and stops every few hundred µs. Raises
    MalformedRequest."""
    sliced = _sliced_reader(request_type(api_key, version))
    try:
        message, _ = yield from sliced(body, 0, [elements_max(api_key)])
    except UNREADABLE as cause:
        raise _unreadable(api_key, version, cause) from cause
    return message


def _unreadable(api_key: int, version: int, cause: Exception) -> MalformedRequest:
    bound = ELEMENTS if isinstance(cause, TooManyElements) else ""
    name = request_type(api_key, version).__name__
    return MalformedRequest(f"{name} v{version}: {cause}", bound)


def encode_request(message: object) -> bytes:
    """The body of a request (no header)."""
    return _encode(message)


def decode_response(api_key: int, version: int, body: bytes | memoryview) -> Any:
    """The response in `body` (what follows the header), for tools and tests."""
    cls = response_type(api_key, version)
    data = bytes(body)
    try:
        message, position = _reader(cls)(data, 0, [len(data)])
    except UNREADABLE as cause:
        raise MalformedRequest(f"{cls.__name__} v{version}: {cause}") from cause
    if position != len(data):
        raise MalformedRequest(
            f"{cls.__name__} v{version}: {len(data) - position} bytes after its end"
        )
    return message


def encode_response(message: object) -> bytes:
    """The body of a response (no header). `message`: an instance of kio's class of that version."""
    return _encode(message)


def _encode(message: object) -> bytes:
    out: list[bytes] = []
    cls: type = type(message)
    _writer(cls)(out, message)
    return b"".join(out)


def _versions(api_key: int, kind: EntityType) -> range:
    if api_key not in api_key_map:
        return range(0)
    known = [v for v, kinds in schema_name_map[api_key_map[api_key]].items() if kind in kinds]
    return range(min(known), max(known) + 1)


@cache
def _reader(cls: type) -> Reader:
    return reader(layout_of(cls))


@cache
def _sliced_reader(cls: type) -> SlicedReader:
    return slices(layout_of(cls))


@cache
def _writer(cls: type) -> Writer:
    return writer(layout_of(cls))


# kio's classes as layouts -------------------------------------------------------------------------

_Convert = tuple[Callable[[Any], Any], Callable[[Any], Any]]
_MS: Final = timedelta(milliseconds=1)
_LONGEST_MS: Final = -(timedelta.min // _MS)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _read_uuid(value: bytes) -> UUID | None:
    return UUID(bytes=value) if any(value) else None


def _write_uuid(value: UUID | None) -> bytes:
    return bytes(16) if value is None else value.bytes


def _read_duration(ms: int) -> timedelta:
    return timedelta(milliseconds=ms)


def _read_long_duration(ms: int) -> timedelta:
    """Kafka's clients say "for ever" with numbers that no timedelta holds."""
    return timedelta(milliseconds=max(-_LONGEST_MS, min(ms, _LONGEST_MS)))


def _write_duration(value: timedelta) -> int:
    return value // _MS


def _read_time(ms: int) -> datetime | None:
    return None if ms == -1 else _EPOCH + timedelta(milliseconds=ms)


def _write_time(value: datetime | None) -> int:
    return -1 if value is None else (value - _EPOCH) // _MS


_KINDS: Final[dict[str, tuple[str, _Convert | None]]] = {
    "error_code": ("int16", (ErrorCode, int)),
    "timedelta_i32": ("int32", (_read_duration, _write_duration)),
    "timedelta_i64": ("int64", (_read_long_duration, _write_duration)),
    "datetime_i64": ("int64", (_read_time, _write_time)),
    "uuid": ("uuid", (_read_uuid, _write_uuid)),
    "records": ("bytes", None),
}
_ZERO: Final = {"string": "", "bytes": b"", "bool": False, "float64": 0.0}


@cache
def layout_of(cls: type) -> StructLayout:
    """The layout of one of kio's classes."""
    flexible = cls.__flexible__  # type: ignore[attr-defined]
    return StructLayout(cls, tuple(_field(f) for f in dataclasses.fields(cls)), flexible)


def _field(item: "dataclasses.Field[Any]") -> Field:
    inner, array, nullable = _shape(item.type)
    tag = item.metadata.get("tag", -1)
    if "kafka_type" in item.metadata:
        kind, convert = _KINDS.get(item.metadata["kafka_type"], (item.metadata["kafka_type"], None))
        nested = None
    else:
        kind, convert, nested = "struct", None, layout_of(inner)
    default = item.default
    if default is dataclasses.MISSING and tag >= 0:
        default = _implicit_default(kind, array, nullable, nested)
        if convert is not None and default is not None and not array:
            default = convert[0](default)
    return Field(item.name, kind, array, nullable, int(tag), default, nested, convert)


def _shape(hint: Any) -> tuple[Any, bool, bool]:
    """(element type, is an array, may be null) of an annotation; elements may not be null."""
    nullable = False
    if get_origin(hint) in (UnionType, Union):
        nullable = True
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is tuple:
        return _shape(get_args(hint)[0])[0], True, nullable
    return hint, False, nullable


def _implicit_default(kind: str, array: bool, nullable: bool, nested: StructLayout | None) -> Any:
    """The default of a tagged field for which the schema names none."""
    if array:
        return ()
    if nested is not None:
        return None if nullable else nested.make(**{one.name: _zero(one) for one in nested.fields})
    if kind == "uuid":
        return bytes(16)
    return _ZERO.get(kind, 0)


def _zero(field: Field) -> Any:
    """The default value of a field that is absent."""
    if field.default is not dataclasses.MISSING:
        return field.default
    default = _implicit_default(field.kind, field.array, field.nullable, field.nested)
    plain = field.convert is None or field.array or default is None
    return default if plain or field.convert is None else field.convert[0](default)
