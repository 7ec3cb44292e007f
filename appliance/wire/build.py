"""Build a message of any version from plain values, so that a handler is written once for all of
its versions.

`build(cls, values)` takes the fields that this version of the message has and ignores the others
(Kafka calls such fields ignorable); nested messages are given as mappings in lists. Plain values
stand for kio's own types: an error code is an int, a duration is int ms, a time is int ms since
1970 (-1: none), a uuid is 16 bytes (all zero: none), everything else is itself.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, get_args, get_type_hints
from uuid import UUID

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

_MS = [timedelta(milliseconds=value) for value in range(2)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def response(api_key: int, version: int, values: Mapping[str, Any]) -> Any:
    """A response message; raises KeyError naming a field that has neither value nor default."""
    return build(_response_class(api_key, version), values)


@cache
def _response_class(api_key: int, version: int) -> type:
    return load_response_schema(api_key, version)


def build(cls: type, values: Mapping[str, Any]) -> Any:
    """One (possibly nested) message of class `cls`."""
    arguments = {}
    for name, required, convert in _plan(cls):
        if name in values:
            value = values[name]
            arguments[name] = value if convert is None else convert(value)
        elif required:
            raise KeyError(f"{cls.__name__}.{name} has no value")
    return cls(**arguments)


@cache
def _plan(cls: type) -> tuple[tuple[str, bool, Callable[[Any], Any] | None], ...]:
    hints = get_type_hints(cls)
    plan = []
    for item in dataclasses.fields(cls):
        missing = dataclasses.MISSING
        required = item.default is missing and item.default_factory is missing
        plan.append(
            (item.name, required, _converter(item.metadata.get("kafka_type"), hints[item.name]))
        )
    return tuple(plan)


def _converter(kafka_type: str | None, hint: Any) -> Callable[[Any], Any] | None:
    if kafka_type == "error_code":
        return ErrorCode
    if kafka_type in ("timedelta_i32", "timedelta_i64"):
        return _duration
    if kafka_type == "datetime_i64":
        return _time
    if kafka_type == "uuid":
        return _uuid_or_uuids
    if kafka_type is not None:
        return None
    nested = _nested(hint)
    if nested is None:
        return None
    return lambda values: _many(nested, values)


def _nested(hint: Any) -> type | None:
    """The message class inside `tuple[cls, ...]`, `cls`, or either of them or None."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return hint
    for part in get_args(hint):
        found = _nested(part)
        if found is not None:
            return found
    return None


def _many(nested: type, values: Any) -> Any:
    if values is None:
        return None
    if isinstance(values, Mapping):
        return build(nested, values)
    return tuple(build(nested, value) for value in values)


def _duration(ms: int) -> timedelta:
    return _MS[ms] if 0 <= ms < 2 else timedelta(milliseconds=ms)


def _time(value: int | datetime | None) -> datetime | None:
    """The time as kio has it; one that was decoded stays as it is."""
    if value is None or isinstance(value, datetime):
        return value
    return None if value == -1 else _EPOCH + timedelta(milliseconds=value)


def _uuid_or_uuids(value: bytes | Iterable[bytes] | None) -> Any:
    if value is None:
        return None
    if isinstance(value, bytes):
        return UUID(bytes=value) if any(value) else None
    return tuple(UUID(bytes=item) if any(item) else None for item in value)
