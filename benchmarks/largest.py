"""The largest request of each API that the limits allow, made from the schemas of its fields.

`shapes(key, version, elements)` gives one request for each array of the schema: that one holds all
elements, arrays around it one element, arrays within it one each. Names and numbers are either
those of a topic that exists (`KNOWN`), with partition indexes in order, or all different and
unknown. Requests that would change much only ask whether they could (validate_only). Caller:
`benchmarks.largest_requests`.
"""

from collections.abc import Iterator
from dataclasses import MISSING, replace
from typing import Any, Final, NamedTuple

from appliance.wire.fields import Field, StructLayout
from appliance.wire.messages import encode_request, is_flexible, layout_of, request_type
from benchmarks import batches, requests

KNOWN: Final = "largest"
"""The topic with many partitions that requests name."""
_RECORDS: Final = batches.uniform(1, 10, 1_000_000_000_000)
_TRUE: Final = frozenset({"validate_only", "dry_run"})
_MS: Final = frozenset({"timeout", "max_wait"})
_NO_NODE: Final = 1_000_000
_VALUES: Final[dict[int, dict[str, Any]]] = {
    0: {"acks": 1},
    11: {"session_timeout": 10_000, "rebalance_timeout": 10_000, "member_id": "",
         "group_instance_id": "static"},
    64: {"broker_id": _NO_NODE},
    68: {"member_epoch": 0, "rebalance_timeout": 10_000, "subscribed_topic_regex": None},
}  # fmt: skip
"""By API and field: values with which a request is not refused before its array is looked at."""
_CHANGES: Final = frozenset({20, 42, 47, 64, 80, 81})
"""APIs that would take away what the next requests need: they name only what does not exist."""


class Shape(NamedTuple):
    """One request. path: of the array that is full. known: it names what exists. elements: in
    that array. body: what follows the header."""

    key: int
    version: int
    path: str
    known: bool
    elements: int
    body: bytes

    @property
    def title(self) -> str:
        return f"{self.elements:,} {self.path}, {'known' if self.known else 'unknown'}"

    @property
    def frame(self) -> bytes:
        flexible = is_flexible(self.key, self.version)
        return requests.frame(self.key, self.version, 1, self.body, flexible=flexible)


def smallest(key: int, version: int) -> Shape:
    """The request with one element in each array."""
    return _shape(key, version, ("",), 1, known=False)


def shapes(key: int, version: int, elements: int, size: int) -> Iterator[Shape]:
    """The largest requests of at most so many elements and bytes; none where no array is."""
    layout = layout_of(request_type(key, version))
    for path in _paths(layout):
        within = _layout_at(layout, path)
        nested = _nested_arrays(within) if within else 0
        room = elements - (_nested_arrays(layout) - 1 - nested)  # what the others have
        numbers = _numbers(layout, path)
        count = room // (1 + nested) if within else room * numbers
        for known in (False, True):
            if known and key in _CHANGES:
                continue
            shape = _shape(key, version, path, count, known)
            if len(shape.body) > size:
                count = count * size // len(shape.body) - 1
                shape = _shape(key, version, path, count, known)
            yield shape


def _paths(layout: StructLayout, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in layout.fields:
        if field.array:
            yield (*before, field.name)
        if field.nested is not None:
            yield from _paths(field.nested, (*before, field.name))


def _field_at(layout: StructLayout, path: tuple[str, ...]) -> Field:
    fields = {field.name: field for field in layout.fields}
    found = fields[path[0]]
    if len(path) == 1:
        return found
    assert found.nested is not None
    return _field_at(found.nested, path[1:])


def _layout_at(layout: StructLayout, path: tuple[str, ...]) -> StructLayout | None:
    return _field_at(layout, path).nested


def _numbers(layout: StructLayout, path: tuple[str, ...]) -> int:
    """Plain numbers of which so many count as one element."""
    field = _field_at(layout, path)
    return 4 if field.kind.startswith(("int", "uint")) and "partition" not in field.name else 1


def _nested_arrays(layout: StructLayout) -> int:
    """Elements that one element needs besides itself."""
    return sum(
        (field.array and field.tag < 0)
        + (_nested_arrays(field.nested) if field.nested is not None else 0)
        for field in layout.fields
    )


def _shape(key: int, version: int, path: tuple[str, ...], count: int, known: bool) -> Shape:
    layout = layout_of(request_type(key, version))
    message = _struct(layout, path, count, 0, known)
    given = {
        field.name: value if field.convert is None else field.convert[0](value)
        for field in layout.fields
        if (value := _VALUES.get(key, {}).get(field.name, MISSING)) is not MISSING
    }
    message = replace(message, **given)
    return Shape(key, version, ".".join(path), known, count, encode_request(message))


def _struct(
    layout: StructLayout, path: tuple[str, ...], count: int, number: int, known: bool
) -> Any:
    values = {}
    for field in layout.fields:
        rest = path[1:] if path and path[0] == field.name else ()
        if field.tag >= 0 and not rest and not (path and path[0] == field.name):
            values[field.name] = field.default
        elif not field.array:
            values[field.name] = _value(field, rest, count, number, known)
        else:
            full = bool(path) and path[0] == field.name and not rest
            values[field.name] = tuple(
                _value(field, rest, count, at if full else number, known)
                for at in range(count if full else 1)
            )
    return layout.make(**values)


def _value(field: Field, path: tuple[str, ...], count: int, number: int, known: bool) -> Any:
    if field.nested is not None:
        return _struct(field.nested, path, count, number, known)
    value = _plain(field, number, known)
    return value if field.convert is None else field.convert[0](value)


def _plain(field: Field, number: int, known: bool) -> Any:
    """A value as it goes over the wire."""
    name = field.name
    is_nullable = field.nullable and not field.array
    if field.kind == "string":
        is_topics = "topic" in name or name in {"name", "resource_name"}
        if is_nullable and not is_topics:
            return None
        return KNOWN if known and is_topics else f"u{number:06x}"
    if field.kind == "bytes":
        return _RECORDS if name == "records" else None if is_nullable else b""
    if field.kind == "uuid":
        return number.to_bytes(16, "big")
    if field.kind == "bool":
        return name in _TRUE
    if name in _MS or name.startswith("timeout"):
        return 1000
    if name in {"offset", "timestamp"}:
        return 0
    if "partition" in name:
        return number if known else 1_000_000 + number
    if field.default is not MISSING and isinstance(field.default, int):
        return field.default
    return -1 if "epoch" in name or "replica_id" in name else 1
