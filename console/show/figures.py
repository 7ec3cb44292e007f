"""Numbers as a person reads them, and as little pictures of block characters. Nothing here knows
where they come from.
"""

import time
from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_UNITS: Final = ("", "k", "M", "G", "T", "P", "E")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
NOT_KNOWN: Final = "-"
_LATE_S: Final = 3.0
"""A value may come so much later than it is about."""


def short(number: float | None) -> str:
    """At most five characters from 0 to 10^18, e.g. 0, 0.02, 7.25, 940, 12.3k, 1.02M; `-` for
    None."""
    if number is None:
        return NOT_KNOWN
    if number < 0:
        return f"-{short(-number)}"
    if number < 1000 and number == int(number):
        return str(int(number))
    if number < 999.5:
        digits = 0 if number >= 100 else 1 if number >= 10 else 2
        return f"{number:.{digits}f}" if number >= 0.005 else "~0"
    for power, unit in enumerate(_UNITS):
        value = number / 1000**power
        if value < 999.5:
            return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}{unit}"
    return f"{number:.1e}"


def in_bytes(number: float | None) -> str:
    """Formats a number of bytes in decimal units, as disks and networks are sold: 0 B, 12.3 MB; `-`
    for None.
    """
    if number is None:
        return NOT_KNOWN
    if number < 999.5:
        return f"{number:.0f} B" if number >= 0.5 or not number else "~0 B"
    told = short(number)
    return f"{told[:-1]} {told[-1]}B" if told[-1] in _UNITS[1:] else f"{told} B"


def age(seconds: float | None) -> str:
    """A span by its two greatest units at most: 0 s, 45 s, 12 min, 3 h 20 min, 3 d 4 h."""
    if seconds is None:
        return NOT_KNOWN
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < _DAY:
        minutes = whole % _HOUR // _MINUTE
        return f"{whole // _HOUR} h" + (f" {minutes} min" if minutes else "")
    hours = whole % _DAY // _HOUR
    return f"{whole // _DAY} d" + (f" {hours} h" if hours else "")


def moment(at_ms: int) -> str:
    """A time of the wall clock, in this zone: 2026-11-22 14:03:22."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))
    except (OverflowError, ValueError, OSError):
        return NOT_KNOWN


def moment_in_zone(at_ms: int) -> str:
    """The same with its zone, as it can be typed again: 2026-11-22T14:03:22+0100."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(at_ms / 1000))
    except (OverflowError, ValueError, OSError):
        return NOT_KNOWN


def took(seconds: float) -> str:
    """How long something took: 79 ms, 1.42 s."""
    return f"{short(seconds * 1000)} ms" if seconds < 0.9995 else f"{short(seconds)} s"


def some(count: int, thing: str) -> str:
    """1 topic, 2,000 topics."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def spark(values: Sequence[float], width: int) -> str:
    """The last `width` values as one line, the newest at the right, in proportion to the greatest
    of them. What is more than nothing is seen."""
    return bars(values, width, 1)[0]


def bars(values: Sequence[float], width: int, height: int, top: float | None = None) -> list[str]:
    """The same, `height` lines high, the topmost first. top: the value of a full column, where it
    is not the greatest one.
    """
    shown = list(values[-width:]) if width > 0 else []
    top = max(shown, default=0.0) if top is None else top
    eighths = [_eighths(one, top, height) for one in shown]
    return [
        "".join(_EIGHTHS[min(8, max(0, one - 8 * line))] for one in eighths).rjust(width)
        for line in reversed(range(height))
    ]


def buckets(
    times: Sequence[float], values: Sequence[float], until: float, span: float, count: int
) -> list[float]:
    """The means of values in `count` equal parts of the time from until - span to until, the oldest
    part first; 0.0 for a part in which there was none. times: rising, in the unit of span."""
    if count < 1 or span <= 0:
        return []
    sums, there = [0.0] * count, [0] * count
    for at, value in zip(times, values, strict=True):
        part = int((at - until + span) / span * count)
        if at > until - span:
            part = min(max(part, 0), count - 1)
            sums[part] += value
            there[part] += 1
    means = [total / n if n else 0.0 for total, n in zip(sums, there, strict=True)]
    for n in range(1, count - 1):
        if not there[n] and there[n - 1] and there[n + 1]:  # samples are longer than a part
            means[n] = means[n + 1]
    return means


def right_edge(now: float, newest: float, span: float, count: int) -> float:
    """The end of the last of `count` equal parts of `span`: a multiple of their length, so that a
    picture moves on by whole columns and stays as it is meanwhile. newest: time of the last value,
    which comes a little later than it is about.
    """
    step = span / count if count > 0 else 0.0
    if step <= 0:
        return now
    last = newest if now - newest < max(step, _LATE_S) else now
    return (floor(last / step) + 1) * step


def round_above(value: float) -> float:
    """The least of 1, 2, 4, 5, 6, 8 and 10 times a power of ten that is not below a value: the top
    of an axis, whose half is as short to write. 0.0 for what is not above 0.
    """
    if value <= 0:
        return 0.0
    power = 10.0 ** floor(log10(value))
    return next((n * power for n in (1, 2, 4, 5, 6, 8) if n * power >= value), 10 * power)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that `share` (0 to 1) of the values do not exceed; 0.0 without values."""
    if not values:
        return 0.0
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def _eighths(value: float, top: float, height: int) -> int:
    if value <= 0 or top <= 0:
        return 0
    return max(1, round(value / top * height * 8))


def meter(share: float, width: int) -> str:
    """A filled part (0 to 1) of `width` characters."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    return "█" * filled + "░" * (width - filled)
