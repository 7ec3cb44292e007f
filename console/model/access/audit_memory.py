"""The audit file of an appliance of this host, remembered between looks: the last entries, the last
logins and those that failed since (docs/audit.md)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from appliance.history.audit_log import Entry
from console.model.access.audit import AuditReader

MOST: Final = 2000
"""Entries that are kept."""
_MOST_NAMES: Final = 10_000
_BREATH: Final = 200
LOGIN, FAILED, DENIED, CHANGED = "login", "login-failed", "access-denied", "changed"


@dataclass(slots=True, frozen=True)
class LastLogin:
    """time: as the file has it, UTC. failed: logins that failed since."""

    time: str
    address: str
    mechanism: str
    failed: int = 0


@dataclass(slots=True, frozen=True)
class AuditSeen:
    """entries: the last ones by a key that stays theirs, the oldest first. logins: principal → its
    last login."""

    entries: dict[str, Entry] = field(default_factory=dict)
    logins: dict[str, LastLogin] = field(default_factory=dict)


class AuditMemory:
    """Reads a folder's file on from where the last look ended."""

    def __init__(self, breathe: Callable[[], None] = lambda: None) -> None:
        """breathe: called now and then by who reads much."""
        self._breathe = breathe
        self._folder = ""
        self._reader = AuditReader("")
        self._forget("")

    def _forget(self, folder: str) -> None:
        self._reader.close()
        self._folder = folder
        self._reader = AuditReader(folder)
        self._read_once = False
        self._count = 0
        self._entries: deque[tuple[str, Entry]] = deque(maxlen=MOST)
        self._logins: dict[str, LastLogin] = {}

    def read_news(self, folder: str) -> AuditSeen:
        """Returns what the file says now. Raises Failure where it cannot be read."""
        if folder != self._folder:
            self._forget(folder)
        found = self._reader.news() if self._read_once else self._reader.entries()
        self._read_once = True
        for entry in found:
            self._count += 1
            if not self._count % _BREATH:
                self._breathe()
            self._entries.append((str(self._count), entry))
            self._login(entry)
        return AuditSeen(dict(self._entries), dict(self._logins))

    def _login(self, entry: Entry) -> None:
        who, event = str(entry.get("principal", "")), entry["event"]
        if not who or event not in (LOGIN, FAILED):
            return
        last = self._logins.pop(who, None)
        if event == LOGIN:
            address, mechanism = (str(entry.get(key, "")) for key in ("address", "mechanism"))
            self._logins[who] = LastLogin(str(entry["time"]), address, mechanism)
        elif last is not None:
            self._logins[who] = LastLogin(last.time, last.address, last.mechanism, last.failed + 1)
        else:
            self._logins[who] = LastLogin("", str(entry.get("address", "")), "", 1)
        while len(self._logins) > _MOST_NAMES:
            del self._logins[next(iter(self._logins))]
