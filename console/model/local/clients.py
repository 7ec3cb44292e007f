"""The connections of an appliance of this host, with software, rates and quota pauses: read from
the appliance's memory (`appliance/ring/client_table.py`).
"""

import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from appliance.observer.names import api_name
from appliance.quotas.limits import KINDS
from appliance.ring.client_table import ClientTable, Connected
from console.model.local.observed import observed

_NS_MS: Final = 1_000_000
_LEAST_MS: Final = 500
_QUIET_MS: Final = 1500
"""Who did anything would have been told of by then."""

_Key = tuple[int, int, int]


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


class Rates(NamedTuple):
    """Per second."""

    requests: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    produced: float = 0.0
    fetched: float = 0.0


class Connections:
    """The connections of one appliance, looked at again and again."""

    def __init__(self, table: ClientTable) -> None:
        self._table = table
        self._before: dict[_Key, Connected] = {}
        self._rates: dict[_Key, Rates] = {}

    def read_connections(self) -> tuple[Connection, ...]:
        """Returns the connections, the fastest first. Rates cover the time between the last two
        updates, which the appliance makes once a second; at the first call, the time since each
        connected.
        """
        now_ms = time.monotonic_ns() // _NS_MS
        found = {(one.netproc, one.row, one.use): one for one in self._table.connected()}
        rates = {key: self._rate(key, one, now_ms) for key, one in found.items()}
        self._before, self._rates = found, rates
        told = [_told(key, one, rates[key], now_ms) for key, one in found.items()]
        return tuple(sorted(told, key=lambda one: (-one.in_s - one.out_s, one.client_id)))

    @property
    def left_out(self) -> int:
        """Connections of which nothing is known, because there are too many."""
        return self._table.left_out

    def _rate(self, key: _Key, one: Connected, now_ms: int) -> Rates:
        before = self._before.get(key)
        if before is not None and before.told_ms == one.told_ms:
            lately = now_ms - one.told_ms < _QUIET_MS
            return self._rates[key] if lately else Rates()
        began_ms = one.since_ms if before is None else before.told_ms or before.since_ms
        seconds = max(one.told_ms - began_ms, _LEAST_MS) / 1000
        counts = [getattr(one, name) for name in Rates._fields]
        past = [getattr(before, name) for name in Rates._fields] if before else [0] * len(counts)
        return Rates(*((a - b) / seconds for a, b in zip(counts, past, strict=True)))


def _told(key: _Key, one: Connected, rates: Rates, now_ms: int) -> Connection:
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
        rates.requests,
        one.bytes_in,
        rates.bytes_in,
        one.bytes_out,
        rates.bytes_out,
        rates.produced,
        rates.fetched,
        api_name(one.last_api) if one.last_api >= 0 else "",
        KINDS[one.pause_kind] if wait_ms and one.pause_kind < len(KINDS) else "",
        wait_ms,
        one.pauses,
        one.paused_ms,
    )


def connections(data_dir: str, over_s: float) -> tuple[Connection, ...]:
    """The connections of the appliance in a data folder, with rates over the next so many seconds,
    0: since each connected. Raises Failure.
    """
    every = Connections(observed(data_dir).tables.clients)
    found = every.read_connections()
    if over_s:
        time.sleep(over_s)
        found = every.read_connections()
    return found
