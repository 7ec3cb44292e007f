"""A rate over time as bars: in a line of words and bars, or in a frame with axes."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.widget import Widget

from console.model.history import Series
from console.show.figures import age, bars, buckets, in_bytes, percentile, round_above, short

_WITH_PEAK: Final = 34
_SPIKE: Final = 3.0
"""A peak of more than so many times the 95th percentile would flatten all the rest."""
_OVER: Final = 1.5
"""The top of such a chart, in 95th percentiles."""
_CUT: Final = "▲"
_WITH_HALF: Final = 6
"""Lines of a chart whose axis has a mark in its middle."""


class Chart(Widget):
    """The newest at the right. With the class `framed`: a frame with the title, both axes, and
    now, 95th percentile and peak in words; columns beyond the top of the chart end in ▲.
    """

    DEFAULT_CSS = """
    Chart { height: 1fr; width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, title: str, *, is_bytes: bool, name: str, ink: str = "cyan") -> None:
        """ink: the colour of its bars."""
        super().__init__(id=name)
        self._title = title
        self._is_bytes = is_bytes
        self._ink = ink
        self._series = Series()
        self._until_s = self._span_s = 0.0
        self._drawn = Text()
        self._titles = ("", "")

    def show_values(self, values: Sequence[float]) -> None:
        """One column each, the oldest first: bytes per second or a count per second."""
        self.over(Series((), tuple(values)), 0.0, 0.0)

    def over(self, series: Series, until_s: float, span_s: float) -> None:
        """A time: a column is the mean of its part. until_s: the right edge, wall clock. span_s:
        from there to the left edge."""
        self._series, self._until_s, self._span_s = series, until_s, span_s
        framed = self.has_class("framed")
        titles = (self._title, self._figures()) if framed else ("", "")
        if titles != self._titles:
            self._titles = self.border_title, self.border_subtitle = titles
        if (drawn := self._draw()) != self._drawn:
            self._drawn = drawn
            self.refresh()

    def render(self) -> Text:
        """As many lines of bars as there is room for, below the title or between the axes."""
        return self._draw()

    def _draw(self) -> Text:
        return self._with_axes() if self.has_class("framed") else self._below_words()

    def _below_words(self) -> Text:
        width, height = self.size
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{self._title} ", "bold")
        values = self._series.values
        if not values:
            text.append("-", "dim")
            return text
        shown = self._columns(width)
        text.append(self._told(values[-1]))
        peak = max(values if self._span_s else shown)
        if width >= _WITH_PEAK or not self._span_s:
            text.append(f"  ↑{self._told(peak)}", "dim")
        text.append(f" {age(self._span_s)}" if self._span_s else "", "dim")
        for line in bars(shown, width, height - 1):
            text.append(f"\n{line}", self._ink)
        return text

    def _with_axes(self) -> Text:
        width, lines = self.size[0], self.size[1] - 1
        text = Text(no_wrap=True, overflow="ellipsis")
        height = lines - lines % 2 if lines >= _WITH_HALF else lines  # its middle is a line's edge
        text.append("\n" * (lines - height))
        shown = self._columns(max(width, 1))
        top = round_above(_top(shown))
        marks = {0: self._told(top)} if height > 1 and top else {}
        if height >= _WITH_HALF and marks:
            marks[height // 2] = self._told(top / 2)
        left = max(map(len, marks.values()), default=1) + 2
        room = max(width - left, 0)
        shown = self._columns(room) if room else ()
        above = [" "] * (room - len(shown)) + [_CUT if one > top else "" for one in shown]
        for n, line in enumerate(bars(shown, room, height, top)):
            text.append(f"{marks.get(n, ''):>{left - 2}} {'┤' if n in marks else '│'}", "dim")
            if not n:
                line = "".join(mark or bar for mark, bar in zip(above, line, strict=True))
            text.append(f"{line}\n", self._ink)
        begin = f"{age(self._span_s)} ago " if self._span_s else ""
        text.append(f"{'0':>{left - 2}} └{begin}", "dim")
        text.append(f"{' now':─>{max(width - left - len(begin), 0)}}", "dim")
        return text

    def _figures(self) -> str:
        """Now, the 95th percentile and the peak in words."""
        values = self._series.values
        if not values:
            return "nothing known yet"
        parts = (("now", values[-1]), ("p95", percentile(values, 0.95)), ("peak", max(values)))
        return "  ".join(f"{name} {self._told(value)}" for name, value in parts)

    def _columns(self, width: int) -> Sequence[float]:
        if not self._span_s:
            return self._series.values[-width:]
        times, values = self._series.times, self._series.values
        return buckets(times, values, self._until_s, self._span_s, width)

    def _told(self, value: float) -> str:
        return f"{in_bytes(value) if self._is_bytes else short(value)}/s"


def _top(values: Sequence[float]) -> float:
    """The value at the top of a chart: the peak, or less where one spike would flatten the rest."""
    peak, usual = max(values, default=0.0), percentile(values, 0.95)
    return usual * _OVER if 0 < usual * _SPIKE < peak else peak
