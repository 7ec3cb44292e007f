"""Files of a data folder as plain rows: what `penstock log dump` prints.

The name tells the kind. What cannot be read is told in `problem`, and everything before it is
shown: these files are looked into when something is wrong with them.
"""

import base64
import os
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final
from zlib import crc32

from appliance.base.errors import PeerError
from appliance.logstore.indexes import OffsetIndex, TimeIndex
from appliance.logstore.producer_snapshot import decode_snapshot
from appliance.logstore.producer_state import ProducerStates
from appliance.wire import control_records, kraft_records
from appliance.wire.batch import checksum_holds
from appliance.wire.batch_header import HEADER_SIZE, MAGIC, MAGIC_AT, BatchHeader, read_header
from appliance.wire.compression import NAMES
from appliance.wire.message_set import (
    HEAD_SIZE,
    OLD_MAGICS,
    OldEntry,
    open_entry,
    read_entry,
)
from appliance.wire.records import Record, iter_records
from console.model.access.secret_fields import shown_fields
from console.model.decoding.kafka_records import fields

Row = dict[str, Any]
METADATA: Final = "__cluster_metadata-"
_KNOWN: Final = re.compile(
    r".+\.(log|index|timeindex|snapshot|checkpoint)(\.deleted)?"
    r"|.*-checkpoint|meta\.properties|partition\.metadata|quorum-state|\.kafka_cleanshutdown"
)
_END_TYPES: Final = {b"\0\0\0\0": "abort", b"\0\0\0\1": "commit"}


def files_of(paths: Iterable[str]) -> Iterator[str]:
    """Every path that is no folder, and of folders the known files in them and in theirs, in order
    of their names. Raises OSError for a folder that cannot be read."""
    for path in paths:
        if os.path.isdir(path):
            yield from _inside(path)
        else:
            yield path


def _inside(folder: str) -> Iterator[str]:
    def refuse(problem: OSError) -> None:
        raise problem

    for place, folders, files in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(files) if _KNOWN.fullmatch(name))


def dump_file(path: str, records: bool) -> Row:
    """{file, kind, bytes, problem, and batches, entries or producers}. Raises OSError."""
    with open(path, "rb") as file:
        data = file.read()
    name = os.path.basename(path)
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    metadata = folder.startswith(METADATA) or name.endswith(".checkpoint")
    if name.endswith((".log", ".checkpoint", ".log.deleted")):
        kind = "segment" if not metadata else "metadata log"
        if name.endswith(".checkpoint"):
            kind = "metadata snapshot"
        rest = _segment(data, metadata, records or metadata)
    elif name.endswith((".index", ".index.deleted")):
        kind, rest = "offset index", _offset_index(data, _base(name))
    elif name.endswith((".timeindex", ".timeindex.deleted")):
        kind, rest = "time index", _time_index(data, _base(name))
    elif name.endswith(".snapshot"):
        kind, rest = "producer snapshot", _producers(data)
    else:
        kind, rest = "text", _text(data)
    return {"file": path, "kind": kind, "bytes": len(data)} | rest


def missing_before(segment: Row, before: Row | None) -> str:
    """Which offsets no segment of the partition has between the one dumped before and this one, as
    a sentence; "" when there are none, or when these are not two segments of one partition."""
    if before is None or segment["kind"] != "segment":
        return ""
    folder, name = os.path.split(segment["file"])
    if folder != os.path.dirname(before["file"]):
        return ""
    batches = before["batches"]
    due = batches[-1]["last_offset"] + 1 if batches else _base(os.path.basename(before["file"]))
    if _base(name) <= due:
        return ""
    return (
        f"{folder}: no segment has the offsets {due} to {_base(name) - 1}: a segment is missing, or"
        " the records were compacted away"
    )


def _base(name: str) -> int:
    digits = name.partition(".")[0]
    return int(digits) if digits.isdigit() else 0


def _segment(data: bytes, metadata: bool, records: bool) -> Row:
    rows: list[Row] = []
    problem = ""
    view = memoryview(data)
    at = 0
    while at < len(data) and not problem:
        if len(data) - at >= HEAD_SIZE and data[at + MAGIC_AT] in OLD_MAGICS:
            try:
                entry = read_entry(view, at, len(data), checked=False)
                rows.append(_old_entry(entry, view, at, records))
            except PeerError as wrong:
                problem = f"at byte {at}: {wrong.message}"
                break
            if not rows[-1]["sound"]:
                problem = f"the message at byte {at} has a wrong CRC-32"
            at += entry.size
            continue
        if len(data) - at < HEADER_SIZE:
            problem = f"{len(data) - at} bytes at {at} are less than the header of a batch"
            break
        header = read_header(view, at)
        if header.magic != MAGIC or header.size < HEADER_SIZE:
            problem = f"there is no batch of format 2 at byte {at}"
        elif header.size > len(data) - at:
            there = len(data) - at
            problem = f"the batch at byte {at} is cut off: {there} of {header.size} bytes"
        else:
            batch = view[at : at + header.size]
            sound = checksum_holds(batch)
            before = rows[-1]["last_offset"] if rows else header.base_offset - 1
            rows.append(_batch(header, at, sound))
            if header.base_offset <= before or header.last_offset_delta < 0:
                problem = f"the batch at byte {at} goes back to offset {header.base_offset}"
            elif not sound:
                problem = f"the batch at byte {at} has a wrong CRC32C"
            elif records:
                rows[-1]["records"], problem = _records(header, batch, metadata)
            at += header.size
    return {"problem": problem, "batches": rows}


def _old_entry(entry: OldEntry, data: memoryview, position: int, records: bool) -> Row:
    """A message or a wrapper of format 0 or 1, with the columns of a batch. Raises PeerError."""
    found = open_entry(entry)
    times = [one.timestamp for one in found]
    row: Row = {
        "base_offset": found[0].offset,
        "last_offset": found[-1].offset,
        "count": len(found),
        "position": position,
        "size": entry.size,
        "format": entry.magic,
        "leader_epoch": -1,
        "codec": NAMES[entry.codec],
        "timestamp_type": "append" if entry.is_log_append_time else "create",
        "base_timestamp": times[0],
        "max_timestamp": max(times),
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "transactional": False,
        "control": False,
        "crc": entry.crc,
        "sound": crc32(data[position + MAGIC_AT : position + entry.size]) == entry.crc,
    }
    if records:
        row["records"] = [_record(Record(*one, ()), control=False, metadata=False) for one in found]
    return row


def _batch(header: BatchHeader, position: int, sound: bool) -> Row:
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "position": position,
        "size": header.size,
        "format": header.magic,
        "leader_epoch": header.leader_epoch,
        "codec": NAMES[header.codec] if header.codec < len(NAMES) else str(header.codec),
        "timestamp_type": "append" if header.is_log_append_time else "create",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
        "sound": sound,
    }


def _records(header: BatchHeader, batch: memoryview, metadata: bool) -> tuple[list[Row], str]:
    rows: list[Row] = []
    try:
        # Not extend: what was read before the damage is shown.
        for record in iter_records(batch):
            rows += [_record(record, header.is_control, metadata)]
    except PeerError as wrong:
        return rows, f"the batch at offset {header.base_offset}: {wrong.message}"
    return rows, ""


def _record(record: Record, control: bool, metadata: bool) -> Row:
    row: Row = {"offset": record.offset, "timestamp": record.timestamp}
    if control and record.key in _END_TYPES:
        return row | {"type": _END_TYPES[record.key]}
    if control:
        message: Any = control_records.decode(record.key, record.value)
        return row | {"type": type(message).__name__} | fields(message)
    if metadata and record.value is not None:
        value, version = kraft_records.decode_versioned(record.value)
        return row | {"type": type(value).__name__, "version": version} | shown_fields(value)
    row |= _bytes("key", record.key) | _bytes("value", record.value)
    if record.headers:
        row["headers"] = [
            {"key": key.decode("utf-8", "replace")} | _bytes("value", value)
            for key, value in record.headers
        ]
    return row


def _bytes(name: str, data: bytes | None) -> Row:
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _offset_index(data: bytes, base: int) -> Row:
    index = OffsetIndex(data)
    entries = [
        {"offset": base + offset, "position": position}
        for offset, position in zip(index.offsets, index.positions, strict=True)
    ]
    return {"problem": _order(entries), "entries": entries}


def _time_index(data: bytes, base: int) -> Row:
    index = TimeIndex(data)
    entries = [
        {"timestamp": timestamp, "offset": base + offset}
        for timestamp, offset in zip(index.timestamps, index.offsets, strict=True)
    ]
    return {"problem": _order(entries), "entries": entries}


def _order(entries: list[Row]) -> str:
    for before, after in pairwise(entries):
        for key, value in after.items():
            if value < before[key]:
                return f"{key} goes back from {before[key]} to {value}"
    return ""


def _producers(data: bytes) -> Row:
    states = decode_snapshot(data, 0)
    if states is None:
        return {"problem": "it is damaged, or of another version", "producers": []}
    return {"problem": "", "producers": list(_producer_rows(states))}


def _producer_rows(states: ProducerStates) -> Iterator[Row]:
    for producer_id, known in states.producers.items():
        sequence, offset, delta, _ = known.batches[-1] if known.batches else (-1, -1, 0, -1)
        yield {
            "producer_id": producer_id,
            "epoch": known.epoch,
            "last_sequence": sequence,
            "last_offset": offset,
            "offset_delta": delta,
            "last_timestamp": known.last_timestamp,
            "coordinator_epoch": known.coordinator_epoch,
            "transaction_start": states.open.get(producer_id, -1),
        }


def _text(data: bytes) -> Row:
    """Checkpoint files, meta.properties: lines."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return {"problem": "this kind of file is not known", "entries": []}
    return {"problem": "", "entries": [{"line": line} for line in lines]}
