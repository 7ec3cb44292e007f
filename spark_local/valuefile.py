"""How a topic's values are read and written: keys of a job file. Imports neither pyspark nor
appliance.
"""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from spark_local import ddl
from spark_local.job import AVRO, INFER, JSON_SCHEMA, Place, RegistryPlace
from spark_local.mistakes import TableReader
from spark_local.tablefile import read_secret

REGISTERED: Final = (AVRO, JSON_SCHEMA)
"""Formats whose values name their schema by the id that a registry gave it."""
_VALUE_FORMATS: Final = ("json", "csv", "string", "binary", *REGISTERED)
_SINK_FORMATS: Final = ("json", *REGISTERED)
_PLAIN_COLUMNS: Final = {"string": "value STRING", "binary": "value BINARY"}
_MOST: Final = (1 << 31) - 1
_URL: Final = re.compile(r"https?://[^\s/@]+(/[^\s@?#]*)?")
_OPTIONS_OF_BOTH: Final = (
    "timestampFormat",
    "timestampNTZFormat",
    "dateFormat",
    "timeZone",
    "locale",
)
_VALUE_OPTIONS: Final = {
    "json": (
        *_OPTIONS_OF_BOTH, "allowBackslashEscapingAnyCharacter", "allowComments",
        "allowNonNumericNumbers", "allowNumericLeadingZeros", "allowSingleQuotes",
        "allowUnquotedControlChars", "allowUnquotedFieldNames", "primitivesAsString",
    ),
    "csv": (
        *_OPTIONS_OF_BOTH, "comment", "emptyValue", "escape", "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace", "nanValue", "negativeInf", "nullValue", "positiveInf", "quote",
        "sep",
    ),
}  # fmt: skip
"""Options of Spark's readers that change how a value is read, and not what happens to a bad one."""


def read_format(read: TableReader, place: Place) -> tuple[str, str | None]:
    """(format of the values, columns; None: a registry says)."""
    schema = read.checked("schema", _schema, None)
    if place.topic is None:
        if "format" in read:
            read.wrong("format", "a topic's values have it", "files have file = {format = …}")
        if place.file and place.file.format != "parquet" and not schema and "schema" not in read:
            read.wrong("schema", "it is missing", 'write schema = "name TYPE, …" or "infer"')
        if (place.jdbc or place.table) and "schema" in read:
            kind = "database" if place.jdbc else "table"
            read.wrong("schema", f"a {kind} has one itself", "take the key out")
        return "row", schema
    form = read.choice("format", _VALUE_FORMATS, "json")
    if form in _PLAIN_COLUMNS:
        if "schema" in read:
            read.wrong("schema", f"a {form} has one column, value", "take the key out")
        return form, _PLAIN_COLUMNS[form]
    if form in REGISTERED:
        if "schema" in read and (form == AVRO or schema == INFER):
            read.wrong("schema", "the registry has it", "take the key out")
            return form, None
        return form, schema
    if schema is None and "schema" not in read:
        read.wrong("schema", "it is missing", 'write schema = "name TYPE, …" or "infer"')
    return form, schema


def read_options(read: TableReader, place: Place, form: str) -> dict[str, str]:
    """Options of Spark's reader for a topic's values."""
    found = read.scalars("options")
    if place.topic is None and found:
        read.wrong("options", "a topic's values have them", "files have file = {options = {…}}")
        return {}
    known = _VALUE_OPTIONS.get("json" if form == JSON_SCHEMA else form, ())
    for name in found:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
            if name == "mode":
                hint = "a value that cannot be read is a dead letter; take it out"
            read.wrong(f"options.{name}", f"a {form} value has no such option", hint)
    return found


def read_registry(read: TableReader, place: Place, form: str, folder: Path) -> RegistryPlace | None:
    """The subject of a registry that values of this format need: `registry = "URL"`, or a table.
    folder: what a relative path means."""
    told = read.raw("registry")
    if form not in REGISTERED:
        if told is not None:
            words = " or ".join(f'"{one}"' for one in REGISTERED)
            read.wrong("registry", "values of this format need none", f"write format = {words}")
        return None
    usual = f"{place.topic}-value"
    if told is None:
        remedy = 'write registry = "http://host:8081"'
        read.wrong("registry", f"values of format {form} name a schema in one", remedy)
        return None
    if not isinstance(told, dict):
        url = read.checked("registry", _url, None)
        return None if url is None else RegistryPlace(url, usual)
    inner = read.table("registry")
    assert inner is not None
    url = inner.checked("url", _url, None)
    if "url" not in inner:
        inner.wrong("url", "it is missing", 'write url = "http://host:8081"')
    user, password = (read_secret(inner, key, folder) for key in ("user", "password"))
    if ("user" in inner) != ("password" in inner):
        missing = "password" if "user" in inner else "user"
        inner.wrong(missing, "it is missing", f'write {missing} = "${{file:PATH:NAME}}"')
    version = inner.number("version", 0, 1, _MOST) or None
    found = RegistryPlace(
        url=url or "-",
        subject=inner.text("subject", usual) or usual,
        version=version,
        user=user,
        password=password,
    )
    inner.finish()
    return found


def read_sink_format(
    read: TableReader, place: Place, folder: Path
) -> tuple[str, RegistryPlace | None]:
    """(format of the values that a sink writes, where its schema is registered)."""
    if place.topic is None:
        for key in ("format", "registry"):
            if key in read:
                read.raw(key)
                read.wrong(key, "only topics have it", "take the key out")
        return "json", None
    form = read.choice("format", _SINK_FORMATS, "json")
    found = read_registry(read, place, form, folder)
    if found is not None and found.version is not None:
        problem = "rows are written by a schema of their own columns"
        read.wrong("registry.version", problem, "take the key out")
    return form, found


def _url(value: Any) -> str:
    if not isinstance(value, str) or not _URL.fullmatch(value):
        remedy = 'write "http://host:8081"; user and password have keys of their own'
        raise ValueError("it is no address of a schema registry", remedy)
    return value.rstrip("/")


def _schema(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it must be a text", 'write "name TYPE, …" or "infer"')
    if value.strip().lower() == INFER:
        return INFER
    ddl.columns(value)
    return value
