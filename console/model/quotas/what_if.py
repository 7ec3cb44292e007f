"""Simulates changed quotas on the traffic of the last minutes: which clients they would have
throttled, and for about how long.

Pure: it is given what clients did, second by second, and the quotas before and after. It plays that
traffic against the windows of `appliance/quotas`: what comes while a client pauses waits, goes out
when the pause is over, and is charged then. So it tells what the quota would have done to clients
that want the same; who waits for its answers before it sends more would have sent less.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.quotas.limits import FETCH, PRODUCE, Entity, Limit, Limits, entity_of
from appliance.quotas.window import Windows
from console.model.quotas.quota_rules import Quotas

KINDS: Final = (PRODUCE, FETCH)
"""What the traffic of clients says something about."""
_UNBOUND_MS: Final = 2**40


@dataclass(slots=True, frozen=True)
class Traffic:
    """The traffic of one client. amounts: kind of quota → bytes in each second, the oldest first;
    those of all clients end in the same second.
    """

    user: str
    client_id: str
    amounts: Mapping[str, Sequence[float]]


@dataclass(slots=True, frozen=True)
class Pauses:
    """The effect of a limit. paused_ms: of the recorded time. longest_ms: of one pause. left: bytes
    that would still wait at the end.
    """

    paused_ms: int
    longest_ms: int
    left: float


@dataclass(slots=True, frozen=True)
class Outcome:
    """The effect of the change on the clients that are counted as one. user, client_id: "" where it
    does not count. rule, limit: after the change, () and None for no limit. before: the limit that
    applies now. recorded_s: length of the record. peak: bytes in its busiest second.
    """

    kind: str
    user: str
    client_id: str
    rule: Entity
    limit: float | None
    before: float | None
    recorded_s: int
    peak: float
    pauses: Pauses


def outcomes(
    traffic: Iterable[Traffic], before: Quotas, after: Quotas, windows: Windows | None = None
) -> list[Outcome]:
    """The effect of `after` instead of `before` on those clients of `traffic` whose limit changes:
    those throttled longest come first.
    """
    told = list(traffic)
    found = []
    for kind in KINDS:
        old, new = Limits(kind, before), Limits(kind, after)
        sums: dict[tuple[str, str], list[float]] = {}
        holding: dict[tuple[str, str], tuple[Limit | None, Limit | None]] = {}
        for one in told:
            was, now = old.of(one.user, one.client_id), new.of(one.user, one.client_id)
            if _key(was) == _key(now) or not any(one.amounts.get(kind, ())):
                continue
            who = now.meter if now is not None else (one.user, one.client_id)
            sums[who] = _added(sums.get(who, []), one.amounts[kind])
            holding[who] = was or holding.get(who, (None, None))[0], now
        found += [_outcome(kind, who, sums[who], *holding[who], windows) for who in sums]
    return sorted(found, key=lambda one: (-one.pauses.paused_ms, -one.peak))


def _key(limit: Limit | None) -> tuple[float, tuple[str, str]] | None:
    return None if limit is None else (limit.bound, limit.meter)


def _added(sums: Sequence[float], more: Sequence[float]) -> list[float]:
    """Both end in the same second."""
    size = max(len(sums), len(more))
    both = [[0.0] * (size - len(one)) + list(one) for one in (sums, more)]
    return [here + there for here, there in zip(*both, strict=True)]


def _outcome(
    kind: str,
    who: tuple[str, str],
    amounts: Sequence[float],
    was: Limit | None,
    now: Limit | None,
    windows: Windows | None,
) -> Outcome:
    return Outcome(
        kind,
        *who,
        rule=entity_of(now.level, *who) if now is not None else (),
        limit=now.bound if now is not None else None,
        before=was.bound if was is not None else None,
        recorded_s=len(amounts),
        peak=max(amounts),
        pauses=Pauses(0, 0, 0.0) if now is None else pauses(amounts, now.bound, windows),
    )


def pauses(amounts: Sequence[float], bound: float, windows: Windows | None = None) -> Pauses:
    """The effect of a limit of `bound` per second on a client that wants these amounts, each at the
    end of its second. windows: as the broker counts, Kafka's default ones when None.
    """
    assert bound > 0
    windows = windows or Windows()
    sent: dict[int, float] = {}
    waiting = 0.0
    until_ms = paused_ms = longest_ms = 0
    end_ms = len(amounts) * 1000
    for second, amount in enumerate(amounts, 1):
        last_ms = second * 1000 - 1
        for at_ms in sorted({min(until_ms, last_ms), last_ms}):
            waiting += amount if at_ms == last_ms else 0.0
            if not waiting or at_ms < until_ms:
                continue
            pause = _charged(sent, waiting, at_ms, bound, windows)
            waiting, until_ms = 0.0, at_ms + pause
            longest_ms = max(longest_ms, pause)
            paused_ms += min(until_ms, end_ms) - at_ms
    return Pauses(paused_ms, longest_ms, waiting)


def _charged(
    sent: dict[int, float], amount: float, now_ms: int, bound: float, windows: Windows
) -> int:
    """The pause in ms for what is sent now; `sent`: by window, those that still count."""
    slot = windows.slot(now_ms)
    sent[slot] = sent.get(slot, 0.0) + amount
    for old in [one for one in sent if one <= slot - windows.count]:
        del sent[old]
    return windows.throttle_ms(sum(sent.values()), bound, now_ms, _UNBOUND_MS)
