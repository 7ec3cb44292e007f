"""What one process knows of everybody's use: charge a client, learn how long it must pause.

Invariant: this process writes the rows of its own region alone; what it judges by is the sum of the
meter's rows over all regions. A meter whose windows are empty everywhere is served whatever it
asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.quotas.limits import CONNECTION, KINDS, Entity, Limit, Limits
from appliance.quotas.window import Windows
from appliance.ring.quota_table import Meter, QuotaTable, Use, digest_of

_MOST_KNOWN: Final = 4096


@dataclass(slots=True)
class _Known:
    """A client's meter: my row, and those of the other regions as of `seen`."""

    limit: Limit
    digest: bytes
    mine: int
    others: list[int]
    seen: int


@dataclass(slots=True, frozen=True)
class Usage:
    """A meter over all processes. used: share of the limit, 1.0 is all. wait_ms: still to pause."""

    kind: str
    user: str
    client_id: str
    limit: float
    rate: float
    used: float
    wait_ms: int


class Meters:
    """The meters of the process that owns `region` of the table."""

    __slots__ = ("_kinds", "_known", "_limits", "_region", "_rows", "_table", "_windows")

    def __init__(self, table: QuotaTable, region: int, windows: Windows) -> None:
        assert table.windows == windows.count
        self._table = table
        self._region = region
        self._windows = windows
        self._kinds = {kind: number for number, kind in enumerate(KINDS)}
        self._limits: dict[str, Limits] = {}
        self._known: dict[tuple[str, str, str], _Known | None] = {}
        self._rows = table.names(region)  # a predecessor's too: what it counted still counts

    def configure(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """The quotas of the image, at the start and whenever one has changed."""
        limits = {kind: Limits(kind, quotas) for kind in KINDS}
        self._limits = {kind: of for kind, of in limits.items() if of}
        self._known.clear()

    def limits(self, kind: str) -> bool:
        """Whether anybody has a quota of this kind."""
        return kind in self._limits

    def charge(self, kind: str, user: str, client_id: str, amount: int, now_ms: int) -> int:
        """Count `amount` and answer the pause in ms, 0 when within the limit. For connections
        `user` is the address and client_id is empty."""
        known = self._find(kind, user, client_id)
        if known is None:
            return 0
        slot = self._windows.slot(now_ms)
        self._table.add(known.mine, slot, amount, now_ms)
        return self._pause(known, self._total(known, slot), now_ms)

    def charge_unless_over(
        self, kind: str, user: str, client_id: str, amount: int, now_ms: int
    ) -> int:
        """As `charge`, for what can be withheld (a fetch's answer): when there is a pause nothing
        was counted, and nothing must be sent."""
        known = self._find(kind, user, client_id)
        if known is None:
            return 0
        slot = self._windows.slot(now_ms)
        before = self._total(known, slot)
        pause = self._pause(known, before + amount, now_ms) if before else 0
        if not pause:
            self._table.add(known.mine, slot, amount, now_ms)
        return pause

    def usage(self, now_ms: int) -> list[Usage]:
        """Every meter, summed over all processes."""
        slot = self._windows.slot(now_ms)
        rows: dict[bytes, list[Use]] = {}
        for row in self._table.read(slot):
            rows.setdefault(row.digest, []).append(row)
        return [self._summed(same, now_ms) for same in rows.values()]

    def _summed(self, rows: list[Use], now_ms: int) -> Usage:
        latest = max(rows, key=lambda row: row.used_ms)
        user, _, client_id = latest.name.partition("\0")
        rate = self._windows.rate(sum(row.total for row in rows), now_ms)
        wait = max(0, max(row.until_ms for row in rows) - now_ms)
        used = rate / latest.limit if latest.limit else 0.0
        return Usage(KINDS[latest.kind], user, client_id, latest.limit, rate, used, wait)

    def _pause(self, known: _Known, total: int, now_ms: int) -> int:
        pause = self._windows.throttle_ms(total, known.limit.bound, now_ms)
        if pause:
            self._table.pause(known.mine, now_ms + pause)
        return pause

    def _total(self, known: _Known, slot: int) -> int:
        table = self._table
        seen = self._seen()
        if seen != known.seen:
            self._look(known, seen)
        total = table.total(known.mine, slot)
        for at in known.others:
            total += table.total(at, slot)
        return total

    def _seen(self) -> int:
        """Moves whenever any region has; each word only ever grows."""
        table = self._table
        return sum(table.changed(region) for region in range(table.regions))

    def _look(self, known: _Known, seen: int) -> None:
        known.others = [
            rows[known.digest]
            for region in range(self._table.regions)
            if region != self._region and known.digest in (rows := self._table.names(region))
        ]
        known.seen = seen

    def _find(self, kind: str, user: str, client_id: str) -> _Known | None:
        if kind not in self._limits:
            return None
        key = (kind, user, client_id)
        known = self._known.get(key)
        if known is None and key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._enter(kind, user, client_id)
        return known

    def _enter(self, kind: str, user: str, client_id: str) -> _Known | None:
        limits = self._limits[kind]
        limit = limits.of_ip(user) if kind == CONNECTION else limits.of(user, client_id)
        if limit is None:
            return None
        meter = Meter(self._kinds[kind], *limit.meter)
        digest = digest_of(meter)
        mine = self._rows.get(digest)
        if mine is None:
            mine = self._claim(meter, digest)
        self._table.set_limit(mine, limit.bound)
        return _Known(limit, digest, mine, [], -1)

    def _claim(self, meter: Meter, digest: bytes) -> int:
        """A row of mine for a new meter; whoever had it before is forgotten."""
        at = self._table.claim(self._region, meter)
        for former in [one for one, row in self._rows.items() if row == at]:
            del self._rows[former]
            self._known.clear()
        self._rows[digest] = at
        return at
