"""Delays as a chart of characters: minutes late by hour of the day, one panel for each airport.

Works on the figures of the topic `delays`; nothing here knows where they came from.
"""

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from rich.table import Table as Grid
    from rich.text import Text

AIRPORTS: Final = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}
_HOURS: Final = range(24)
_FULL_MINUTES: Final = 30.0
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_COLOURS: Final = ("green", "green", "yellow", "yellow", "dark_orange", "red")

Means = dict[str, list[float | None]]


def by_hour(delays: Mapping[tuple[Any, ...], Any]) -> Means:
    """Airport → mean delay in minutes at each hour of the day in New York.

    delays: (origin, hour as `2013-01-01T10` in UTC) → (flights, departed, mean, longest).
    """
    sums = {airport: [[0.0, 0] for _ in _HOURS] for airport in AIRPORTS}
    for (origin, hour), (_, departed, mean, _) in tuple(delays.items()):
        if departed:
            cell = sums[origin][_local_hour(hour)]
            cell[0] += mean * departed
            cell[1] += departed
    return {
        airport: [total / count if count else None for total, count in cells]
        for airport, cells in sums.items()
    }


def draw(means: Means, height: int) -> "Grid":
    """Three panels side by side, `height` lines of bars each and a line of hours below."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    for _ in range(len(AIRPORTS) + 1):
        grid.add_column()
    titles = [Text(f"{name} ({code})", style="bold") for code, name in AIRPORTS.items()]
    grid.add_row(Text("min"), *titles)
    for line in range(height, 0, -1):
        top = line / height * _FULL_MINUTES
        label = Text(f"{top:>3.0f}", style="dim")
        grid.add_row(label, *(_line(means[code], line, height) for code in AIRPORTS))
    grid.add_row(Text(""), *(Text("0     6     12    18", style="dim") for _ in AIRPORTS))
    return grid


def _line(means: list[float | None], line: int, height: int) -> "Text":
    from rich.text import Text

    text = Text()
    for mean in means:
        filled = max(mean or 0.0, 0.0) / _FULL_MINUTES * height - (line - 1)
        sign = _EIGHTHS[round(min(max(filled, 0.0), 1.0) * 8)]
        text.append(sign, style=_colour(mean or 0.0))
    return text


def _colour(mean: float) -> str:
    step = int(max(mean, 0.0) / _FULL_MINUTES * len(_COLOURS))
    return _COLOURS[min(step, len(_COLOURS) - 1)]


@functools.cache
def _local_hour(hour: str) -> int:
    """`2013-01-01T10` in UTC → the hour in New York; UTC where the time zone is not known."""
    return datetime.fromisoformat(f"{hour}:00+00:00").astimezone(_zone()).hour


@functools.cache
def _zone() -> ZoneInfo | None:
    try:
        return ZoneInfo("America/New_York")
    except ZoneInfoNotFoundError:
        return ZoneInfo("UTC")
