"""Values over time as bars: in a line of words and bars, or in a frame with axes. A cursor reads
the value of one time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor
from typing import Final

from rich.text import Text
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
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
"""Columns for the marks of the left axis: of bytes per second, and of a count per second."""
_AXIS: Final = 2
"""Columns of the left axis beside its marks."""


@dataclass(slots=True, frozen=True)
class Times:
    """The columns of a chart over time. columns: a value each, the oldest first. until_s: the right
    edge, wall clock. span_s: from there to the left edge."""

    columns: Sequence[float]
    until_s: float
    span_s: float

    @property
    def step_s(self) -> float:
        """The time that one column is about."""
        return self.span_s / max(len(self.columns), 1)

    def find_column(self, at_s: float | None) -> int | None:
        """The column of a time, None where it is not on the chart."""
        if at_s is None or not self.columns or self.span_s <= 0:
            return None
        number = floor((at_s - self.until_s + self.span_s) / self.step_s)
        return number if 0 <= number < len(self.columns) else None

    def time_of(self, column: int) -> float:
        """The middle of a column, wall clock."""
        return self.until_s - (len(self.columns) - column - 0.5) * self.step_s


class TimeChart(Widget):
    """Bars over time, the newest at the right, and a cursor that reads one of them. With the class
    `framed`: a frame with title and words, and both axes; else a line of words and bars. Drawn anew
    only where that looks another way. A subclass says what is drawn.
    """

    DEFAULT_CSS = """
    TimeChart { height: 1fr; width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    class Pointed(Message):
        """Somebody clicked on a time of the chart."""

        def __init__(self, at_s: float) -> None:
            super().__init__()
            self.at_s = at_s

    def __init__(self, *, name: str) -> None:
        super().__init__(id=name)
        self.cursor_s: float | None = None
        """The time that is read, wall clock; None: no cursor."""
        self._drawn, self._drawn_size = Text(), Size()
        self._titles = ("", "")

    def show_cursor(self, at_s: float | None) -> None:
        """Reads the value of a time from now on; None: of none."""
        self.cursor_s = at_s
        self.redraw()

    def redraw(self) -> None:
        """Takes over what is to be shown; refreshes where that looks another way."""
        if self._draw_anew():
            self.refresh()

    def render(self) -> Text:
        """As many lines of bars as there is room for, below the title or between the axes."""
        if self.size != self._drawn_size:
            self._draw_anew()
        return self._drawn

    @property
    def times(self) -> Times:
        """The columns that are drawn now."""
        marks = self.marks + _AXIS if self.has_class("framed") else 0
        return self.in_columns(max(self.size.width - marks, 0))

    def _draw_anew(self) -> bool:
        before, self._drawn_size = self._drawn, self.size
        framed = self.has_class("framed")
        titles = self.describe_frame() if framed else ("", "")
        (title, words), (old_title, old_words) = titles, self._titles
        self._titles = titles
        if title != old_title:
            self.border_title = Content(title)
        if words != old_words:
            self.border_subtitle = Content(words)
        self._drawn = self.draw_framed() if framed else self.draw_lines()
        return self._drawn != before

    def on_click(self, event: events.Click) -> None:
        """Reads the column under the mouse."""
        at = event.get_content_offset(self)
        times = self.times
        column = at.x - (self.size.width - len(times.columns)) if at is not None else -1
        if 0 <= column < len(times.columns) and times.span_s > 0:
            self.post_message(self.Pointed(times.time_of(column)))

    def read_value(self) -> str:
        """The time under the cursor and its value, in words; "" without a cursor."""
        times = self.times
        column = times.find_column(self.cursor_s)
        if column is None or times.columns[column] < 0:
            return ""
        at = time.strftime("%H:%M:%S", time.localtime(times.time_of(column)))
        return f"{at}  {self.in_words(times.columns[column])}"

    # For subclasses -----------------------------------------------------------------------------

    marks = 0
    """Columns for the marks of the left axis."""

    def in_columns(self, width: int) -> Times:
        """The values as `width` columns at most."""
        return Times((), 0.0, 0.0)

    def in_words(self, value: float) -> str:
        """A value with its unit."""
        return short(value)

    def describe_frame(self) -> tuple[str, str]:
        """The words in the upper and the lower edge of the frame."""
        return "", ""

    def draw_framed(self) -> Text:
        """The inside of the frame."""
        return Text()

    def draw_lines(self) -> Text:
        """A line of words, and bars below."""
        return Text()


class Chart(TimeChart):
    """A rate. In its frame: now, 95th percentile and peak in words, or what the cursor reads;
    columns beyond the top of the chart end in ▲.
    """

    def __init__(self, title: str, *, is_bytes: bool, name: str, ink: str = "cyan") -> None:
        """ink: the colour of its bars."""
        super().__init__(name=name)
        self._title = title
        self._is_bytes = is_bytes
        self._ink = ink
        self._series = Series()
        self._until_s = self._span_s = 0.0
        self.marks = _MARKS[is_bytes]

    def show_values(self, values: Sequence[float]) -> None:
        """One column each, the oldest first: bytes per second or a count per second."""
        self.over(Series((), tuple(values)), 0.0, 0.0)

    def over(self, series: Series, until_s: float, span_s: float) -> None:
        """A time: a column is the mean of its part. until_s: the right edge, wall clock. span_s:
        from there to the left edge."""
        self._series, self._until_s, self._span_s = series, until_s, span_s
        self.redraw()

    def draw_lines(self) -> Text:
        """The title with the value, the peak and the time; bars below."""
        width, height = self.size
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{self._title} ", "bold")
        values = self._series.values
        if not values:
            text.append("-", "dim")
            return text
        times = self.in_columns(width)
        if read := self.read_value():
            text.append(read)
        else:
            text.append(self.in_words(values[-1]))
            if width >= _WITH_PEAK or not self._span_s:
                peak = max(values if self._span_s else times.columns, default=0.0)
                text.append(f"  ↑{self.in_words(peak)}", "dim")
            text.append(f" {age(self._span_s)}" if self._span_s else "", "dim")
        at = times.find_column(self.cursor_s)
        for line in bars(times.columns, width, height - 1):
            text.append("\n")
            append_bars(text, line, self._ink, at)
        return text

    def draw_framed(self) -> Text:
        """Bars between two axes."""
        begin = f"{age(self._span_s)} ago" if self._span_s else ""
        return draw_axes(self.times, self.size, self.in_words, self, begin, self._ink)

    def describe_frame(self) -> tuple[str, str]:
        """The title; now, 95th percentile and peak as far as there is room, or what is read."""
        values = self._series.values
        if not values:
            return self._title, "nothing known yet"
        if read := self.read_value():
            return self._title, read
        parts = [("now", values[-1]), ("p95", percentile(values, 0.95)), ("peak", max(values))]
        words = [f"{name} {self.in_words(value)}" for name, value in parts]
        while len(words) > 1 and len("  ".join(words)) > max(self.size.width - 1, 1):
            del words[-2 if len(words) > 2 else -1]  # now and the peak say most
        return self._title, "  ".join(words)

    def in_columns(self, width: int) -> Times:
        """Means over equal parts of the time."""
        if not self._span_s:
            return Times(self._series.values[-width:] if width else (), 0.0, 0.0)
        times, values = self._series.times, self._series.values
        newest = times[-1] if times else 0.0
        until_s = right_edge(self._until_s, newest, self._span_s, width)
        shown = buckets(times, values, until_s, self._span_s, width)
        return Times(shown, until_s, self._span_s)

    def in_words(self, value: float) -> str:
        """Bytes or a count per second."""
        return f"{in_bytes(value) if self._is_bytes else short(value)}/s"


def append_bars(text: Text, line: str, ink: str, cursor: int | None) -> None:
    """A line of bars, in which the column under the cursor is reversed."""
    if cursor is None or cursor >= len(line):
        text.append(line, ink)
        return
    text.append(line[:cursor], ink)
    text.append(line[cursor], f"{ink} reverse")
    text.append(line[cursor + 1 :], ink)


def draw_axes(
    times: Times,
    size: Size,
    told: Callable[[float], str],
    chart: TimeChart,
    begin: str,
    ink: str,
) -> Text:
    """Columns between two axes. size: of all of it. told: a value as a mark of the axis. chart: for
    its cursor and the width of its marks. begin: what stands at the left end of the time, "" for
    none.
    """
    marks, shown, at_cursor = chart.marks, times.columns, times.find_column(chart.cursor_s)
    width, lines = size.width, size.height - 1
    text = Text(no_wrap=True, overflow="ellipsis")
    height = lines - lines % 2 if lines >= _WITH_HALF else lines  # its middle is a line's edge
    text.append("\n" * (lines - height))
    room = max(width - marks - _AXIS, 0)
    top = round_above(_top(shown))
    at = {0: told(top)} if height > 1 and top else {}
    if height >= _WITH_HALF and at:
        at[height // 2] = told(top / 2)
    above = [" "] * (room - len(shown)) + [_CUT if one > top else "" for one in shown]
    for n, line in enumerate(bars(shown, room, height, top)):
        text.append(f"{at.get(n, ''):>{marks}} {'┤' if n in at else '│'}", "dim")
        if not n:
            line = "".join(mark or bar for mark, bar in zip(above, line, strict=True))
        append_bars(text, line, ink, None if at_cursor is None else at_cursor + room - len(shown))
        text.append("\n")
    begin = f"{begin} " if begin else ""
    text.append(f"{'0':>{marks}} └{begin}", "dim")
    text.append(f"{' now':─>{max(room - len(begin), 0)}}", "dim")
    return text


def _top(values: Sequence[float]) -> float:
    """The value at the top of a chart: the peak, or less where one spike would flatten the rest."""
    peak, usual = max(values, default=0.0), percentile(values, 0.95)
    return usual * _OVER if 0 < usual * _SPIKE < peak else peak
