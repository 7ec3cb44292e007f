"""The encoder of `plain.py` in slices, for answers that are too long to be made in one turn.

Arrays of structs are written in slices, however deep they lie; everything else is made at once.
Caller: `handlers/gather.py`.
"""

from collections.abc import Callable, Generator
from dataclasses import MISSING
from functools import cache
from typing import Any, Final

from appliance.wire.fields import Field, StructLayout, array_writer, put_uvarint
from appliance.wire.messages import layout_of, response_type
from appliance.wire.plain import Values, Writer, fields_writer

SLICE: Final = 128
"""Structs between two stops: some hundred µs."""

Slices = Generator[None, None, None]
SlicedWriter = Callable[[list[bytes], Values, list[int]], Slices]
"""Appends the bytes of plain values to a list. The last argument counts structs since a stop."""


def encode_in_slices(api_key: int, version: int, values: Values) -> Generator[None, None, bytes]:
    """Makes the bytes that `plain.encode` gives, and stops after every SLICE structs."""
    out: list[bytes] = []
    yield from _sliced_writer_of(api_key, version)(out, values, [0])
    return b"".join(out)


@cache
def _sliced_writer_of(api_key: int, version: int) -> SlicedWriter:
    return _struct(layout_of(response_type(api_key, version)))


def _struct(layout: StructLayout) -> SlicedWriter:
    parts: list[tuple[Writer, SlicedWriter | None]] = []
    before: list[Field] = []
    for field in layout.fields:
        if not _is_sliced(field):
            before.append(field)
            continue
        at_once = fields_writer(before, layout.flexible, at_end=False)
        parts.append((at_once, _array(field, layout.flexible)))
        before = [one for one in before if one.tag >= 0]
    last = fields_writer(before, layout.flexible)

    def write_struct(out: list[bytes], values: Values, count: list[int]) -> Slices:
        for at_once, sliced in parts:
            at_once(out, values)
            assert sliced is not None
            yield from sliced(out, values, count)
        last(out, values)

    return write_struct


def _is_sliced(field: Field) -> bool:
    return field.tag < 0 and field.array and field.nested is not None


def _array(field: Field, flexible: bool) -> SlicedWriter:
    assert field.nested is not None
    name, default = field.name, field.default
    one, is_deep = _struct(field.nested), any(map(_is_sliced, field.nested.fields))
    at_once = fields_writer(field.nested.fields, field.nested.flexible)
    write_null = array_writer(at_once, flexible, field.nullable)

    def write_array(out: list[bytes], values: Values, count: list[int]) -> Slices:
        found: Any = values.get(name, default)
        if found is MISSING:
            raise KeyError(f"{name} has no value")
        if found is None:
            write_null(out, None)
            return
        if flexible:
            put_uvarint(out, len(found) + 1)
        else:
            out.append(len(found).to_bytes(4, "big"))
        for value in found:
            if is_deep:
                yield from one(out, value, count)
            else:
                at_once(out, value)
            count[0] += 1
            if count[0] == SLICE:
                count[0] = 0
                yield

    return write_array
