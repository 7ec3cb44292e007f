"""Records of a topic → rows, and which of them cannot be read.

The same expressions serve streams, tables, previews and the search for dead letters, so all of them
agree on what a bad record is: a value that does not fit the columns, or no event time where
the job names one. A record without a value is a tombstone: no row, unless the source asks for it.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from spark_local.ddl import columns as names_of
from spark_local.engine import avro_values
from spark_local.engine.avro_values import CORRUPT
from spark_local.job import AVRO, HEADERS, JSON_SCHEMA, METADATA, TOMBSTONE, Source, Table
from spark_local.registry import HEAD_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["CORRUPT"]

_FRAMED: Final = (JSON_SCHEMA,)
_EVENT: Final = "__event"  # the event time, where the source has an expression for it
_SEVERAL: Final = r"\}\s*\{"  # an object behind another, outside of strings
_STRING: Final = r'"(\\.|[^"\\])*"'
_OPTIONS: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


def body(form: str) -> "Column":
    """The content of a value, behind the head of a registry's wire format where it has one."""
    from pyspark.sql import functions as f

    return f.expr(f"substring(value, {HEAD_BYTES + 1})") if form in _FRAMED else f.col("value")


def parsed(
    raw: "DataFrame", form: str, schema: str, options: Mapping[str, str] | None = None
) -> "DataFrame":
    """The connector's columns with `row` (a struct of the columns) and CORRUPT (text or null).
    options: of Spark's reader of JSON or CSV."""
    from pyspark.sql import functions as f

    value = f.col("value")
    if form in ("string", "binary"):
        kind = "string" if form == "string" else "binary"
        row: Any = f.struct(value.cast(kind).alias("value"))
        return raw.withColumn("row", row).withColumn(CORRUPT, f.lit(None).cast("string"))
    is_json = form != "csv"
    text = body(form).cast("string")
    reader = f.from_json if is_json else f.from_csv
    read_row = reader(text, f"{schema}, {CORRUPT} STRING", {**(options or {}), **_OPTIONS})
    row = f.col("row")  # by name: Spark would read the value again for each mention
    unseen = _left_out(text, schema) if is_json else f.lit(None)
    headless = f.when(~avro_values.is_framed(), f.lit("")) if form in _FRAMED else f.lit(None)
    told = f.coalesce(headless, row[CORRUPT], _empty(row, is_json), unseen)
    broken = f.when(value.isNotNull(), told)
    return raw.withColumn("row", read_row).withColumn(CORRUPT, broken)


def _left_out(text: "Column", schema: str) -> "Column":
    """The empty text where Spark reads an object and leaves out, in silence, what stands behind it
    or a column that is written in another case; else null. No mention of the row that was read:
    Spark would read the value once more for it."""
    from pyspark.sql import functions as f

    ends = f.rtrim(text, f.lit(" \t\r\n")).endswith("}")
    # Only values that look like it get the second look, which costs more than reading them.
    several = text.rlike(_SEVERAL) & f.regexp_replace(text, _STRING, '""').rlike(_SEVERAL)
    names = "|".join(re.escape(name) for name in names_of(schema))
    miscased = f.lit(False)
    for name in names_of(schema):
        miscased = miscased | is_miscased(text, name)
    looks_miscased = text.rlike(rf'"(?!(?:{names})")(?i:{names})"\s*:')
    return f.when(~ends | several | (looks_miscased & miscased), f.lit(""))


def is_miscased(text: "Column", name: str) -> "Column":
    """True where an object lacks this column and has one whose name differs in case alone."""
    from pyspark.sql import functions as f

    keys = f.json_object_keys(text)
    other = f.exists(keys, lambda key: f.lower(key) == name.lower())
    return f.coalesce(other & ~f.array_contains(keys, name), f.lit(False))


def read(raw: "DataFrame", source: Source, schema: str) -> "DataFrame":
    """Records of a source: `parsed`, and its event time where that is an expression."""
    from pyspark.sql import functions as f

    if source.writers is not None and source.format == AVRO:
        records = avro_values.parsed(raw, source.writers)
    else:
        records = parsed(raw, source.format, schema, source.options)
    if source.event_expression is None:
        return records
    # The connector's columns (key, timestamp, …) step aside: the expression names the record's.
    aside = records.select(f.struct(*records.columns).alias("__record"), "row.*")
    timed = aside.withColumn(_EVENT, f.expr(source.event_expression))
    return timed.select("__record.*", _EVENT)


def _event_time(source: Source) -> "Column":
    from pyspark.sql import functions as f

    assert source.event_time is not None
    if source.event_expression is not None:
        return f.col(_EVENT)
    if source.event_time in METADATA:
        return f.col(source.event_time[1:])
    return f.col("row").getField(source.event_time)


def _empty(row: "Column", is_json: bool) -> "Column":
    """JSON that is no object (null, a blank) gives no row and no complaint."""
    from pyspark.sql import functions as f

    return f.when(row.isNull(), f.lit("")) if is_json else f.lit(None).cast("string")


def is_ahead(source: Source, now: "Column | None" = None) -> "Column":
    """True where an event time would move the watermark too far ahead of `now`, the clock."""
    from pyspark.sql import functions as f

    if source.event_time is None or source.watermark_ms is None:
        return f.lit(False)
    time = _event_time(source)
    latest = (f.current_timestamp() if now is None else now) + f.expr(
        f"INTERVAL '{source.max_ahead_ms // 1000}' SECOND"
    )
    return f.coalesce(time.try_cast("timestamp") > latest, f.lit(False))


def bad(source: Source, now: "Column | None" = None) -> "Column":
    """True where a parsed record of a source cannot be read. now: the time of its batch, else the
    clock."""
    from pyspark.sql import functions as f

    wrong = f.col(CORRUPT).isNotNull()
    if source.event_time and source.event_time not in METADATA:
        wrong = wrong | _event_time(source).isNull()
    return f.col("value").isNotNull() & (wrong | is_ahead(source, now))


def rows(records: "DataFrame", source: Source | Table, columns: list[str]) -> "DataFrame":
    """Columns of the good records."""
    from pyspark.sql import functions as f

    chosen = [f.col("row").getField(name).alias(name) for name in columns]
    if isinstance(source, Source) and source.metadata:
        chosen += [f.col(name[1:]).alias(name) for name in METADATA]
    if isinstance(source, Source) and source.headers:
        chosen.append(f.col(HEADERS[1:]).alias(HEADERS))
    if isinstance(source, Source) and source.tombstones:
        chosen.append(f.col("value").isNull().alias(TOMBSTONE))
    if isinstance(source, Source) and source.event_expression and source.event_time:
        chosen.append(f.col(_EVENT).alias(source.event_time))
    kept = isinstance(source, Source) and source.tombstones
    good = f.lit(True) if kept else f.col("value").isNotNull()
    if isinstance(source, Source):
        good = good & ~bad(source)
    return records.where(good).select(*chosen)
