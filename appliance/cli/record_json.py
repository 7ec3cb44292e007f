"""Records as lines of JSON: what `penstock consume -J` prints."""

import base64
import json
from typing import Any


def meta(message: Any) -> bytes:
    """A line without key, value and headers."""
    return _line(_head(message))


def whole(message: Any) -> bytes:
    """A line with everything."""
    row = _head(message)
    _put(row, "key", message.key())
    _put(row, "value", message.value())
    if headers := message.headers():
        row["headers"] = []
        for key, value in headers:
            one = {"key": key}
            _put(one, "value", value)
            row["headers"].append(one)
    return _line(row)


def _head(message: Any) -> dict[str, Any]:
    kind, timestamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp if kind else None,
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
