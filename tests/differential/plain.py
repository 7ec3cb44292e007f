"""Between kio's messages and plain values: dicts, lists, numbers, text.

A request is filled from the values that a script gives: fields that its version has not are left
out, fields that the script does not name are empty (0, "", no elements, null where null is allowed
and there is no other default). A name that no version of the message knows is a mistake of the
script and raises KeyError. Answers become dicts in the same way; an error code becomes its name.
"""

import dataclasses
from datetime import timedelta
from functools import cache
from uuid import UUID

from kio.schema.errors import ErrorCode

from appliance.wire.messages import (
    decode_response,
    encode_request,
    layout_of,
    request_type,
    request_versions,
)


def encode(key, version, values):
    """The body of a request of API `key`."""
    return encode_request(_fill(request_type(key, version), values, _known(key)))


def decode(key, version, body):
    """The answer to it as plain values."""
    return plain(decode_response(key, version, body))


def plain(value):
    """kio's value without kio's types. Bytes become hexadecimal digits, times are in ms."""
    if dataclasses.is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, ErrorCode):
        return value.name.upper()
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, UUID):
        return str(value)
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1000)
    return value


@cache
def _known(key):
    """Field names of a request, of all versions and all depths."""
    names = set()
    for version in request_versions(key):
        _collect(layout_of(request_type(key, version)), names)
    return frozenset(names)


def _collect(layout, names):
    for item in layout.fields:
        names.add(item.name)
        if item.nested is not None:
            _collect(item.nested, names)


def _fill(cls, values, known):
    if strange := set(values) - known:
        raise KeyError(f"no version of {cls.__module__.split('.')[2]} has {sorted(strange)}")
    arguments = {}
    for item in layout_of(cls).fields:
        if item.name in values:
            arguments[item.name] = _kio(item, values[item.name], known)
        elif _default(cls, item.name) is dataclasses.MISSING:
            arguments[item.name] = _empty(item)
    return cls(**arguments)


def _default(cls, name):
    return next(item.default for item in dataclasses.fields(cls) if item.name == name)


def _kio(item, value, known):
    if value is None:
        return None
    if item.nested is not None:
        if item.array:
            return tuple(_fill(item.nested.make, one, known) for one in value)
        return _fill(item.nested.make, value, known)
    if item.array:
        return tuple(_scalar(item, one) for one in value)
    return _scalar(item, value)


def _scalar(item, value):
    if item.kind == "uuid":
        return value if value is None or isinstance(value, UUID) else UUID(value)
    return value if item.convert is None else item.convert[0](value)


_ZERO = {"string": "", "bytes": b"", "bool": False, "float64": 0.0, "uuid": None}


def _empty(item):
    if item.array:
        return ()
    if item.nullable or item.kind == "uuid":
        return None
    return _scalar(item, _ZERO.get(item.kind, 0))
