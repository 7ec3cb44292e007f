"""Records as lines of JSON: what `penstock consume -J` prints."""

import base64
import json
from typing import Any

from console.model.decoding.decoded import Decoded
from console.model.records.reading import Record
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


def read_line(line: bytes) -> dict[str, Any]:
    """Lines of `whole` → the arguments of `Producer.produce`: key, value, headers, partition
    and timestamp; topic and offset are the writer's. Raises ValueError, which says what is wrong.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"it is not JSON: {wrong}") from None
    if not isinstance(row, dict):
        raise ValueError("it is not an object of JSON, as consume -J prints them")
    found: dict[str, Any] = {"key": _bytes_of(row, "key"), "value": _bytes_of(row, "value")}
    headers = row.get("headers") or []
    if not (isinstance(headers, list) and all(isinstance(one, dict) for one in headers)):
        raise ValueError("headers is not a list of objects")
    if headers:
        found["headers"] = [(_header_name(one), _bytes_of(one, "value")) for one in headers]
    for name in ("partition", "timestamp"):
        number = row.get(name)
        if isinstance(number, bool) or not isinstance(number, int | None) or (number or 0) < 0:
            raise ValueError(f"{name} is not a number from 0 on")
        if number is not None:
            found[name] = number
    return found


def _header_name(header: dict[str, Any]) -> str:
    name = header.get("key")
    if not isinstance(name, str):
        raise ValueError("a header's key is not text")
    _encoded(name, "a header's key")
    return name


def _bytes_of(row: dict[str, Any], name: str) -> bytes | None:
    """The bytes of NAME or NAME_base64; None for null and for what is not there."""
    encoded = row.get(f"{name}_base64")
    if encoded is not None:
        if name in row:
            raise ValueError(f"{name} and {name}_base64: one of the two")
        if not isinstance(encoded, str):
            raise ValueError(f"{name}_base64 is not text")
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:
            raise ValueError(f"{name}_base64 is not base64") from None
    text = row.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        hint = (
            "; consume without --decode prints bytes as they are"
            if "decoder" in "".join(row)
            else ""
        )
        raise ValueError(f"{name} is neither text nor null{hint}")
    return _encoded(text, name)


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} has half a surrogate pair, which is not text") from None


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
