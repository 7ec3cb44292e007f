"""Metrics as OpenTelemetry's protocol has them (opentelemetry-proto v1, MetricsData), read by hand.

`samples` takes what a client pushed (KIP-714) and gives its numbers. Invariant: the bytes bound the
work, nesting has a fixed depth, and no length is believed beyond the message that it stands in.
What is not a number (histograms, exemplars, descriptions) is passed over.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from appliance.base.errors import MalformedRequest
from appliance.wire.varint import read_uvarint

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_DOUBLE: Final = Struct("<d")
_SIGNED: Final = Struct("<q")

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
_GAUGE: Final = 5
_SUM: Final = 7
_CUMULATIVE: Final = 2

Field = tuple[int, int, int | memoryview]
"""(number, wire type, value): a whole number or the bytes."""


class MetricPoint(NamedTuple):
    """One number of one metric. kind: GAUGE, or COUNTER when it only rises and is a total. labels:
    of the point, in the order in which they came."""

    name: str
    kind: str
    unit: str
    labels: tuple[tuple[str, str], ...]
    value: int | float


def samples(data: bytes, most: int) -> list[MetricPoint]:
    """The numbers in a MetricsData, `most` at most, in their order. Raises MalformedRequest."""
    found: list[MetricPoint] = []
    for resource in _nested(memoryview(data), 1):
        for scope in _nested(resource, 2):
            for metric in _nested(scope, 2):
                for one in _metric(metric):
                    if len(found) == most:
                        return found
                    found.append(one)
    return found


def _metric(data: memoryview) -> Iterator[MetricPoint]:
    name = unit = ""
    points: list[memoryview] = []
    kind = GAUGE
    for number, wire, value in _fields(data):
        if wire != _BYTES or not isinstance(value, memoryview):
            continue
        if number == 1:
            name = _text(value)
        elif number == 3:
            unit = _text(value)
        elif number in (_GAUGE, _SUM):
            points = list(_nested(value, 1))
            kind = COUNTER if number == _SUM and _is_total(value) else GAUGE
    for point in points:
        yield from _point(name, kind, unit, point)


def _is_total(data: memoryview) -> bool:
    """True if a Sum only rises and counts from the client's start."""
    told = {number: value for number, wire, value in _fields(data) if wire == _VARINT}
    return told.get(2) == _CUMULATIVE and told.get(3) == 1


def _point(name: str, kind: str, unit: str, data: memoryview) -> Iterator[MetricPoint]:
    """Yields the sample of a NumberDataPoint; nothing when it has no value."""
    labels = []
    value: int | float | None = None
    for number, wire, told in _fields(data):
        if wire == _FIXED64 and number == 4 and isinstance(told, memoryview):
            (value,) = _DOUBLE.unpack(told)
        elif wire == _FIXED64 and number == 6 and isinstance(told, memoryview):
            (value,) = _SIGNED.unpack(told)
        elif wire == _BYTES and number == 7 and isinstance(told, memoryview):
            labels.append(_label(told))
    if value is not None:
        yield MetricPoint(name, kind, unit, tuple(labels), value)


def _label(data: memoryview) -> tuple[str, str]:
    key = value = ""
    for number, wire, told in _fields(data):
        if wire == _BYTES and isinstance(told, memoryview):
            if number == 1:
                key = _text(told)
            elif number == 2:
                value = _any(told)
    return key, value


def _any(data: memoryview) -> str:
    """An AnyValue as text; lists and maps have none."""
    for number, wire, told in _fields(data):
        if number == 1 and isinstance(told, memoryview):
            return _text(told)
        if number == 2 and wire == _VARINT:
            return "true" if told else "false"
        if number == 3 and isinstance(told, int):
            return str(told - (1 << 64) if told >> 63 else told)
        if number == 4 and wire == _FIXED64 and isinstance(told, memoryview):
            return str(_DOUBLE.unpack(told)[0])
    return ""


def _nested(data: memoryview, wanted: int) -> Iterator[memoryview]:
    """The messages in a repeated field."""
    for number, wire, value in _fields(data):
        if number == wanted and wire == _BYTES and isinstance(value, memoryview):
            yield value


def _fields(data: memoryview) -> Iterator[Field]:
    at, end = 0, len(data)
    while at < end:
        key, at = read_uvarint(data, at, end)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _whole(data, at, end)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = read_uvarint(data, at, end)
        elif wire == _FIXED64:
            size = 8
        elif wire == _FIXED32:
            size = 4
        else:
            raise MalformedRequest(f"field {number} has wire type {wire}")
        if size > end - at:
            raise MalformedRequest(f"field {number} has {size} bytes, {end - at} remain")
        yield number, wire, data[at : at + size]
        at += size


def _whole(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A varint of 64 bits."""
    value = 0
    for place in range(10):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value & (1 << 64) - 1, at
    raise MalformedRequest("a number does not end")


def _text(data: memoryview) -> str:
    return bytes(data).decode(errors="replace")
