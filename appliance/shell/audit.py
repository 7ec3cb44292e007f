"""The audit trail of one process: logins, denials and changes, on their way into the audit file.

Each cause is written once a second, and each kind of entry at most `MOST` times a second; the
others are counted by kind, and the file says how many (`ring/security_table.py`). Control writes
the file (`control/history/audit_writer.py`). Values are cut, so that one entry fits into the ring.
The caller passes no secret.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Final

from appliance.base.caller import Caller
from appliance.config.bounds import AUDIT_ENTRIES, setting_of
from appliance.ring.event_ring import EventWriter
from appliance.ring.security_table import (
    ACCESS_DENIED,
    AGAIN,
    AGAIN_FAILED,
    CHANGED,
    EVENTS,
    FAILED,
    LOGIN,
    LOGIN_FAILED,
    LOST,
    SUCCEEDED,
    SecurityRegion,
)

MOST: Final = 100
"""Entries of a kind in a second, of each process; the ring has room for all of them twice."""
LONGEST: Final = 256
"""Characters of a value."""
MOST_CHANGES: Final = 20
"""Changed things that one entry names."""
_EVERY_NS: Final = 1_000_000_000
_PRIORITY: Final = 5


def most_of(most: int) -> dict[int, int]:
    """Entries of each kind in a second: a third of what strangers cause."""
    return {LOGIN: most, LOGIN_FAILED: most // 3, ACCESS_DENIED: most // 3, CHANGED: 2 * most}


class Trail:
    """Writes the entries of its process. most: of one kind in a second, by penstock.audit.entries.
    max.per.second. monotonic_ns, wall_ms: clocks. reach: told of the bound, and why."""

    def __init__(
        self,
        region: SecurityRegion,
        most: int = MOST,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        reach: Callable[[str, str], object] = lambda _bound, _why: None,
    ) -> None:
        self.reach = reach
        self.region = region
        self._writer: EventWriter = region.writer()
        self._monotonic_ns = monotonic_ns
        self._wall_ms = wall_ms
        self._since_ns = -_EVERY_NS
        self._seen: dict[int, set[object]] = {kind: set() for kind in range(LOST)}
        self._most = most_of(most)

    def write_entry(self, kind: int, cause: object, /, **fields: str) -> None:
        """Write an entry, or count it: one with the same cause was written in this second, or too
        many of its kind were. Fields that are "" are left out."""
        now_ns = self._monotonic_ns()
        if now_ns - self._since_ns >= _EVERY_NS:
            self._since_ns = now_ns
            for seen in self._seen.values():
                seen.clear()
        seen = self._seen[kind]
        if cause in seen or len(seen) >= self._most[kind]:
            self.region.leave_out(kind)
            if cause not in seen:
                why = f"{self._most[kind]} entries of {EVENTS[kind]} a second"
                self.reach(AUDIT_ENTRIES, f"{why}: {setting_of(AUDIT_ENTRIES)}")
            return
        seen.add(cause)
        cut = {key: value[:LONGEST] for key, value in fields.items() if value}
        self._writer.write_event(self._wall_ms(), _PRIORITY, EVENTS[kind], cut)

    def note_login(
        self,
        listener: tuple[int, str],
        mechanism: str,
        principal: str,
        address: str,
        client_id: str,
        *,
        again: bool = False,
        why: str = "",
    ) -> None:
        """A login succeeded, or failed because of `why`. listener: number and name. principal: in a
        failure the one that the client claims. again: it is a re-authentication."""
        outcome = (AGAIN_FAILED if why else AGAIN) if again else (FAILED if why else SUCCEEDED)
        self.region.count_login(*listener, mechanism, outcome)
        self.write_entry(
            LOGIN_FAILED if why else LOGIN,
            (listener[0], mechanism, principal, address, client_id, again),
            principal=principal, mechanism=mechanism, listener=listener[1], address=address,
            client_id=client_id, again="true" if again else "", why=why,
        )  # fmt: skip

    def note_change(
        self, request: str, changes: Sequence[dict[str, str]], more: int, caller: Caller
    ) -> None:
        """A request changed these things. changes: each with `type`, `name` and `action`. more: how
        many others."""
        who = {
            "principal": f"{caller.principal.type}:{caller.principal.name}",
            "address": caller.address,
            "listener": caller.listener,
            "client_id": caller.client_id,
        }
        shown = changes[:MOST_CHANGES]
        more += len(changes) - len(shown)
        things = {f"change{n}": _packed(one) for n, one in enumerate(shown)}
        fields = {**who, "request": request, **things, "more": str(more) if more else ""}
        self.write_entry(CHANGED, tuple(fields.items()), **fields)


def _packed(change: dict[str, str]) -> str:
    """JSON of at most `LONGEST` characters."""
    longest = LONGEST // 4
    while len(text := json.dumps({key: one[:longest] for key, one in change.items()})) > LONGEST:
        longest //= 2
    return text
