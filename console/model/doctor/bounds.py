"""Bounds of what clients may use (`appliance/config/bounds.py`) that were reached."""

from collections.abc import Iterator
from typing import Final

from appliance.config.bounds import BOUNDS, PLACES
from appliance.config.broker_settings import BROKER
from appliance.config.setting import READ_ONLY
from appliance.ring.bound_table import ReachedBound
from console.model.doctor.facts import Facts
from console.model.doctor.finding import NOTE, WARNING, Finding

_RECENT_S: Final = 3600
"""What was reached before is worth a note."""


def judge(facts: Facts) -> Iterator[Finding]:
    """One finding for each bound that was reached since the start."""
    now_s = 0.0 if facts.clock is None else facts.clock.wall_s
    for one in facts.bounds:
        if one.name in PLACES:  # a newer appliance may have others
            yield _reached(one, int(now_s) - one.last_ms // 1000)


def _reached(one: ReachedBound, ago_s: int) -> Finding:
    bound = BOUNDS[PLACES[one.name]]
    setting = BROKER.get(bound.setting)
    where = bound.of_host
    if setting is not None:
        where = f"{setting.name} (default {setting.default})"
        where += ", applies after a restart" if setting.mode == READ_ONLY else ""
    return Finding(
        level=WARNING if ago_s < _RECENT_S else NOTE, check="bounds", subject=one.name,
        found=f"reached {one.times:,} times since the start, last {max(ago_s, 0) // 60} min ago",
        wanted=f"never: {where}", why=f"{bound.what} {bound.effect}", remedy=bound.remedy,
    )  # fmt: skip
