"""A rate over time as bars, with the newest and the greatest of it in words."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.widget import Widget

from console.model.history import Series
from console.show.figures import age, bars, buckets, in_bytes, short

_WITH_PEAK: Final = 34


class Chart(Widget):
    """The newest at the right."""

    DEFAULT_CSS = """
    Chart { height: 1fr; width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, title: str, *, is_bytes: bool, name: str) -> None:
        super().__init__(id=name)
        self._title = title
        self._is_bytes = is_bytes
        self._series = Series()
        self._until_s = self._span_s = 0.0
        self._drawn = Text()

    def show(self, values: Sequence[float]) -> None:
        """One column each, the oldest first: bytes per second or a count per second."""
        self.over(Series((), tuple(values)), 0.0, 0.0)

    def over(self, series: Series, until_s: float, span_s: float) -> None:
        """A time: a column is the mean of its part. until_s: the right edge, wall clock. span_s:
        from there to the left edge."""
        self._series, self._until_s, self._span_s = series, until_s, span_s
        if (drawn := self._draw()) != self._drawn:
            self._drawn = drawn
            self.refresh()

    def render(self) -> Text:
        """The title and as many lines of bars as there is room for."""
        return self._draw()

    def _draw(self) -> Text:
        width, height = self.size
        told = in_bytes if self._is_bytes else short
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{self._title} ", "bold")
        times, values = self._series.times, self._series.values
        if not values:
            text.append("-", "dim")
            return text
        shown: Sequence[float] = values[-width:]
        if self._span_s:
            shown = buckets(times, values, self._until_s, self._span_s, width)
        text.append(f"{told(values[-1])}/s")
        peak = max(values if self._span_s else shown)
        if width >= _WITH_PEAK or not self._span_s:
            text.append(f"  ↑{told(peak)}/s", "dim")
        text.append(f" {age(self._span_s)}" if self._span_s else "", "dim")
        for line in bars(shown, width, height - 1):
            text.append(f"\n{line}", "cyan")
        return text
