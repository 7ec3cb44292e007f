"""When a disk will be full, by how it filled until now. Pure: it is given what was recorded."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from appliance.history.samples import FolderSample as DiskSample
from console.model.local.history import Past

_LEAST_S: Final = 600.0
"""Of less history nobody tells a disk's future."""
SOON_S: Final = 86_400.0
"""Who hears of a disk that is full by then still has the time to do something."""
_FAR_S: Final = 365 * 86400.0


@dataclass(slots=True, frozen=True)
class Forecast:
    """When a disk is full. full_s: in so many seconds from now, None when not at this rate.
    slope: bytes per second by which it fills, or less than 0. known_s: how much history that is
    said from; 0: too little to say anything."""

    full_s: float | None
    slope: float
    known_s: float


def forecast(disk: Past[DiskSample], now: float | None = None) -> Forecast:
    """By the slope of what is used, through the first and last third of what is known: retention
    works in steps, and a line through all points would follow the largest one."""
    now = time.time() if now is None else now
    used = [
        (at, float(one.total - one.free), one.free)
        for at, one in zip(disk.times, disk.told, strict=True)
        if one.total and at <= now
    ]
    known_s = used[-1][0] - used[0][0] if used else 0.0
    if known_s < _LEAST_S:
        return Forecast(None, 0.0, 0.0)
    third = max(len(used) // 3, 1)
    (began, first), (ended, last) = _middle(used[:third]), _middle(used[-third:])
    slope = (last - first) / max(ended - began, 1.0)
    if slope <= 0:
        return Forecast(None, slope, known_s)
    full_s = used[-1][2] / slope - (now - used[-1][0])
    return Forecast(max(full_s, 0.0) if full_s < _FAR_S else None, slope, known_s)


def _middle(points: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    return (
        math.fsum(one[0] for one in points) / len(points),
        math.fsum(one[1] for one in points) / len(points),
    )
