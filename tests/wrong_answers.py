"""Answers as a node that has gone mad sends them: well-formed ones in which values contradict what
was asked, or each other."""

import dataclasses
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from appliance.wire import messages
from appliance.wire.fields import FIXED, Field, StructLayout

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "a", "größer", "x" * 200, "__cluster_metadata", "127.0.0.1", "\0")
_LATE = datetime(2200, 1, 1, tzinfo=UTC)


def any_answer(key: int, version: int, rng: random.Random) -> Any:
    """An answer of this API with any values, of which many are the last ones of their range."""
    return _struct(messages.layout_of(messages.response_type(key, version)), rng)


def changed(message: Any, rng: random.Random) -> Any:
    """The message with another value in one place, wherever that is."""
    layout = messages.layout_of(type(message))
    field = rng.choice(layout.fields)
    value = getattr(message, field.name)
    return dataclasses.replace(message, **{field.name: _other(field, value, rng)})


def _other(field: Field, value: Any, rng: random.Random) -> Any:
    goes_on = field.nested is not None and value and rng.random() < 0.9
    if goes_on and not field.array:
        return changed(value, rng)
    if goes_on:
        at = rng.randrange(len(value))
        one = changed(value[at], rng)
        more = (one, one) if rng.random() < 0.1 else (one,)
        return (*value[:at], *more, *value[at + 1 :])
    return _value(field, rng)


def _struct(layout: StructLayout, rng: random.Random) -> Any:
    return layout.make(**{field.name: _value(field, rng) for field in layout.fields})


def _value(field: Field, rng: random.Random) -> Any:
    if field.nullable and rng.random() < 0.2:
        return None
    if field.array:
        return tuple(_element(field, rng) for _ in range(rng.choice((0, 1, 1, 1, 2))))
    return _element(field, rng)


def _element(field: Field, rng: random.Random) -> Any:
    if field.nested is not None:
        return _struct(field.nested, rng)
    if field.convert is not None:
        return _converted(field, rng)
    if field.kind in _BITS:
        return _number(_BITS[field.kind], rng)
    if field.kind in FIXED:
        return rng.choice((False, True)) if field.kind == "bool" else rng.randrange(1 << 16)
    text = rng.choice(_TEXTS)
    return text if field.kind == "string" else text.encode()


def _converted(field: Field, rng: random.Random) -> Any:
    reads = field.convert[0]  # type: ignore[index]
    if field.kind == "uuid":
        return rng.choice((None, UUID(int=1), UUID(int=rng.getrandbits(128))))
    if reads is ErrorCode:
        return rng.choice((ErrorCode.none, ErrorCode.none, *ErrorCode))
    found = reads(0)
    if isinstance(found, datetime):
        return rng.choice((None, found, _LATE))
    return timedelta(milliseconds=_number(32, rng))


def _number(bits: int, rng: random.Random) -> int:
    last = 1 << bits - 1
    return rng.choice(
        (0, 0, 1, 2, 7, -1, -2, last - 1, last - 2, -last, rng.randrange(-last, last))
    )
