"""Records as lines of JSON: what `penstock consume -J` prints."""

import base64
import json
from typing import Any

from console.model.reading import Record


def meta(record: Record) -> bytes:
    """A line without key, value and headers."""
    return _line(_head(record))


def whole(record: Record) -> bytes:
    """A line with everything."""
    row = _head(record)
    _put(row, "key", record.key)
    _put(row, "value", record.value)
    if record.headers:
        row["headers"] = []
        for key, value in record.headers:
            one = {"key": key}
            _put(one, "value", value)
            row["headers"].append(one)
    return _line(row)


def _head(record: Record) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }


def _put(row: dict[str, Any], name: str, data: bytes | None) -> None:
    """Text as text; what is not UTF-8 in base64 under NAME_base64, so that nothing is lost."""
    try:
        row[name] = None if data is None else data.decode()
    except UnicodeDecodeError:
        assert data is not None
        row[f"{name}_base64"] = base64.b64encode(data).decode()


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"
