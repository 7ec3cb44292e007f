"""Tables of Iceberg and Delta in a job file → LakeTable. Imports neither pyspark nor appliance."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from spark_local.job import DELTA, ICEBERG, Job, LakeTable, ObjectStore, Place
from spark_local.mistakes import TableReader

TRIGGER_MS: Final = 10_000
"""Least time between two batches, unless told: each is a snapshot and some files."""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,99}\.[a-z_][a-z0-9_]{0,99}")
_COLUMN: Final = r"(?P<column>[A-Za-z_]\w*)"
_BUCKET: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/[^\s?#]*)?")
_REFERENCE: Final = re.compile(r"\$\{file:([^{}\s]+):([A-Za-z0-9_.-]+)\}")
_NAMED: Final = re.compile(r"[A-Za-z_]\w*")
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
    there, usual = _lake_table(inner, folder), LakeTable("-", "-")
    found = replace(
        there,
        partition_by=_parts(inner, there.format),
        latest=inner.text("latest"),
        deleted=inner.text("deleted"),
        maintain_ms=inner.duration("maintain", usual.maintain_ms) or usual.maintain_ms,
        keep_ms=inner.duration("keep", usual.keep_ms) or usual.keep_ms,
    )
    inner.finish()
    return Place(table=found)


def read_table(inner: TableReader, folder: Path) -> LakeTable:
    """The table that a source or a table of a job reads."""
    found = _lake_table(inner, folder)
    inner.finish()
    return found


def _lake_table(inner: TableReader, folder: Path) -> LakeTable:
    """Where a table is."""
    path = inner.text("path")
    if path is None and "path" not in inner:
        inner.wrong("path", "it is missing", 'write path = "folder", where its catalog lies')
    store = _store(inner, folder, path or "")
    where = str(folder / (path or "-")) if store is None else str(path).rstrip("/")
    name = inner.checked("name", _name, None)
    if name is None and "name" not in inner:
        inner.wrong("name", "it is missing", 'write name = "shop.orders"')
    form = inner.choice("format", (ICEBERG, DELTA), ICEBERG)
    return LakeTable(where, name or "-", form, store=store)


def _store(inner: TableReader, folder: Path, path: str) -> ObjectStore | None:
    """How the bucket of a path is reached; None for a folder."""
    read = inner.table("s3")
    at_bucket = _BUCKET.fullmatch(path)
    if "://" in path and at_bucket is None:
        inner.wrong("path", "only folders and buckets are served", 'write "lake" or "s3://b/lake"')
    if at_bucket is None:
        if read is not None:
            inner.wrong("s3", "path is a folder", 'write path = "s3://bucket/lake" too')
        return None
    if read is None:
        return ObjectStore(at_bucket[1])
    keys = [read_secret(read, name, folder) for name in ("access_key", "secret_key")]
    if (keys[0] is None) != (keys[1] is None) and ("access_key" in read) != ("secret_key" in read):
        missing = "secret_key" if keys[1] is None else "access_key"
        read.wrong(missing, "it is missing", f'write {missing} = "${{file:PATH:NAME}}"')
    endpoint = read.checked("endpoint", _endpoint, None)
    found = ObjectStore(
        bucket=at_bucket[1],
        endpoint=endpoint,
        region=read.text("region"),
        keys=(keys[0], keys[1]) if keys[0] and keys[1] else None,
    )
    read.finish()
    return found


def read_secret(read: TableReader, key: str, folder: Path) -> str | None:
    """FILE:NAME of `${file:FILE:NAME}`, the only form in which a job file names a secret."""
    value = read.raw(key)
    named = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if named is not None:
        return f"{folder / named[1]}:{named[2]}"
    if value is not None:
        remedy = 'write "${file:PATH:NAME}": the line NAME=… of a file that others cannot read'
        read.wrong_secret(key, "a job file has no secrets", remedy)
    return None


def _endpoint(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"https?://[^\s/@]+/?", value):
        remedy = 'write "https://host" or "http://host:port"'
        raise ValueError("it is no address of a store", remedy)
    return value.rstrip("/")


def _parts(inner: TableReader, form: str) -> tuple[str, ...]:
    """How a new table is partitioned."""
    parts = inner.names("partition_by")
    for part in parts:
        if not _PARTITION.fullmatch(part):
            remedy = "write a column, years(c), months(c), days(c), hours(c), bucket(16, c) or "
            inner.wrong("partition_by", f"{part!r} is none", f"{remedy}truncate(4, c)")
        elif form == DELTA and not _NAMED.fullmatch(part):
            remedy = f'derive a column of it, and write partition_by = "day" instead of "{part}"'
            inner.wrong("partition_by", "Delta Lake partitions by columns alone", remedy)
    return parts


def check_delivery(read: TableReader) -> None:
    """Reports keys of a transaction of Kafka, which a table takes no part in."""
    for key in ("delivery", "transaction_timeout"):
        if key in read:
            read.raw(key)
            read.wrong(key, "a table gets each row once by its own commit", "take the key out")


def check_inputs(read: TableReader, job: Job) -> None:
    """Reports a job that would read the table that it writes."""
    sink = job.sink.place.table
    inputs = (one.place.table for one in job.inputs)
    if sink and sink.location in (one.location for one in inputs if one):
        read.wrong("[sink] table", "the job would read what it writes", "write to another table")


def check_source(read: TableReader, place: Place) -> None:
    """Reports the key of a table in a source that is none."""
    if "on_change" in read and not place.table:
        read.wrong("on_change", "only rows of a table change", "take the key out")


def check_mode(read: TableReader, table: LakeTable, mode: str) -> None:
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
