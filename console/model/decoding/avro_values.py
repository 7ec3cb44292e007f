"""Avro, as JSON: by fastavro, within bounds that its schema gives.

fastavro reads as deep as the bytes say, and as many items as they declare: items that take no bytes
could be declared by the billion, and a schema that refers to itself be nested until the stack ends
and with it the process. So a schema is measured first. What cannot be bounded is refused; what
refers to itself is read by fastavro's other reader, which is Python and ends with an exception.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any, Final, NamedTuple

import fastavro
from fastavro.read import LOGICAL_READERS

from console.model.decoding import json_text
from console.model.decoding.decoded import AVRO, MOST, PARTS_MOST, Decoded, Unfit
from console.model.decoding.json_text import Number
from console.model.decoding.moments import MICROS, MILLIS, NANOS, day, moment
from console.model.decoding.plain_forms import too_long

_RECURSIVE_MOST: Final = 1 << 16
"""Bytes of a value whose schema refers to itself: its reader takes quadratic time for some."""
_DEEPEST: Final = 300
"""Levels of a schema: each takes a kilobyte or two of the stack."""
_ENDLESS: Final = 1 << 40
_SIZES: Final = {
    "boolean": 1,
    "int": 1,
    "long": 1,
    "bytes": 1,
    "string": 1,
    "float": 4,
    "double": 8,
}
_OURS: Final = "penstock-"
_LONGEST_DECIMAL: Final = 256


class AvroSchema:
    """One schema, with those that it refers to."""

    kind = AVRO

    def __init__(self, schema: Any, references: Sequence[Any] = ()) -> None:
        """Raises Unfit for what is no schema, or cannot be bounded."""
        named: dict[str, Any] = {}
        try:
            for one in references:
                fastavro.parse_schema(_renamed(one), named)
            self._schema = fastavro.parse_schema(_renamed(schema), named)
            self._measured = _Measure(named)
            least = self._measured.least(self._schema)
            self._read = fastavro.schemaless_reader
            if self._measured.is_recursive:
                self._read = import_module("fastavro._read_py").schemaless_reader
        except (ImportError, Unfit):
            raise
        except Exception as wrong:  # whatever the library finds wrong with it
            raise Unfit(f"it is no Avro schema: {_told(wrong)}") from None
        if least >= _ENDLESS:
            raise Unfit("the Avro schema contains itself: its values never end")

    def decode(self, data: bytes) -> Decoded:
        """A datum and nothing behind it."""
        return self._decode(data, data)

    def decode_framed(self, data: bytes, rest: bytes) -> Decoded:
        """The same behind a head."""
        return self._decode(data, rest)

    def _decode(self, data: bytes, rest: bytes) -> Decoded:
        if len(rest) > MOST:
            raise too_long(rest)
        if self._measured.is_recursive and len(rest) > _RECURSIVE_MOST:
            raise Unfit(
                f"it has {len(rest)} bytes: where the schema refers to itself, no more than"
                f" {_RECURSIVE_MOST} are taken apart"
            )
        if len(rest) * self._measured.most_free > PARTS_MOST * 10:
            raise Unfit("its schema has too many parts that take no bytes")
        file = BytesIO(rest)
        try:
            value = self._read(file, self._schema, None)
            left = len(rest) - file.tell()
            text = json_text.written(value, PARTS_MOST)
        except RecursionError:
            raise Unfit("it is nested too deeply") from None
        except Exception as wrong:  # whatever the library finds wrong with them
            raise Unfit(_told(wrong)) from None
        if left:
            raise Unfit(f"{left} bytes follow its end")
        return Decoded(AVRO, text, data)


class _Measure:
    """The memory that a schema's values need. named: its named types as fastavro has parsed
    them.

    is_recursive: a type is a part of itself. most_free: how many parts of a value may take no byte
    of their own, for each byte.
    """

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.is_recursive = False
        self.most_free = 0
        self._named = named
        self._known: dict[str, _Size] = {}
        self._open: set[str] = set()

    def least(self, schema: Any) -> int:
        """How many bytes a value has at least. Raises Unfit for arrays of what takes none, and for
        what is nested too deeply."""
        return self._of(schema).least

    def _of(self, schema: Any) -> "_Size":
        found = self._measured(schema)
        self.most_free = max(self.most_free, found.free)
        if found.depth > _DEEPEST:
            raise Unfit("the Avro schema is nested too deeply")
        return found

    def _measured(self, schema: Any) -> "_Size":
        if isinstance(schema, str):
            return self._of_name(schema)
        if isinstance(schema, list):
            branches = [self._of(one) for one in schema]
            least = min((one.least for one in branches), default=0)
            return _Size.of(branches)._replace(least=1 + least)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._of_record(schema)
        if kind == "fixed":
            return _Size(schema["size"], int(schema["size"] == 0), 1)
        if kind == "enum":
            return _Size(1, 0, 1)
        if kind in ("array", "map"):
            inner = self._of(schema["items" if kind == "array" else "values"])
            if not inner.least and kind == "array":  # a map's keys take bytes
                raise Unfit("the Avro schema has an array of what takes no bytes: it has no bound")
            return _Size(1, 0, inner.depth + 1)
        return self._of(kind)

    def _of_name(self, name: str) -> "_Size":
        if name == "null":
            return _Size(0, 1, 1)
        if name in _SIZES:
            return _Size(_SIZES[name], 0, 1)
        if name in self._open:
            self.is_recursive = True
            return _Size(_ENDLESS, 0, 1)
        return self._known.get(name) or self._of(self._named[name])

    def _of_record(self, schema: Mapping[str, Any]) -> "_Size":
        name = schema["name"]
        self._open.add(name)
        found = _Size.of([self._of(field["type"]) for field in schema["fields"]])
        self._open.discard(name)
        found = found._replace(free=found.free + 1)
        if found.least < _ENDLESS:  # else it may only look so from within
            self._known[name] = found
        return found


class _Size(NamedTuple):
    """least: bytes of a value at least. free: parts of it that take none. depth: levels."""

    least: int
    free: int
    depth: int

    @classmethod
    def of(cls, parts: "Sequence[_Size]") -> "_Size":
        """The size of these parts in sequence."""
        return cls(
            min(sum(one.least for one in parts), _ENDLESS),
            sum(one.free for one in parts),
            1 + max((one.depth for one in parts), default=0),
        )


def _renamed(schema: Any) -> Any:
    """The same schema with logical types of names of ours: the library's readers of its own round,
    and take quadratic time for long decimals."""
    if isinstance(schema, list):
        return [_renamed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _renamed(value) for key, value in schema.items()}
    if isinstance(found.get("logicalType"), str):
        found["logicalType"] = _OURS + found["logicalType"]
    return found


def _decimal(data: bytes, schema: Mapping[str, Any], _: Any = None) -> Any:
    scale = schema.get("scale", 0)
    if len(data) > _LONGEST_DECIMAL or not isinstance(scale, int) or not 0 <= scale <= 1000:
        return data
    number = int.from_bytes(data, "big", signed=True)
    digits = str(abs(number)).rjust(scale + 1, "0")
    sign = "-" if number < 0 else ""
    return Number(sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits))


def _register() -> None:
    for kind in ("bytes", "fixed"):
        LOGICAL_READERS[f"{kind}-{_OURS}decimal"] = _decimal
    LOGICAL_READERS[f"int-{_OURS}date"] = lambda value, *_: day(value)
    for unit, per_second in (("millis", MILLIS), ("micros", MICROS), ("nanos", NANOS)):

        def at(value: int, *_: Any, per_second: int = per_second) -> str:
            return moment(value, per_second)

        def local(value: int, *_: Any, per_second: int = per_second) -> str:
            return moment(value, per_second, zone="")

        LOGICAL_READERS[f"long-{_OURS}timestamp-{unit}"] = at
        LOGICAL_READERS[f"long-{_OURS}local-timestamp-{unit}"] = local


_register()


def _told(wrong: Exception) -> str:
    return str(wrong) or type(wrong).__name__
