"""JSON Schema and columns: what a schema says of an object, as columns, and the schema of rows.

Only types are read: what else a schema demands of a value is checked by nobody here. Pure.
"""

from typing import Any, Final

from spark_local.cause import JobError

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_MOST_DEEP: Final = 30
_PLAIN: Final = {"string": "STRING", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_FORMATS: Final = {"date-time": "TIMESTAMP", "date": "DATE"}
_OF_SPARK: Final[dict[str, dict[str, Any]]] = {
    "string": {"type": "string"},
    "binary": {"type": "string", "contentEncoding": "base64"},
    "boolean": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
    "timestamp_ntz": {"type": "string"},
    **{kind: {"type": "integer"} for kind in ("byte", "short", "integer", "long")},
    **{kind: {"type": "number"} for kind in ("float", "double")},
}


def columns_of(schema: Any) -> str:
    """Columns of the objects that a schema describes, as Spark writes them. A property of several
    types is text, as it is written. Raises JobError for a schema of no object."""
    found = _resolved(schema, schema, 0)
    if not isinstance(found, dict) or not _properties(found):
        problem = "the JSON Schema of the values names no properties, so it has no columns"
        raise JobError(problem, 'write the columns as schema = "name TYPE, …"')
    pairs = _properties(found).items()
    return ", ".join(f"{_quoted(name)} {_type(one, schema, 1)}" for name, one in pairs)


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _resolved(schema: Any, root: Any, deep: int) -> Any:
    """The schema that a reference within it names."""
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and deep < _MOST_DEEP:
        deep += 1
        found = root
        for part in schema["$ref"].removeprefix("#").strip("/").split("/"):
            found = found.get(part) if part and isinstance(found, dict) else found
        schema = found
    return schema


def _type(schema: Any, root: Any, deep: int) -> str:
    found = _resolved(schema, root, deep)
    if not isinstance(found, dict) or deep >= _MOST_DEEP:
        return "STRING"
    choices = found.get("oneOf") or found.get("anyOf")
    if isinstance(choices, list):
        kept = [one for one in choices if one != {"type": "null"}]
        return _type(kept[0], root, deep + 1) if len(kept) == 1 else "STRING"
    kind = found.get("type")
    kinds = [one for one in kind if one != "null"] if isinstance(kind, list) else [kind]
    if len(kinds) != 1:
        return "STRING"
    if kinds[0] == "string":
        return _FORMATS.get(str(found.get("format")), "STRING")
    if kinds[0] == "array":
        return f"ARRAY<{_type(found.get('items'), root, deep + 1)}>"
    if kinds[0] == "object" or (kinds[0] is None and _properties(found)):
        if inner := _properties(found):
            parts = (f"{_quoted(n)}: {_type(one, root, deep + 1)}" for n, one in inner.items())
            return f"STRUCT<{', '.join(parts)}>"
        values = found.get("additionalProperties")
        return f"MAP<STRING, {_type(values if isinstance(values, dict) else {}, root, deep + 1)}>"
    return _PLAIN.get(str(kinds[0]), "STRING")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def schema_of(columns: list[dict[str, Any]], title: str) -> dict[str, Any]:
    """The schema of rows. columns: fields of Spark's JSON of a struct. title: its name."""
    return {"$schema": _DRAFT, "title": title, **_object(columns)}


def _object(columns: list[dict[str, Any]]) -> dict[str, Any]:
    found = {str(one["name"]): _nullable(_of_column(one["type"])) for one in columns}
    return {"type": "object", "properties": found}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]}


def _of_column(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return _OF_SPARK.get(kind, {"type": "number"} if kind.startswith("decimal") else {})
    if kind.get("type") == "struct":
        return _object(kind["fields"])
    if kind.get("type") == "array":
        return {"type": "array", "items": _nullable(_of_column(kind["elementType"]))}
    if kind.get("type") == "map":
        values = _nullable(_of_column(kind["valueType"]))
        return {"type": "object", "additionalProperties": values}
    return {}
