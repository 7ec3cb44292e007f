"""Lag over time as bars, with where it leads."""

from collections.abc import Sequence
from math import ceil
from typing import Final

from rich.text import Text
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from console.model.groups.group_watch import LagPast
from console.model.groups.trend import Sample, Trend, columns, trend
from console.screens.chart import draw_axes
from console.show.figures import age, bars, right_edge, short
from console.show.leads import leads
from console.show.output import plain

_LEAST_S, _MOST_S = 60.0, 3600.0
_MARKS: Final = 5
"""Columns for the marks of its axis."""


class LagChart(Widget):
    """The lag of a group, or of one of its topics, in the last hour, the newest at the right."""

    DEFAULT_CSS = """
    LagChart { height: 1fr; width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, name: str) -> None:
        super().__init__(id=name)
        self._title = ""
        self._samples: Sequence[Sample] = ()
        self._trend: Trend | None = None
        self._now_s = 0.0
        self._kept = False
        self._drawn, self._drawn_size = Text(), Size()
        self._titles = ("", "")

    def show_lag(self, title: str, samples: Sequence[Sample], past: LagPast, now_s: float) -> None:
        """title: what it is the lag of. past: of the group. now_s: the right edge, wall clock."""
        self._title, self._now_s, self._kept = title, now_s, past.kept
        self._trend = trend(samples)
        self._samples = [one for one in samples if now_s - one[0] <= _MOST_S]
        if self._draw_anew():
            self.refresh()

    def render(self) -> Text:
        """A line of words and as many lines of bars as there is room for; in a frame, axes."""
        if self.size != self._drawn_size:
            self._draw_anew()
        return self._drawn

    def _draw_anew(self) -> bool:
        """True if it looks another way than before."""
        before, self._drawn_size = self._drawn, self.size
        words = self._words()
        framed = self.has_class("framed")
        title = f"{self._title} {short(self._samples[-1][1])}" if self._samples else self._title
        titles = (plain(title), words) if framed else ("", "")
        if titles != self._titles:
            self._titles = titles
            self.border_title, self.border_subtitle = map(Content, titles)
        self._drawn = self._with_axes() if framed else self._below_words(words)
        return self._drawn != before

    def _words(self) -> str:
        """Where it leads, of what time it is known, and its peak."""
        if not self._samples:
            return ""
        top = max(value for _, value in self._samples)
        # Honest about how much it is: the console's own look is as old as the console.
        seen = "last" if self._kept else "seen here for"
        return f"{leads(self._trend)}  {seen} {age(self._seen_s)}, ↑{short(top)}".strip()

    @property
    def _seen_s(self) -> float:
        return max(self._now_s - self._samples[0][0], 0.0) if self._samples else 0.0

    @property
    def _span_s(self) -> float:
        """From the left edge to the right one: whole minutes, so that it seldom changes."""
        return max(ceil(self._seen_s / _LEAST_S) * _LEAST_S, _LEAST_S)

    def _columns(self, width: int) -> Sequence[float]:
        span_s = self._span_s
        until_s = right_edge(self._now_s, self._now_s, span_s, width)
        return columns(self._samples, width, until_s, span_s)

    def _with_axes(self) -> Text:
        if not self._samples:
            return Text("nothing known yet", "dim")
        begin = f"{age(self._span_s)} ago"
        grows = self._trend is not None and self._trend.grows_s > 0
        ink = "yellow" if grows else "cyan"
        return draw_axes(self._columns, self.size, short, _MARKS, begin, ink)

    def _below_words(self, told: str) -> Text:
        width, height = self.size
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{plain(self._title)} ", "bold")
        if not self._samples or width < 1:
            text.append("-", "dim")
            return text
        text.append(short(self._samples[-1][1]))
        words = leads(self._trend)
        if words:
            grows = self._trend is not None and self._trend.grows_s > 0
            text.append(f"  {words}", "yellow" if grows else "green")
        text.append(f"  {told.removeprefix(words).strip()}", "dim")
        for line in bars(self._columns(width), width, height - 1):
            text.append(f"\n{line}", "cyan")
        return text
