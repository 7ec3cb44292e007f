"""Values by the newest schema of a registry's subject: JSON that was typed → the wire format.

What `consume --decode` prints is taken: bytes as 0x…, times as ISO 8601 or numbers.
"""

import json
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from io import BytesIO
from typing import Any, Final

from console.model.asking.failure import Failure, usage
from console.model.decoding.decoded import AVRO, JSON, Unfit
from console.model.decoding.registry import Registry
from console.model.decoding.schemas import INSTALL

_TIMES: Final = (
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
)


class SchemaWriter:
    """The newest schema of one subject, as it is when this is made."""

    def __init__(self, registry: Registry, subject: str) -> None:
        """Raises Failure: a registry or a subject that is not there, a kind that is not written."""
        try:
            newest = registry.newest(subject)
        except Unfit as wrong:
            raise usage(f"subject {subject} of {registry.url}: {wrong}") from None
        self._head = b"\0" + newest.number.to_bytes(4, "big")
        self._subject = subject
        self._avro: _Avro | None = None
        if newest.kind == AVRO:
            self._avro = _Avro(newest.schema, newest.references)
        elif newest.kind != JSON:
            raise usage(
                f"subject {subject} is {newest.kind}: values of Avro and JSON Schema are written",
                "--encoding hex writes bytes as they are",
            )

    def encode_value(self, text: bytes) -> bytes:
        """The framed value of JSON. Raises Failure (USAGE) for JSON that does not fit."""
        try:
            value = json.loads(text, parse_float=Decimal)
            return self._head + (text if self._avro is None else self._avro.encode(value))
        except (ValueError, RecursionError) as wrong:
            shown = text[:60].decode(errors="replace")
            raise usage(f"{shown!r} does not fit the schema of {self._subject}: {wrong}") from None


class _Avro:
    """A schema of Avro, with those that it names."""

    def __init__(self, schema: Any, references: tuple[Any, ...]) -> None:
        try:
            import fastavro
        except ImportError:
            raise Failure("Avro needs fastavro, which is not here", INSTALL, name="SETUP") from None
        self._named: dict[str, Any] = {}
        try:
            for one in references:
                fastavro.parse_schema(one, self._named)
            self._schema = fastavro.parse_schema(schema, self._named)
        except Exception as wrong:  # of the library's kinds
            raise usage(f"the registry's schema is no Avro schema: {wrong}") from None
        self._write = fastavro.schemaless_writer

    def encode(self, value: Any) -> bytes:
        """Raises ValueError."""
        datum = self._datum(value, self._schema)
        out = BytesIO()
        try:
            self._write(out, self._schema, datum)
        except Exception as wrong:  # of the library's kinds
            raise ValueError(str(wrong)) from None
        return out.getvalue()

    def _datum(self, value: Any, schema: Any) -> Any:
        """The library's value for one of JSON. Raises ValueError."""
        if isinstance(schema, list):
            return self._branch(value, schema)
        if isinstance(schema, str):
            named = self._named.get(schema)
            return _primitive(value, schema, "") if named is None else self._datum(value, named)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(value, schema)
        if kind == "array" and isinstance(value, list):
            return [self._datum(one, schema["items"]) for one in value]
        if kind == "map" and isinstance(value, dict):
            return {name: self._datum(one, schema["values"]) for name, one in value.items()}
        if kind == "enum" and value not in schema["symbols"]:
            raise ValueError(f"{value!r} is none of {', '.join(schema['symbols'])}")
        if not isinstance(kind, str):
            return self._datum(value, kind)
        return _primitive(value, kind, str(schema.get("logicalType") or ""))

    def _branch(self, value: Any, branches: list[Any]) -> Any:
        for branch in branches:
            try:
                return self._datum(value, branch)
            except ValueError:
                continue
        raise ValueError("it fits no type of a union")

    def _record(self, value: Any, schema: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{schema['name']} is an object")
        fields = {field["name"]: field for field in schema["fields"]}
        if more := sorted(set(value) - set(fields)):
            raise ValueError(f"the schema has no field {more[0]}: it has {', '.join(fields)}")
        found = {}
        for name, field in fields.items():
            if name in value:
                found[name] = self._datum(value[name], field["type"])
            elif "default" not in field:
                raise ValueError(f"field {name} is missing, and has no default")
        return found


def _primitive(value: Any, kind: str, logical: str) -> Any:
    """Raises ValueError."""
    if isinstance(value, bool) != (kind == "boolean") or (value is None) != (kind == "null"):
        raise ValueError(f"{json.dumps(value, default=str)} is no {logical or kind}")
    if kind in ("bytes", "fixed"):
        return _decimal(value) if logical == "decimal" else _bytes(value)
    if logical == "date" and isinstance(value, str):
        return date.fromisoformat(value)
    if logical in _TIMES and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        is_local = logical.startswith("local-")
        return moment if moment.tzinfo or is_local else moment.replace(tzinfo=UTC)
    if kind in ("float", "double") and isinstance(value, Decimal | int):
        return float(value)
    fits = {"int": int, "long": int, "string": str, "enum": str, "float": float, "double": float}
    if not isinstance(value, fits.get(kind, bool if kind == "boolean" else type(None))):
        raise ValueError(f"{json.dumps(value, default=str)} is no {logical or kind}")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError("bytes are written as 0x and hexadecimal digits")
    return bytes.fromhex(value[2:])


def _decimal(value: Any) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r} is no decimal") from None
