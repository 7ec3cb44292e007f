"""The text of a job file that keeps a topic as a table, made of a few words.

Without columns: key, value, headers, timestamp, partition and offset as they are. Pure: the text is
checked by jobfile.py, as one that a person writes.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from spark_local import ddl
from spark_local.job import DELTA, ICEBERG

_RAW: Final = """\
SELECT _key AS key, value, _headers AS headers, _timestamp AS timestamp, _partition AS partition,
  _offset AS offset
FROM records"""
_PLACE: Final = ("_timestamp AS record_time", "_partition AS record_partition")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic as a table. path: the catalog's folder. schema: columns of the values, None: as they
    are. key: the column that the record's key is; rows are merged by it. table_format: ICEBERG or
    DELTA."""

    topic: str
    path: str
    table: str
    schema: str | None = None
    key: str | None = None
    partition_by: tuple[str, ...] = ()
    format: str = "json"
    table_format: str = ICEBERG


def table_name(topic: str) -> str:
    """The table's name for a topic's: `kafka.orders_eu` for `orders.eu`."""
    plain = re.sub(r"[^a-z0-9_]", "_", topic.lower())
    return f"kafka.{plain if not plain[0].isdigit() else f'_{plain}'}"[:106]


def job_name(topic: str) -> str:
    """The job's name for a topic's."""
    return f"{re.sub(r'[^a-z0-9_-]', '_', topic.lower()).lstrip('_-') or 'topic'}-table"[-100:]


def job_text(wanted: Wanted) -> str:
    """The job file. Raises ValueError(problem, remedy) for columns that cannot be."""
    columns = None if wanted.schema is None else ddl.columns(wanted.schema)
    if wanted.key is not None and wanted.key not in (columns or {}):
        there = "there is no schema" if columns is None else f"it has {', '.join(columns)}"
        raise ValueError(f"the schema has no column {wanted.key!r}", f"{there}: name one of them")
    sql = _RAW if columns is None else _typed(columns, wanted.key)
    raw = columns is None
    parts, is_delta = wanted.partition_by, wanted.table_format == DELTA
    if not parts and wanted.key is None:
        time = "timestamp" if raw else "record_time"
        parts = ("day",) if is_delta else (f"days({time})",)
        if is_delta:  # it partitions by columns alone
            sql = sql.replace(
                "\nFROM records", ",\n  CAST(_timestamp AS DATE) AS day\nFROM records"
            )
    lines = [
        f"description = {_quoted(f'Topic {wanted.topic} as the table {wanted.table}')}",
        f'sql = """\n{sql}\n"""',
        "",
        "[sources.records]",
        f"topic = {_quoted(wanted.topic)}",
        *(['format = "binary"'] if raw else [f"format = {_quoted(wanted.format)}"]),
        *([] if wanted.schema is None else [f"schema = {_quoted(wanted.schema)}"]),
        "metadata = true",
        *(["headers = true"] if raw else []),
        *(["tombstones = true"] if raw or wanted.key else []),
        "",
        "[sink]",
        *(['mode = "update"', f"key = {_quoted(wanted.key)}"] if wanted.key else []),
        "",
        "[sink.table]",
        f"path = {_quoted(wanted.path)}",
        f"name = {_quoted(wanted.table)}",
        *([f"format = {_quoted(DELTA)}"] if is_delta else []),
        *([f"partition_by = {json.dumps(list(parts))}"] if parts else []),
        *(['latest = "record_offset"', 'deleted = "deleted"'] if wanted.key else []),
    ]
    return "\n".join(lines) + "\n"


def _typed(columns: dict[str, str], key: str | None) -> str:
    chosen = []
    for name, kind in columns.items():
        column = f"`{name}`"
        if name == key:  # a record without a value has its key only there
            column = f"coalesce({column}, try_cast(CAST(_key AS STRING) AS {kind})) AS {column}"
        chosen.append(column)
    gone = ["_tombstone AS deleted"] if key else []
    chosen += [*_PLACE, "_offset AS record_offset", *gone]
    return "SELECT " + ",\n  ".join(chosen) + "\nFROM records"


def _quoted(text: str) -> str:
    """TOML's basic strings are JSON's."""
    return json.dumps(text, ensure_ascii=False)
