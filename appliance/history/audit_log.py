"""The lines of the audit file: JSON, one entry a line, and the names of the files.

    penstock.audit.jsonl, penstock.audit.jsonl.1 (before it), penstock.audit.jsonl.2, …

An entry is `time`, `event`, `process` and the fields of its kind (docs/audit.md). Characters beyond
ASCII and control characters are escaped, so a stranger's text is one line and moves no cursor.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from appliance.ring.event_ring import NotedEvent
from appliance.ring.security_table import EVENTS, LOST

FILE: Final = "penstock.audit.jsonl"
LEFT_OUT: Final = "left-out"
_CHANGE: Final = "change"
_NUMBERS: Final = ("more",)

Entry = dict[str, Any]


def name_of(number: int) -> str:
    """The file's name, 0: the one that is written; higher ones are older."""
    return f"{FILE}.{number}" if number else FILE


def line_of(process: str, found: NotedEvent | tuple[int, int], now_ms: int) -> bytes:
    """A line of an entry, or of (kind, number of entries that were left out)."""
    if isinstance(found, NotedEvent):
        entry = _head(found.at_ms, found.event, process) | _fields(dict(found.fields))
    else:
        kind, count = found
        entry = _head(now_ms, LEFT_OUT, process)
        entry |= {"of": "any" if kind == LOST else EVENTS[kind], "count": count}
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def entry_of(line: bytes) -> Entry | None:
    """The entry of a line; None: it is none, or a torn one."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "event" in entry and "time" in entry else None


def time_text(at_ms: int) -> str:
    """A time as the file has it; texts of times sort as times do."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _head(at_ms: int, event: str, process: str) -> Entry:
    return {"time": time_text(at_ms), "event": event, "process": process}


def _fields(told: Mapping[str, str]) -> Entry:
    found: Entry = {}
    for key, value in told.items():
        if key[: len(_CHANGE)] == _CHANGE and key[len(_CHANGE) :].isdigit():
            found.setdefault("changes", []).append(_change(value))
        elif key in _NUMBERS and value.isdigit():
            found[key] = int(value)
        else:
            found[key] = True if value == "true" and key == "again" else value
    return found


def _change(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return {"type": "UNKNOWN", "name": text}
