"""Typed fields to bytes and back, compiled once per message layout from plain data.

One generic encoder and decoder for everything that is not on the hot path: requests and responses
(layouts come from kio's classes, see messages.py) and the records of the metadata log (layouts come
from kraft_records.py). Invariant of the decoder: nothing is allocated for a count or length before
it was held against the bytes that remain, and unknown tagged fields are skipped (KIP-482). It
raises one of UNREADABLE for bytes that cannot be read.
"""

from collections.abc import Callable
from itertools import chain
from struct import Struct, error
from typing import Any, Final, NamedTuple

from appliance.base.errors import TooManyElements
from appliance.wire.varint import STRING_MAX

Reader = Callable[[bytes, int, list[int]], tuple[Any, int]]
"""(data, position, [array elements that may still come]) → (value, next position)."""
Writer = Callable[[list[bytes], Any], None]
"""Appends the value's bytes to a list of pieces."""

UNREADABLE: Final = (error, IndexError, ValueError, OverflowError)
"""What a reader raises; ValueError carries a text for the peer and includes UnicodeDecodeError."""


class Field(NamedTuple):
    """One field of a layout. `convert` makes its value from and to what is on the wire."""

    name: str
    kind: str  # int8 … int64, uint16, bool, float64, string, bytes, uuid, or "struct"
    array: bool = False
    nullable: bool = False
    tag: int = -1  # -1: always there; else only when it differs from `default`
    default: Any = None
    nested: "StructLayout | None" = None
    convert: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = None


class StructLayout(NamedTuple):
    """A struct: what makes one (called with the fields by name), its fields, flexible or not."""

    make: Callable[..., Any]
    fields: tuple[Field, ...]
    flexible: bool


FIXED: Final = {
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "int32": Struct(">i"),
    "int64": Struct(">q"),
    "uint16": Struct(">H"),
    "float64": Struct(">d"),
    "bool": Struct(">?"),
    "uuid": Struct(">16s"),
}
_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_SMALL: Final = [bytes((value,)) for value in range(128)]
_BYTES_MAX: Final = (1 << 31) - 1
NUMBERS: Final = 4
"""Plain numbers that cost as much as one element of another kind. Not those of partitions: each
becomes a row of an answer."""


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """(value, next position) of an unsigned 32-bit varint."""
    value = data[position]
    position += 1
    if value < 128:
        return value, position
    value &= 127
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise ValueError("a varint does not fit 32 bits")


def put_uvarint(out: list[bytes], value: int) -> None:
    """Append an unsigned varint."""
    while value > 127:
        out.append(_SMALL_MORE[value & 127])
        value >>= 7
    out.append(_SMALL[value])


_SMALL_MORE: Final = [bytes((value | 128,)) for value in range(128)]


# Reading ------------------------------------------------------------------------------------------


def reader(layout: StructLayout) -> Reader:
    """The decoder of one struct."""
    plain = [(f.name, field_reader(f, layout.flexible)) for f in layout.fields if f.tag < 0]
    make, flexible = layout.make, layout.flexible
    tagged, defaults = tags_of(layout)

    def read(data: bytes, position: int, budget: list[int]) -> tuple[Any, int]:
        values = defaults.copy()
        for name, read_field in plain:
            values[name], position = read_field(data, position, budget)
        if flexible:
            if data[position]:
                position = read_tags(data, position, budget, tagged, values)
            else:
                position += 1
        return make(**values), position

    return read


def tags_of(layout: StructLayout) -> tuple[dict[int, tuple[str, Reader]], dict[str, Any]]:
    """The tagged fields of a struct: name and decoder by tag, default by name."""
    tagged = {f.tag: (f.name, field_reader(f, True)) for f in layout.fields if f.tag >= 0}
    return tagged, {f.name: f.default for f in layout.fields if f.tag >= 0}


def read_tags(
    data: bytes,
    position: int,
    budget: list[int],
    tagged: dict[int, tuple[str, Reader]],
    values: dict[str, Any],
) -> int:
    """Puts the tagged fields at this position into `values`; answers the next position."""
    count, position = read_uvarint(data, position)
    spend(budget, count, 2, len(data) - position, 1)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        end = position + size
        if end > len(data):
            raise ValueError(f"tagged field {tag} of {size} bytes, {len(data) - position} remain")
        if tag in tagged:
            name, read_field = tagged[tag]
            values[name], stop = read_field(data, position, budget)
            if stop != end:
                raise ValueError(f"tagged field {tag} of {size} bytes takes {stop - position}")
        position = end
    return position


def field_reader(field: Field, flexible: bool) -> Reader:
    """The decoder of one field."""
    if field.nested is not None:
        read = reader(field.nested)
    elif field.kind in FIXED:
        read = _fixed_reader(FIXED[field.kind])
    else:
        read = _text_reader(field.kind, flexible, field.nullable and not field.array)
    if field.convert is not None:
        read = _converted_reader(read, field.convert[0])
    if field.array:
        plain = field.nested is None and field.convert is None
        fixed = FIXED.get(field.kind) if plain else None
        cost = NUMBERS if fixed is not None and "partition" not in field.name else 1
        return _array_reader(read, fixed, smallest(field, flexible), flexible, field.nullable, cost)
    if field.nested is not None and field.nullable:
        return _nullable_reader(read)
    return read


def _fixed_reader(layout: Struct) -> Reader:
    unpack, size = layout.unpack_from, layout.size

    def read(data: bytes, position: int, budget: list[int]) -> tuple[Any, int]:
        return unpack(data, position)[0], position + size

    return read


def _text_reader(kind: str, flexible: bool, nullable: bool) -> Reader:
    """Strings and bytes: a length, -1 (compact: 0) for null, then that many bytes."""
    unpack, width = (_I16.unpack_from, 2) if kind == "string" else (_I32.unpack_from, 4)
    is_string = kind == "string"

    def read(data: bytes, position: int, budget: list[int]) -> tuple[Any, int]:
        if flexible:
            length, position = read_uvarint(data, position)
            length -= 1
        else:
            length = unpack(data, position)[0]
            position += width
        if length < 0:
            if nullable and length == -1:
                return None, position
            raise ValueError(f"{kind} of {length} bytes where null is not allowed")
        if is_string and length > STRING_MAX:
            raise ValueError(f"string of {length} bytes, at most {STRING_MAX} are taken")
        end = position + length
        if end > len(data):
            raise ValueError(f"{kind} of {length} bytes, {len(data) - position} remain")
        value = data[position:end]
        return value.decode() if is_string else value, end

    return read


def _converted_reader(read: Reader, convert: Callable[[Any], Any]) -> Reader:
    def read_converted(data: bytes, position: int, budget: list[int]) -> tuple[Any, int]:
        value, position = read(data, position, budget)
        return convert(value), position

    return read_converted


def _nullable_reader(read: Reader) -> Reader:
    """A struct that may be missing: one byte before it, negative when it is (KIP-893)."""

    def read_nullable(data: bytes, position: int, budget: list[int]) -> tuple[Any, int]:
        if data[position] > 127:
            return None, position + 1
        return read(data, position + 1, budget)

    return read_nullable


def _array_reader(
    read: Reader, fixed: Struct | None, least: int, flexible: bool, nullable: bool, cost: int
) -> Reader:
    """fixed: what each element is, when they are all of one size and taken as they are. cost: so
    many count as one."""

    def read_array(data: bytes, position: int, budget: list[int]) -> tuple[Any, int]:
        if flexible:
            count, position = read_uvarint(data, position)
            count -= 1
        else:
            count = _I32.unpack_from(data, position)[0]
            position += 4
        if count == 0:
            return (), position
        if count < 0:
            check_null(count, nullable)
            return None, position
        left = budget[0] - -(-count // cost)
        if left < 0 or count * least > len(data) - position:
            spend(budget, count, least, len(data) - position, cost)
        budget[0] = left
        if fixed is not None:
            end = position + count * least
            if count == 1:
                return fixed.unpack_from(data, position), end
            return tuple(chain.from_iterable(fixed.iter_unpack(data[position:end]))), end
        values = []
        for _ in range(count):
            value, position = read(data, position, budget)
            values.append(value)
        return tuple(values), position

    return read_array


def read_count(data: bytes, position: int, flexible: bool) -> tuple[int, int]:
    """(elements, next position) of the head of an array."""
    if flexible:
        count, position = read_uvarint(data, position)
        return count - 1, position
    count = _I32.unpack_from(data, position)[0]
    return count, position + 4


def check_null(count: int, nullable: bool) -> None:
    """Raises ValueError unless a negative count is that of an array that may be null."""
    if not nullable or count != -1:
        raise ValueError(f"array of {count} elements where null is not allowed")


def spend(budget: list[int], count: int, least: int, remain: int, cost: int) -> None:
    """Take `count` elements of at least `least` bytes from the budget before any of them is made;
    `cost` of them count as one. Raises ValueError for more than the bytes that remain or the
    budget hold."""
    if count * least > remain:
        raise ValueError(f"array of {count} elements in {remain} bytes")
    budget[0] -= -(-count // cost)
    if budget[0] < 0:
        raise TooManyElements(
            f"array of {count} elements: more in one message than are taken "
            "(penstock.request.max.elements)"
        )


def smallest(field: Field, flexible: bool) -> int:
    """The fewest bytes that one element of this field takes; at least 1."""
    if field.nested is not None:
        inner = field.nested
        return max(1, inner.flexible + sum(_least(f, inner.flexible) for f in inner.fields))
    if field.kind in FIXED:
        return FIXED[field.kind].size
    return 1 if flexible else 2 if field.kind == "string" else 4


def _least(field: Field, flexible: bool) -> int:
    if field.tag >= 0:
        return 0
    if field.array:
        return 1 if flexible else 4
    if field.nested is not None and field.nullable:
        return 1
    return smallest(field, flexible)


# Writing ------------------------------------------------------------------------------------------


def writer(layout: StructLayout) -> Writer:
    """The encoder of one struct: takes any object with the attributes that the fields name."""
    plain = [(f.name, field_writer(f, layout.flexible)) for f in layout.fields if f.tag < 0]
    tagged = sorted(
        (f.tag, f.name, f.default, field_writer(f, True)) for f in layout.fields if f.tag >= 0
    )
    flexible = layout.flexible

    def write_field(out: list[bytes], value: Any) -> None:
        for name, write_field in plain:
            write_field(out, getattr(value, name))
        if flexible:
            if tagged:
                _write_tags(out, value, tagged)
            else:
                out.append(b"\x00")

    return write_field


def _write_tags(
    out: list[bytes], value: object, tagged: list[tuple[int, str, Any, Writer]]
) -> None:
    present = []
    for tag, name, default, write_field in tagged:
        content = getattr(value, name)
        if content != default:
            pieces: list[bytes] = []
            write_field(pieces, content)
            present.append((tag, b"".join(pieces)))
    put_uvarint(out, len(present))
    for tag, encoded in present:
        put_uvarint(out, tag)
        put_uvarint(out, len(encoded))
        out.append(encoded)


def field_writer(field: Field, flexible: bool) -> Writer:
    if field.nested is not None:
        write = writer(field.nested)
    elif field.kind in FIXED:
        write = _fixed_writer(FIXED[field.kind])
    else:
        write = _text_writer(field.kind, flexible, field.nullable and not field.array)
    if field.convert is not None:
        write = _converted_writer(write, field.convert[1])
    if field.array:
        return array_writer(write, flexible, field.nullable)
    if field.nested is not None and field.nullable:
        return nullable_writer(write)
    return write


def _fixed_writer(layout: Struct) -> Writer:
    pack = layout.pack

    def write_field(out: list[bytes], value: Any) -> None:
        out.append(pack(value))

    return write_field


def _text_writer(kind: str, flexible: bool, nullable: bool) -> Writer:
    pack = _I16.pack if kind == "string" else _I32.pack
    most = STRING_MAX if kind == "string" else _BYTES_MAX
    null = b"\x00" if flexible else pack(-1)

    def write_field(out: list[bytes], value: str | bytes | None) -> None:
        if value is None:
            assert nullable, f"null for a {kind} that cannot be null"
            out.append(null)
            return
        encoded = value.encode() if isinstance(value, str) else value
        assert len(encoded) <= most, f"{kind} of {len(encoded)} bytes: no client would read it"
        if flexible:
            put_uvarint(out, len(encoded) + 1)
        else:
            out.append(pack(len(encoded)))
        out.append(encoded)

    return write_field


def _converted_writer(write: Writer, convert: Callable[[Any], Any]) -> Writer:
    def write_converted(out: list[bytes], value: Any) -> None:
        write(out, convert(value))

    return write_converted


def nullable_writer(write: Writer) -> Writer:
    def write_nullable(out: list[bytes], value: object) -> None:
        out.append(b"\xff" if value is None else b"\x01")
        if value is not None:
            write(out, value)

    return write_nullable


def array_writer(write: Writer, flexible: bool, nullable: bool) -> Writer:
    null = b"\x00" if flexible else _I32.pack(-1)

    def write_array(out: list[bytes], values: Any) -> None:
        if values is None:
            assert nullable, "null for an array that cannot be null"
            out.append(null)
            return
        if flexible:
            put_uvarint(out, len(values) + 1)
        else:
            out.append(_I32.pack(len(values)))
        for value in values:
            write(out, value)

    return write_array
