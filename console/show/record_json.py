"""Records as lines of JSON: what `penstock consume -J` prints."""

import base64
import json
from typing import Any

from console.model.decoding.decoded import Decoded
from console.model.reading import Record
from console.streams import escaped_in_json


def meta(record: Record) -> bytes:
    """A line without key, value and headers."""
    return _line(_head(record))


def whole(record: Record) -> bytes:
    """A line with everything."""
    row = _head(record)
    _put(row, "key", record.key)
    _put(row, "value", record.value)
    if record.headers:
        row["headers"] = _headers(record)
    return _line(row)


def decoded(record: Record, key: Decoded | None, value: Decoded | None) -> bytes:
    """A line with everything, key and value as they were decoded: JSON as it was written, text and
    hexadecimal digits as text, with the decoder's name and why no better one fits."""
    pieces = [json.dumps(_head(record), ensure_ascii=False)[1:-1]]
    for name, part in (("key", key), ("value", value)):
        if part is None:
            pieces.append(f'"{name}": null')
            continue
        text = part.line if part.is_json else json.dumps(part.text, ensure_ascii=False)
        pieces += f'"{name}": {text}', f'"{name}_decoder": "{part.decoder}"'
        if part.reason:
            pieces.append(f'"{name}_problem": {json.dumps(part.reason)}')
    if record.headers:
        pieces.append(f'"headers": {json.dumps(_headers(record), ensure_ascii=False)}')
    return escaped_in_json(f"{{{', '.join(pieces)}}}\n").encode()


def _headers(record: Record) -> list[dict[str, Any]]:
    found = []
    for key, value in record.headers:
        one: dict[str, Any] = {"key": key}
        _put(one, "value", value)
        found.append(one)
    return found


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
    return escaped_in_json(json.dumps(row, ensure_ascii=False)).encode() + b"\n"
