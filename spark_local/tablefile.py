"""The keys of `[sink.table]` in a job file → IcebergTable. Imports neither pyspark nor
appliance."""

import re
from pathlib import Path
from typing import Any, Final

from spark_local.job import IcebergTable, Place
from spark_local.mistakes import TableReader

TRIGGER_MS: Final = 10_000
"""Least time between two batches, unless told: each is a snapshot and some files."""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,99}\.[a-z_][a-z0-9_]{0,99}")
_COLUMN: Final = r"(?P<column>[A-Za-z_]\w*)"
_PARTITION: Final = re.compile(
    rf"(?:{_COLUMN}|(?:years|months|days|hours)\({_COLUMN.replace('column', 'timed')}\)|"
    rf"(?:bucket|truncate)\([1-9]\d{{0,8}}, *{_COLUMN.replace('column', 'cut')}\))"
)


def sink_table(read: TableReader, folder: Path) -> Place | None:
    """The table that a sink names, None when it names none. folder: what a relative path means."""
    inner = read.table("table")
    if inner is None:
        return None
    for key in ("topic", "file", "jdbc"):
        if key in read:
            read.raw(key)
            read.wrong(key, "there is table too", "write exactly one of topic, file, jdbc, table")
    path = inner.text("path")
    if path is None and "path" not in inner:
        inner.wrong("path", "it is missing", 'write path = "folder", where its catalog lies')
    if path is not None and "://" in path:
        inner.wrong("path", "only folders are served", 'write a path, for example "lake"')
    name = inner.checked("name", _name, None)
    if name is None and "name" not in inner:
        inner.wrong("name", "it is missing", 'write name = "shop.orders"')
    usual = IcebergTable("-", "-")
    parts = inner.names("partition_by")
    for part in parts:
        if not _PARTITION.fullmatch(part):
            remedy = "write a column, years(c), months(c), days(c), hours(c), bucket(16, c) or "
            inner.wrong("partition_by", f"{part!r} is none", f"{remedy}truncate(4, c)")
    found = IcebergTable(
        path=str(folder / (path or "-")),
        name=name or "-",
        partition_by=parts,
        latest=inner.text("latest"),
        deleted=inner.text("deleted"),
        maintain_ms=inner.duration("maintain", usual.maintain_ms) or usual.maintain_ms,
        keep_ms=inner.duration("keep", usual.keep_ms) or usual.keep_ms,
    )
    inner.finish()
    return Place(table=found)


def check_delivery(read: TableReader) -> None:
    """Reports keys of a transaction of Kafka, which a table takes no part in."""
    for key in ("delivery", "transaction_timeout"):
        if key in read:
            read.raw(key)
            read.wrong(key, "a table gets each row once by its own commit", "take the key out")


def check_mode(read: TableReader, table: IcebergTable, mode: str) -> None:
    """Reports a mode that a table has not, and keys that do not go with its mode."""
    for key in ("partitions", "config"):
        if key in read:
            read.raw(key)
            read.wrong(key, "only topics have it", "take the key out")
    if mode == "complete":
        read.wrong("mode", "a table is appended to, or merged by key", 'write "append" or "update"')
    if mode == "update" and "key" not in read:
        read.wrong("key", "rows of this mode replace each other", 'write key = ["column", …]')
    if mode != "append":
        return
    if "key" in read:
        read.wrong("key", "rows are appended", 'write mode = "update" too, or take the key out')
    for key, value in (("latest", table.latest), ("deleted", table.deleted)):
        if value is not None:
            problem = "rows are appended, and none is replaced"
            read.wrong(f"table.{key}", problem, 'write mode = "update" and key, or take it out')


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        remedy = 'write "shop.orders": small letters, digits and _, with one namespace'
        raise ValueError("it is no name of a table", remedy)
    return value
