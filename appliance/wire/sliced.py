"""The decoder of `fields.py` in slices, for requests that are too long to be read in one turn.

`slices(layout)` gives what `reader(layout)` gives, by a generator that stops after every SLICE
elements of an array of structs, and of texts where the array is not within another. Everything else
is bounded by a few KiB for each struct, or made by one call. Caller: `messages.decode_in_slices`.
"""

from collections.abc import Callable, Generator
from typing import Any, Final

from appliance.wire.fields import (
    Field,
    Reader,
    StructLayout,
    check_null,
    field_reader,
    read_count,
    read_tags,
    smallest,
    spend,
    tags_of,
)

Slices = Generator[None, None, tuple[Any, int]]
SlicedReader = Callable[[bytes, int, list[int]], Slices]
"""As `fields.Reader`, in slices."""

_TEXTS: Final = ("string", "bytes")
SLICE: Final = 128
"""Elements between two stops: some hundred µs."""


def slices(layout: StructLayout) -> SlicedReader:
    """The decoder of one struct."""
    whole: list[tuple[str, Reader | None, SlicedReader | None]] = []
    for field in layout.fields:
        if field.tag < 0 and field.array and (field.nested is not None or field.kind in _TEXTS):
            whole.append((field.name, None, _array(field, layout.flexible)))
        elif field.tag < 0:
            whole.append((field.name, field_reader(field, layout.flexible), None))
    make, flexible = layout.make, layout.flexible
    tagged, defaults = tags_of(layout)

    def read(data: bytes, position: int, budget: list[int]) -> Slices:
        values = defaults.copy()
        for name, at_once, sliced in whole:
            if at_once is not None:
                values[name], position = at_once(data, position, budget)
            else:
                assert sliced is not None
                values[name], position = yield from sliced(data, position, budget)
        if flexible:
            position = read_tags(data, position, budget, tagged, values)
        return make(**values), position

    return read


def _array(field: Field, flexible: bool) -> SlicedReader:
    least, nullable = smallest(field, flexible), field.nullable
    nested = field.nested
    inner = nested is not None and any(
        one.array and one.nested is not None and one.tag < 0 for one in nested.fields
    )
    at_once = None if inner else field_reader(field._replace(array=False, nullable=False), flexible)
    sliced = slices(nested) if nested is not None and inner else None

    def read(data: bytes, position: int, budget: list[int]) -> Slices:
        count, position = read_count(data, position, flexible)
        if count < 0:
            check_null(count, nullable)
            return None, position
        spend(budget, count, least, len(data) - position, 1)
        values = []
        for number in range(count):
            if at_once is not None:
                value, position = at_once(data, position, budget)
            else:
                assert sliced is not None
                value, position = yield from sliced(data, position, budget)
            values.append(value)
            if number % SLICE == SLICE - 1:
                yield
        return tuple(values), position

    return read
