"""The heat map: every partition as a cell, darker the larger, the busier or the farther behind."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from console.model.groups import groups
from console.model.topics.heat import (
    LAG,
    LEVELS,
    MEASURES,
    RATE,
    SIZE,
    HeatSeen,
    level_of,
    limit_of,
)
from console.screens import lines
from console.screens.actions import IN_HEAT, bindings
from console.screens.heat_grid import SHADES, HeatGrid
from console.screens.places import TOPIC, Place, keeps
from console.screens.view import Part, View, Words
from console.show.figures import in_bytes, short, some

_ABOUT: Final = {
    SIZE: "by bytes on disk", RATE: "by bytes written and read per second",
    LAG: "by the lag of the group that is farthest behind",
}  # fmt: skip
_INKS: Final = {SIZE: "chart", RATE: "chart", LAG: "warn"}
_NOT_HERE: Final = "sizes and rates are known of an appliance of this host only: v shows lag"


class HeatView(View):
    """The cells; above them the partition under the cursor, below what the shades mean."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_HEAT)
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"cells": "Partitions"}
    DEFAULT_CSS = """
    HeatView #legend { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    HeatView.large #legend { padding: 0 2; }
    """

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield HeatGrid(name="cells")
        yield Words(name="legend")

    def on_mount(self) -> None:
        """By size at first."""
        self._measure = LAG if self.world.is_foreign else SIZE
        self._values: Mapping[groups.Place, float] = {}
        self._shown: list[groups.Place] = []
        self._most: groups.Place | None = None
        self._top = 0.0
        self._made_of: tuple[object, ...] = ()

    def first_table(self) -> HeatGrid:
        """The cells."""
        return self.query_one(HeatGrid)

    def line(self) -> str:
        """The command about the one topic that is seen."""
        name, bootstrap = self.place.name, self.world.link.bootstrap
        return lines.of_words(("topic", "describe", name), bootstrap) if name else ""

    def action_other(self) -> None:
        """By the next measure."""
        self._measure = MEASURES[(MEASURES.index(self._measure) + 1) % len(MEASURES)]
        self.paint()

    def paint(self) -> None:
        grid = self.query_one(HeatGrid)
        seen, counted = self.world.heat.shown.value, self.world.groups.shown.value
        lags = counted.lags if counted is not None else {}
        made_of = (seen, counted, self._measure, self.filter_text)
        if [id(one) for one in made_of] != [id(one) for one in self._made_of]:
            self._made_of = made_of
            self._values = _values(self._measure, seen or HeatSeen(), lags)
            kept = (one for one in self._values if self._keeps(one[0]))
            self._shown = list(kept) if seen is not None else sorted(kept)
            self._most = max(self._shown, key=lambda one: self._values[one], default=None)
            self._top = self._values[self._most] if self._most is not None else 0.0
        values, top = self._values, self._top
        grid.show_cells(
            self._shown, lambda place: level_of(values.get(place, 0), top), _INKS[self._measure],
            self._empty(seen is not None),
        )  # fmt: skip
        self._tell()

    def _empty(self, known: bool) -> str:
        if self.filter_text:
            return "no topic matches: Esc shows all"
        if known:
            return "no partition yet: penstock topic create NAME"
        return _NOT_HERE if self.world.is_foreign and self._measure != LAG else self.waiting()

    def _keeps(self, topic: str) -> bool:
        if self.place.name and topic != self.place.name:
            return False
        if self.filter_text:
            return keeps(self.filter_text, topic)
        return topic[:2] != "__" or topic == self.place.name

    def _tell(self) -> None:
        """Names the partition under the cursor with its value, and the shades with theirs."""
        place, values = self.query_one(HeatGrid).place, self._values
        parts: list[Part] = []
        if place is not None:
            parts += [(f"{place[0]} {place[1]}", "bold"), f"  {self._told(values.get(place, 0))}"]
            if (most := self._most) is not None and self._top:
                parts.append((f"   most: {most[0]} {most[1]}, {self._told(self._top)}", "dim"))
        self.query_one("#summary", Words).show_parts(*parts)
        shades = "  ".join(
            f"{SHADES[level]} ≤ {self._told(limit_of(level, self._top))}"
            for level in range(1, LEVELS + 1)
        )
        about = _ABOUT[self._measure] if self.is_large else f"by {self._measure}"
        said = f"{some(len(self._shown), 'partition')} {about}"
        shades = f"   {SHADES[0]} 0  {shades}" if self._top else ""
        self.query_one("#legend", Words).show_parts(said, (shades, "dim"))

    def _told(self, value: float) -> str:
        if self._measure == LAG:
            return f"{short(value)} behind"
        return in_bytes(value) + ("/s" if self._measure == RATE else "")

    def on_heat_grid_moved(self, event: HeatGrid.Moved) -> None:
        """Another partition is under the cursor."""
        event.stop()
        self._tell()

    def on_heat_grid_opened(self, event: HeatGrid.Opened) -> None:
        """Into its topic."""
        event.stop()
        place = self.query_one(HeatGrid).place
        if place is not None:
            self.post_message(self.Go(Place(TOPIC, place[0])))


def _values(
    measure: str, seen: HeatSeen, lags: Mapping[groups.Place, int]
) -> Mapping[groups.Place, float]:
    """The values of the partitions that are known: of all, whatever is counted of them."""
    if measure == SIZE:
        return seen.sizes
    if measure == RATE:
        return seen.rates
    return {place: lags.get(place, 0) for place in seen.sizes} or lags
