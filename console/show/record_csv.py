"""Records as lines of CSV: what `penstock consume --csv` prints. Nothing is lost: what is not UTF-8
is in base64 and says so, null is told from nothing."""

import base64
import csv
import io
import json
from typing import Final

from console.model.records.reading import Record

_COLUMNS: Final = (
    "topic", "partition", "offset", "timestamp", "key", "key_form", "value", "value_form",
    "headers",
)  # fmt: skip
TITLES: Final = (",".join(_COLUMNS) + "\n").encode()
"""The first line."""


def line(record: Record) -> bytes:
    """One record. key_form, value_form: text, base64 or null. headers: JSON, [[name, form,
    value], …]."""
    headers = [[name, *_told(value)[::-1]] for name, value in record.headers]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow((
        record.topic, record.partition, record.offset,
        "" if record.timestamp is None else record.timestamp,
        *_told(record.key), *_told(record.value), json.dumps(headers) if headers else "",
    ))  # fmt: skip
    return out.getvalue().encode()


def _told(data: bytes | None) -> tuple[str, str]:
    if data is None:
        return "", "null"
    try:
        return data.decode(), "text"
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"
