"""The audit file of an appliance of this host: logins, denials, changes (docs/audit.md).

It is read, whether the appliance runs or not.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from appliance.history.audit_log import Entry, entry_of, name_of, time_text
from console.model.asking.failure import Failure

_FIELDS: Final = ("principal", "address", "client_id", "listener")
_PIECE: Final = 1 << 16
_MOST_FILES: Final = 1000


@dataclass(slots=True, frozen=True)
class AuditFilter:
    """The entries to show. who: a part of principal, address, client id or listener, whatever the
    case; "" for all. since: a time as the file has it; "" for all. event: "" for all."""

    who: str = ""
    since: str = ""
    event: str = ""

    def keeps(self, entry: Entry) -> bool:
        """True if this entry is one of them. Entries that count others have nobody, and stay."""
        if str(entry["time"]) < self.since:
            return False
        if self.event and self.event not in (entry["event"], entry.get("of")):
            return False
        if not self.who or entry["event"] == "left-out":
            return True
        wanted = self.who.lower()
        return any(wanted in str(entry.get(key, "")).lower() for key in _FIELDS)


def since_text(at_ms: int) -> str:
    """A time in ms since 1970 as `AuditFilter.since` has it."""
    return time_text(at_ms)


class AuditReader:
    """Reads the files of one data folder, the oldest first, and then what is added."""

    def __init__(self, data_dir: str) -> None:
        self._folder = data_dir
        self._file: int | None = None
        self._rest = b""

    def entries(self) -> Iterator[Entry]:
        """All that there are now. Raises Failure."""
        for number in range(self._count() - 1, 0, -1):
            if (fd := self._open(number)) is not None:
                try:
                    yield from self._read(fd)
                finally:  # also of who takes no more of them
                    os.close(fd)
                self._rest = b""
        yield from self.news()

    def news(self) -> Iterator[Entry]:
        """Entries added since the last look, also in a file that has taken the place of the one
        that was read. Raises Failure."""
        for _ in range(2):
            if self._file is None:
                self._file = self._open(0)
            if self._file is None:
                return
            yield from self._read(self._file)
            if not self._is_put_aside():
                return
            yield from self._read(self._file)  # what came before it was put aside
            os.close(self._file)
            self._file, self._rest = None, b""

    def close(self) -> None:
        """Closes the file that is followed; `news` begins with it again."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._rest = None, b""

    def _count(self) -> int:
        found = 0
        while found < _MOST_FILES and os.path.exists(self._path(found)):
            found += 1
        return found

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, name_of(number))

    def _open(self, number: int) -> int | None:
        try:
            return os.open(self._path(number), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as why:
            raise Failure(
                f"{self._path(number)}: {why.strerror}",
                "ask as the user that runs the appliance, or as root",
            ) from why

    def _is_put_aside(self) -> bool:
        assert self._file is not None, "it is open"
        try:
            there = os.stat(self._path(0))
        except OSError:
            return False
        return not os.path.samestat(there, os.fstat(self._file))

    def _read(self, fd: int) -> Iterator[Entry]:
        while piece := os.read(fd, _PIECE):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                if (entry := entry_of(line)) is not None:
                    yield entry


def entry_text(entry: Entry) -> str:
    """The text of an entry behind its time and event, for a person."""
    if entry["event"] == "left-out":
        return f"and {entry.get('count')} more of {entry.get('of')} in {entry.get('process')}"
    said = [f"{key}={entry[key]}" for key in entry if key not in ("time", "event", "process")
            and key != "changes"]  # fmt: skip
    return " ".join([*said, *(change_text(one) for one in entry.get("changes", ()))])


def change_text(change: Any) -> str:
    """One of `changes` of an entry, for a person."""
    if not isinstance(change, dict):
        return str(change)
    first = f"{change.get('action')} {change.get('type')} {change.get('name')}"
    rest = [f"{key}={change[key]}" for key in change if key not in ("type", "name", "action")]
    return f"[{' '.join([first, *rest])}]"
