"""Avro schemas as JSON: made of columns, made one text with those that they name, and marked
so that a value that cannot be read is told from one of nulls. Pure.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from spark_local.cause import JobError

MARK: Final = "__penstock_read"
"""A field that only readers have: 1 in each value that was read, null in one that was not."""
_PRIMITIVES: Final = {
    "string": "string",
    "boolean": "boolean",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INNER: Final = {"array": "items", "map": "values"}


def parse_schema(text: str) -> Any:
    """A registry's text as JSON's values; a primitive type may come without quotes."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def inlined(text: str, references: Sequence[str]) -> Any:
    """The schema with the definitions of those that it names, each where it is named first.
    references: in an order in which each is complete."""
    named: dict[str, Any] = {}
    for one in references:
        schema = parse_schema(one)
        if isinstance(schema, dict) and "name" in schema:
            named[_full_name(schema, "")] = schema
    return _inline(parse_schema(text), "", named, set())


def _inline(schema: Any, space: str, named: dict[str, Any], seen: set[str]) -> Any:
    if isinstance(schema, str):
        full = schema if "." in schema or not space else f"{space}.{schema}"
        found = full if full in named else schema
        if found in named and found not in seen:
            return _inline(named[found], "", named, seen)
        return schema
    if isinstance(schema, list):
        return [_inline(one, space, named, seen) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind in _INNER:
        key = _INNER[kind]
        return {**schema, key: _inline(schema.get(key), space, named, seen)}
    if kind in ("record", "error"):
        full = _full_name(schema, space)
        seen.add(full)
        inner = full.rpartition(".")[0]
        fields = [
            {**one, "type": _inline(one.get("type"), inner, named, seen)}
            for one in schema.get("fields", ())
        ]
        return {**schema, "fields": fields}
    if kind in ("enum", "fixed"):
        seen.add(_full_name(schema, space))
    elif isinstance(kind, dict | list):
        return {**schema, "type": _inline(kind, space, named, seen)}
    return schema


def _full_name(schema: dict[str, Any], space: str) -> str:
    name = str(schema["name"])
    inner = schema.get("namespace", space)
    return name if "." in name or not inner else f"{inner}.{name}"


def marked(schema: Any) -> Any:
    """A reader's schema with MARK. Raises JobError for one that is no record."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        problem = "the schema of the values is no record, so it has no columns"
        raise JobError(problem, 'read them with format = "binary", or register a record')
    mark = {"name": MARK, "type": "int", "default": 1}
    return {**schema, "fields": [*schema.get("fields", ()), mark]}


def record_of(columns: list[dict[str, Any]], name: str, space: str = "") -> dict[str, Any]:
    """The schema of rows. columns: fields of Spark's JSON of a struct. name, space: of the record.
    Each field may be null, which is its default, so that a column may come and go. Raises JobError
    for a column that Avro cannot have."""
    found = _record(columns, name)
    return {**found, "namespace": space} if space else found


def _record(columns: list[dict[str, Any]], name: str) -> dict[str, Any]:
    fields = []
    for one in columns:
        column = str(one["name"])
        if not _NAME.fullmatch(column):
            remedy = "give it another name: … AS name, of letters, digits and _"
            raise JobError(f"Avro has no field {column!r}, which the job derives", remedy)
        kind = _type(one["type"], f"{name}_{column}")
        fields.append({"name": column, "type": ["null", kind], "default": None})
    return {"type": "record", "name": name, "fields": fields}


def _type(kind: Any, name: str) -> Any:
    if isinstance(kind, str):
        if kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        if sized := _DECIMAL.fullmatch(kind):
            shape = {"precision": int(sized[1]), "scale": int(sized[2])}
            return {"type": "bytes", "logicalType": "decimal", **shape}
    elif kind.get("type") == "struct":
        return _record(kind["fields"], name)
    elif kind.get("type") == "array":
        return {"type": "array", "items": ["null", _type(kind["elementType"], name)]}
    elif kind.get("type") == "map" and kind["keyType"] == "string":
        return {"type": "map", "values": ["null", _type(kind["valueType"], name)]}
    shown = kind if isinstance(kind, str) else kind.get("type")
    raise JobError(f"Avro has no {shown}, which {name} is", "cast it to another type in the query")


def record_name(topic: str) -> str:
    """A record's name for the values of a topic."""
    name = re.sub(r"\W", "_", topic, flags=re.ASCII)
    return name if _NAME.fullmatch(name) else f"_{name}"
