"""A rate over time as bars: in a line of words and bars, or in a frame with axes."""

from collections.abc import Callable, Sequence
from typing import Final

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from console.model.local.history import Series
from console.show.figures import (
    age,
    bars,
    buckets,
    in_bytes,
    percentile,
    right_edge,
    round_above,
    short,
)

_WITH_PEAK: Final = 34
_SPIKE: Final = 3.0
"""A peak of more than so many times the 95th percentile would flatten all the rest."""
_OVER: Final = 1.5
"""The top of such a chart, in 95th percentiles."""
_CUT: Final = "▲"
_WITH_HALF: Final = 6
"""Lines of a chart whose axis has a mark in its middle."""
_MARKS: Final = {True: 9, False: 7}
"""Columns for the marks of an axis: of bytes per second, and of a count per second."""


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
        self._drawn, self._drawn_size = Text(), Size()
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
        if self._draw_anew():
            self.refresh()

    def render(self) -> Text:
        """As many lines of bars as there is room for, below the title or between the axes."""
        if self.size != self._drawn_size:
            self._draw_anew()
        return self._drawn

    def _draw_anew(self) -> bool:
        """True if it looks another way than before."""
        before, self._drawn_size = self._drawn, self.size
        framed = self.has_class("framed")
        self._drawn = self._with_axes() if framed else self._below_words()
        return self._drawn != before

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
        begin = f"{age(self._span_s)} ago" if self._span_s else ""
        marks = _MARKS[self._is_bytes]
        return draw_axes(self._columns, self.size, self._told, marks, begin, self._ink)

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
        newest = times[-1] if times else 0.0
        until_s = right_edge(self._until_s, newest, self._span_s, width)
        return buckets(times, values, until_s, self._span_s, width)

    def _told(self, value: float) -> str:
        return f"{in_bytes(value) if self._is_bytes else short(value)}/s"


def draw_axes(
    columns: Callable[[int], Sequence[float]],
    size: Size,
    told: Callable[[float], str],
    marks: int,
    begin: str,
    ink: str,
) -> Text:
    """Columns between two axes. columns: the values for so many columns, the newest last. size: of
    all of it. told: a value as a mark of the axis, which has `marks` characters. begin: what stands
    at the left end of the time, "" for none.
    """
    width, lines = size.width, size.height - 1
    text = Text(no_wrap=True, overflow="ellipsis")
    height = lines - lines % 2 if lines >= _WITH_HALF else lines  # its middle is a line's edge
    text.append("\n" * (lines - height))
    room = max(width - marks - 2, 0)
    shown = columns(room) if room else ()
    top = round_above(_top(shown))
    at = {0: told(top)} if height > 1 and top else {}
    if height >= _WITH_HALF and at:
        at[height // 2] = told(top / 2)
    above = [" "] * (room - len(shown)) + [_CUT if one > top else "" for one in shown]
    for n, line in enumerate(bars(shown, room, height, top)):
        text.append(f"{at.get(n, ''):>{marks}} {'┤' if n in at else '│'}", "dim")
        if not n:
            line = "".join(mark or bar for mark, bar in zip(above, line, strict=True))
        text.append(f"{line}\n", ink)
    begin = f"{begin} " if begin else ""
    text.append(f"{'0':>{marks}} └{begin}", "dim")
    text.append(f"{' now':─>{max(width - marks - 2 - len(begin), 0)}}", "dim")
    return text


def _top(values: Sequence[float]) -> float:
    """The value at the top of a chart: the peak, or less where one spike would flatten the rest."""
    peak, usual = max(values, default=0.0), percentile(values, 0.95)
    return usual * _OVER if 0 < usual * _SPIKE < peak else peak
