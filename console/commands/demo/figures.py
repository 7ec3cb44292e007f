"""Comparable figures of the derived rows: once from the records of the derived topics (`Found`),
once from the CSV files by plain Python (`expected`). The two share no code but the list of topics,
so that a mistake in one shows.

A figure is a key with a value. For a topic of rows that change the latest row of each key counts;
for a topic of rows that are final each row counts, so one too many shows as well as one too few.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from console.commands.demo.data import TABLES, dictionaries

Figures = dict[tuple[Any, ...], Any]
_Row = dict[str, Any]
_BY_TOPIC: Final = {table.topic: table for table in TABLES}


@dataclass(slots=True, frozen=True)
class Derived:
    """A derived topic: the job that writes it and how a row becomes a figure.

    value: None where rows are final and counted. flights: how many flights a value stands for.
    """

    topic: str
    job: str
    key: Callable[[_Row], tuple[Any, ...]]
    value: Callable[[_Row], Any] | None = None
    flights: Callable[[Any], int] = int


def _first(value: tuple[Any, ...]) -> int:
    return int(value[0])


DERIVED: Final = (
    Derived(
        "carrier-totals", "totals", lambda row: (row["carrier"],),
        lambda row: (row["flights"], row["cancelled"], row["miles"]), _first,
    ),
    Derived(
        "delays", "delays", lambda row: (row["origin"], row["hour"][:13]),
        lambda row: (
            row["flights"], row["departed"], row.get("mean_delay"), row.get("longest_delay")
        ), _first,
    ),
    Derived("cancelled", "cancelled", lambda row: (row["carrier"], row["origin"], row["dest"])),
    Derived(
        "flights-enriched", "enriched",
        lambda row: (row["airline"], row.get("manufacturer"), row.get("destination")),
    ),
    Derived(
        "flights-weather", "weather",
        lambda row: (row["origin"], row["carrier"], row.get("temp"), row.get("wind_speed")),
    ),
    Derived(
        "routes", "from_parquet", lambda row: (row["origin"], row["dest"]),
        lambda row: (row["flights"], row["arrived"], row.get("mean_delay")), _first,
    ),
)  # fmt: skip


class Found:
    """The figures of one derived topic, from its records."""

    def __init__(self, derived: Derived) -> None:
        self.derived = derived
        self.figures: Figures = {}
        self.records = 0
        self.bytes = 0

    def add(self, value: bytes) -> None:
        """One record's value."""
        self.records += 1
        self.bytes += len(value)
        row = json.loads(value)
        key = self.derived.key(row)
        if self.derived.value is None:
            self.figures[key] = self.figures.get(key, 0) + 1
        else:
            self.figures[key] = self.derived.value(row)

    @property
    def flights(self) -> int:
        """How many flights the figures stand for."""
        return flights(self.derived, self.figures)


def flights(derived: Derived, figures: Figures) -> int:
    """How many flights the figures of a topic stand for."""
    return sum(map(derived.flights, figures.values()))


def expected(data: Path) -> dict[str, Figures]:
    """Topic → the figures that it must hold, computed from the CSV files without any broker."""
    airlines = {row["carrier"]: row["name"] for row in _rows("airlines", data)}
    makers = {row["tailnum"]: row["manufacturer"] for row in _rows("planes", data)}
    airports = {row["faa"]: row["name"] for row in _rows("airports", data)}
    weather = {
        (row["origin"], row["time_hour"]): (_real(row["temp"]), _real(row["wind_speed"]))
        for row in _rows("weather", data)
    }
    hours, routes = defaultdict[Any, _Delays](_Delays), defaultdict[Any, _Delays](_Delays)
    carriers = defaultdict[Any, list[int]](lambda: [0, 0, 0])
    counted = {t: Counter[Any]() for t in ("cancelled", "flights-enriched", "flights-weather")}
    for row in _rows("flights", data):
        carrier, origin, dest, hour = row["carrier"], row["origin"], row["dest"], row["time_hour"]
        hours[origin, hour[:13]].add(row["dep_delay"])
        routes[origin, dest].add(row["arr_delay"])
        total = carriers[carrier]
        total[0] += 1
        total[2] += int(row["distance"])
        if row["dep_delay"] == "NA":
            total[1] += 1
            counted["cancelled"][carrier, origin, dest] += 1
        names = airlines[carrier], makers.get(row["tailnum"]), airports.get(dest)
        counted["flights-enriched"][names] += 1
        if (origin, hour) in weather:
            counted["flights-weather"][origin, carrier, *weather[origin, hour]] += 1
    derived: dict[str, Figures] = {
        "carrier-totals": {(carrier,): tuple(total) for carrier, total in carriers.items()},
        "delays": {key: one.with_longest() for key, one in hours.items()},
        "routes": {key: one.with_longest()[:3] for key, one in routes.items()},
    }
    return derived | {topic: dict(counts) for topic, counts in counted.items()}


class _Delays:
    """Minutes late, of several flights; NA where a flight has none."""

    __slots__ = ("flights", "known")

    def __init__(self) -> None:
        self.flights = 0
        self.known: list[int] = []

    def add(self, cell: str) -> None:
        self.flights += 1
        if cell != "NA":
            self.known.append(int(cell))

    def with_longest(self) -> tuple[int, int, float | None, int | None]:
        """(flights, known, mean, longest)."""
        known = self.known
        mean = sum(known) / len(known) if known else None
        return self.flights, len(known), mean, max(known, default=None)


def _rows(topic: str, data: Path) -> Any:
    return dictionaries(_BY_TOPIC[topic], data)


def _real(cell: str) -> float | None:
    return None if cell == "NA" else float(cell)
