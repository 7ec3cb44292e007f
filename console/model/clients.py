"""Who is connected to an appliance of this host, what software it is, how fast it is, and who has
to wait for a quota: read from the appliance's memory (`appliance/ring/client_table.py`).
"""

import time
from dataclasses import dataclass
from typing import Final

from appliance.observer.door import NotThere, Observer
from appliance.quotas.limits import KINDS
from appliance.ring.client_table import ClientTable, Connected
from console.model.failure import UNREACHABLE, Failure
from console.model.stats import api_name

_NS_MS: Final = 1_000_000
_LEAST_S: Final = 0.5
"""An appliance counts once a second: over less than this nothing is said anew."""


@dataclass(slots=True, frozen=True)
class Connection:
    """One connection. software, version: as the client itself says (KIP-511), "" when it does not.
    user: principal. last_api: of its last answer, "" before the first. in_s, out_s: bytes per
    second, with everything around records; of produce and fetches alone: produced_s, fetched_s.
    throttled_by: kind of quota that it has to wait for just now, "" when it does not;
    throttled_ms: for how long still. pauses, paused_ms: since it connected, and how long they were
    together."""

    key: str
    client_id: str
    software: str
    version: str
    user: str
    address: str
    listener: str
    connected_s: float
    requests: int
    requests_s: float
    in_bytes: int
    in_s: float
    out_bytes: int
    out_s: float
    produced_s: float
    fetched_s: float
    last_api: str
    throttled_by: str
    throttled_ms: int
    pauses: int
    paused_ms: int


@dataclass(slots=True, frozen=True)
class _Look:
    at_ms: int
    of: dict[tuple[int, int, int], Connected]


class Connections:
    """The connections of one appliance, looked at again and again."""

    def __init__(self, table: ClientTable) -> None:
        self._table = table
        self._before: _Look | None = None
        self._now = self._look()

    def look(self) -> tuple[Connection, ...]:
        """Who is connected, the fastest first. Rates are about the time since the last look, or
        since somebody connected when that was later, or when this is the first look."""
        now = self._look()
        if now.at_ms - self._now.at_ms >= _LEAST_S * 1000:
            self._before = self._now
        self._now = now
        found = [self._told(key, one) for key, one in now.of.items()]
        return tuple(sorted(found, key=lambda one: (-one.in_s - one.out_s, one.client_id)))

    @property
    def left_out(self) -> int:
        """Connections of which nothing is known, because there are too many."""
        return self._table.left_out

    def _look(self) -> _Look:
        now_ms = time.monotonic_ns() // _NS_MS
        found = {(one.netproc, one.row, one.use): one for one in self._table.connected()}
        return _Look(now_ms, found)

    def _told(self, key: tuple[int, int, int], one: Connected) -> Connection:
        now_ms, before = self._now.at_ms, self._before
        past = before.of.get(key) if before is not None else None
        began_ms = before.at_ms if before is not None and past is not None else one.since_ms
        seconds = max((now_ms - began_ms) / 1000, 1.0 if past is None else 0.001)

        def rate(name: str) -> float:
            spent: int = getattr(one, name) - (getattr(past, name) if past is not None else 0)
            return spent / seconds

        wait_ms = max(one.paused_until_ms - now_ms, 0)
        return Connection(
            "-".join(map(str, key)),
            one.client_id,
            one.software,
            one.version,
            one.principal,
            one.address,
            one.listener,
            max((now_ms - one.since_ms) / 1000, 0.0),
            one.requests,
            rate("requests"),
            one.bytes_in,
            rate("bytes_in"),
            one.bytes_out,
            rate("bytes_out"),
            rate("produced"),
            rate("fetched"),
            api_name(one.last_api) if one.last_api >= 0 else "",
            KINDS[one.pause_kind] if wait_ms and one.pause_kind < len(KINDS) else "",
            wait_ms,
            one.pauses,
            one.paused_ms,
        )


def connections(data_dir: str, over_s: float) -> tuple[Connection, ...]:
    """Who is connected to the appliance in a data folder, with rates over the next so many seconds,
    0: since each connected. Raises Failure."""
    try:
        observer = Observer(data_dir)
    except NotThere as why:
        raise Failure(
            str(why), "--data names the folder of a running appliance",
            where=data_dir, code=UNREACHABLE, name="NOT_RUNNING",
        ) from None  # fmt: skip
    found = Connections(observer.tables.clients)
    if over_s:
        time.sleep(over_s)
    return found.look()
