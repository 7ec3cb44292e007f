"""Quota usage of all clients as one process knows it: it charges a client and returns the throttle
time.

Invariant: this process writes the rows of its own region alone; what it judges by is the sum of the
meter's rows over all regions. What can be withheld is given to whoever's windows are empty
everywhere, however much it is.
"""

from collections.abc import Callable, Mapping
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.config.bounds import QUOTA_CLIENTS, setting_of
from appliance.quotas.bucket import Bucket
from appliance.quotas.limits import (
    ARRIVAL,
    CONNECTION,
    FETCH,
    KINDS,
    MUTATION,
    PRODUCE,
    REQUEST,
    Entity,
    Limit,
    Limits,
    entity_of,
)
from appliance.quotas.window import Windows
from appliance.ring.quota_table import Meter, QuotaRow, QuotaTable, digest_of

_MOST_KNOWN: Final = 4096
NS_OF_PERCENT: Final = 10_000_000
"""request_percentage is percent of one second of one CPU, and is counted in ns."""
_UNBOUND_MS: Final = 2**40
_NEAR: Final = 2
"""The part of a limit from which on it is near: a half."""
_SPREAD: Final = 1.25
"""Windows' worth that somebody near the limit may fetch in one window."""


@dataclass(slots=True)
class _Known:
    """A client's meter: my row, and those of the other regions as of `seen`. bound: in the unit
    that is counted, per second."""

    limit: Limit
    bound: float
    most_ms: int
    digest: bytes
    mine: int
    others: list[int]
    seen: int
    near: bool = False


@dataclass(slots=True, frozen=True)
class MeterUsage:
    """A meter over all processes. used: share of the limit, 1.0 is all. wait_ms: still to pause.

    user: the address for connections. entity: where the limit is configured, empty for a setting.
    pauses: how often there was one, since the appliance started. last_ms: how long the last one was
    told to be. held_ms: for how long there has been one after the other, with nothing between them
    that is longer than all windows; 0 when there is none."""

    kind: str
    user: str
    client_id: str
    entity: Entity
    pauses: int
    limit: float
    rate: float
    used: float
    wait_ms: int
    last_ms: int
    held_ms: int


class Meters:
    """The meters of the process that owns `region` of the table."""

    __slots__ = (
        "_bucket",
        "_kinds",
        "_known",
        "_limits",
        "_reach",
        "_region",
        "_rows",
        "_table",
        "_windows",
    )

    def __init__(
        self,
        table: QuotaTable,
        region: int,
        windows: Windows,
        bucket: Bucket | None = None,
        reach: Callable[[str, str], object] = lambda _bound, _why: None,
    ) -> None:
        """reach: told when somebody is forgotten whose use still counts, and why."""
        self._reach = reach
        assert table.windows == windows.count
        self._table = table
        self._region = region
        self._windows = windows
        self._bucket = bucket or Bucket()
        self._kinds = {kind: number for number, kind in enumerate(KINDS)}
        self._limits: dict[str, Limits] = {}
        self._known: dict[tuple[str, str, str], _Known | None] = {}
        self._rows = table.names(region)  # a predecessor's too: what it counted still counts

    def configure(
        self, quotas: Mapping[Entity, Mapping[str, float]], arrivals: float | None = None
    ) -> None:
        """The quotas of the image, at the start and whenever one has changed. arrivals: the
        setting max.connection.creation.rate, None for no limit."""
        if arrivals is not None:
            quotas = {**quotas, (): {ARRIVAL: arrivals}}
        limits = {kind: Limits(kind, quotas) for kind in KINDS}
        self._limits = {kind: of for kind, of in limits.items() if of}
        self._known.clear()

    def limits(self, kind: str) -> bool:
        """True if any entity has a quota of this kind."""
        return kind in self._limits

    def charge(self, kind: str, user: str, client_id: str, amount: int, now_ms: int) -> int:
        """Count `amount` (bytes; ns for request_percentage) and answer the pause in ms, 0 when
        within the limit. For connections `user` is the address and client_id is empty."""
        known = self._find(kind, user, client_id)
        if known is None:
            return 0
        slot = self._windows.slot(now_ms)
        self._table.add(known.mine, slot, amount, now_ms)
        total = self._total(known, slot)
        known.near = self._windows.rate(total, now_ms) * _NEAR > known.bound
        return self._pause(known, total, now_ms)

    def near(self, kind: str, user: str, client_id: str) -> bool:
        """True if half of the limit was used at the last charge."""
        known = self._find(kind, user, client_id)
        return known is not None and known.near

    def charge_unless_over(
        self, kind: str, user: str, client_id: str, amount: int, now_ms: int, hold: bool = False
    ) -> int:
        """As `charge`, for what can be withheld (a fetch's answer): when there is a pause nothing
        was counted, and nothing must be sent. hold: nothing is sent in any case."""
        known = self._find(kind, user, client_id)
        if known is None:
            return 0
        slot = self._windows.slot(now_ms)
        before = self._total(known, slot)
        pause = self._pause(known, before + amount, now_ms) if before else 0
        near = self._windows.rate(before, now_ms) * _NEAR > known.bound
        if not pause and near and kind == FETCH:
            pause = self._spread(known, slot, amount, now_ms)
        if not pause and not hold:
            self._table.add(known.mine, slot, amount, now_ms)
        return pause

    def take_tokens(
        self, user: str, client_id: str, amount: int, now_ms: int, strict: bool
    ) -> tuple[bool, int]:
        """Take tokens for changes of the metadata: (whether they are allowed, pause in ms). Who is
        not strict is always allowed, and paused for it."""
        known = self._find(MUTATION, user, client_id)
        if known is None:
            return True, 0
        bound = known.bound
        tokens = self._bucket.filled(*self._table.bucket(known.mine), bound, now_ms)
        allowed = not strict or tokens >= 0
        if allowed:
            tokens -= amount
            self._table.add(known.mine, self._windows.slot(now_ms), amount, now_ms)
        self._table.set_bucket(known.mine, tokens, now_ms)
        pause = 0 if strict and allowed else self._bucket.wait_ms(tokens, bound)
        if pause:
            self._paused(known, now_ms, pause)
        return allowed, pause

    def room(self, kind: str, user: str, client_id: str) -> int | None:
        """The most that all windows but one may hold, None for no limit: no single answer should
        be larger."""
        known = self._find(kind, user, client_id)
        if known is None:
            return None
        whole = max(1, self._windows.count - 1) * self._windows.size_ms
        return max(1, int(known.bound * whole / 1000))

    def find_limit(self, kind: str, user: str, client_id: str) -> tuple[float, Entity] | None:
        """(limit, the entity that has it) for the log."""
        known = self._find(kind, user, client_id)
        if known is None:
            return None
        return known.limit.bound, entity_of(known.limit.level, user, client_id)

    def usage(self, now_ms: int) -> list[MeterUsage]:
        """Every meter that has a limit now, summed over all processes, by kind and name."""
        slot = self._windows.slot(now_ms)
        rows: dict[bytes, list[QuotaRow]] = {}
        for row in self._table.read(slot):
            rows.setdefault(row.digest, []).append(row)
        found = (self._summed(same, now_ms) for same in rows.values())
        every = [one for one in found if one is not None]
        return sorted(every, key=lambda one: (one.kind, one.user, one.client_id))

    def _summed(self, rows: list[QuotaRow], now_ms: int) -> MeterUsage | None:
        latest = max(rows, key=lambda row: row.used_ms)
        kind = KINDS[latest.kind]
        user, _, client_id = latest.name.partition("\0")
        entity = () if kind == ARRIVAL else entity_of(latest.level, user, client_id)
        limits = self._limits.get(kind)
        limit = limits.at(entity) if limits is not None else None
        if limit is None:
            if limits is None or latest.whole:
                return None  # counted under a limit that is gone
            limit = latest.limit
        unit = NS_OF_PERCENT if kind == REQUEST else 1
        rate = self._windows.rate(sum(row.total for row in rows), now_ms) / unit
        used = rate / limit
        if kind == MUTATION:
            most = limit * self._bucket.seconds
            left = self._bucket.filled(latest.tokens, latest.filled_ms, limit, now_ms)
            used = 1 - left / most
        wait = max(0, max(row.until_ms for row in rows) - now_ms)
        pauses = sum(row.pauses for row in rows)
        last, held = self._held(rows, now_ms)
        return MeterUsage(
            kind, user, client_id, entity, pauses, limit, rate, used, wait, last, held
        )

    def _held(self, rows: list[QuotaRow], now_ms: int) -> tuple[int, int]:
        """(how long the last pause was told to be, for how long there has been one after the
        other), in ms; one process may have begun earlier than the others."""
        paused = [row for row in rows if row.pauses]
        lately = [row for row in paused if now_ms <= row.until_ms + self._windows.all_ms]
        last = max(paused, key=lambda row: row.until_ms).last_ms if paused else 0
        return last, max((now_ms - row.since_ms for row in lately), default=0)

    def _pause(self, known: _Known, total: int, now_ms: int) -> int:
        pause = self._windows.throttle_ms(total, known.bound, now_ms, known.most_ms)
        if pause:
            self._paused(known, now_ms, pause)
        return pause

    def _paused(self, known: _Known, now_ms: int, pause_ms: int) -> None:
        self._table.pause(known.mine, now_ms, pause_ms, self._windows.all_ms)

    def _spread(self, known: _Known, slot: int, amount: int, now_ms: int) -> int:
        """How long somebody near the limit waits who has fetched enough in this window: what is
        used at once comes free at once when its window is over, and would be used at once again."""
        table = self._table
        used = sum(table.sample(at, slot) for at in (known.mine, *known.others))
        most = known.bound * self._windows.size_ms / 1000 * _SPREAD
        if not used or used + amount <= most:
            return 0
        pause = self._windows.left_ms(now_ms)
        self._paused(known, now_ms, pause)
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
        limit = _limit(limits, kind, user, client_id)
        if limit is None:
            return None
        meter = Meter(self._kinds[kind], *limit.meter)
        digest = digest_of(meter)
        mine = self._rows.get(digest)
        if mine is None:
            mine = self._claim(meter, digest)
        self._table.set_limit(mine, limit.bound, limit.level)
        bound = limit.bound * (NS_OF_PERCENT if kind == REQUEST else 1)
        return _Known(limit, bound, self._most_ms(kind), digest, mine, [], -1)

    def _most_ms(self, kind: str) -> int:
        """The longest pause. What was produced is paid for however long that takes, as in Kafka; a
        fetch need not wait longer than until its windows are empty."""
        if kind == PRODUCE:
            return _UNBOUND_MS
        one_window = kind in (REQUEST, CONNECTION, ARRIVAL)
        return self._windows.size_ms if one_window else self._windows.all_ms

    def _claim(self, meter: Meter, digest: bytes) -> int:
        """A row of mine for a new meter; whoever had it before is forgotten."""
        at, behind_ms = self._table.claim(self._region, meter)
        if 0 <= behind_ms <= self._windows.all_ms:
            why = f"more than {self._table.rows} clients: {setting_of(QUOTA_CLIENTS)}"
            self._reach(QUOTA_CLIENTS, why)
        for former in [one for one, row in self._rows.items() if row == at]:
            del self._rows[former]
            self._known.clear()
        self._rows[digest] = at
        return at


def _limit(limits: Limits, kind: str, user: str, client_id: str) -> Limit | None:
    if kind == CONNECTION:
        return limits.of_ip(user)
    if kind == ARRIVAL:
        bound = limits.at(())
        return None if bound is None else Limit(bound, ("", ""), 0)
    return limits.of(user, client_id)
