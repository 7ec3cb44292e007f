"""Lag over time as bars, with where it leads."""

from collections.abc import Sequence
from math import ceil
from typing import Final

from rich.text import Text

from console.model.groups.group_watch import LagPast
from console.model.groups.trend import Sample, Trend, columns, trend
from console.screens.chart import TimeChart, Times, append_bars, draw_axes
from console.show.figures import age, bars, right_edge, short
from console.show.leads import leads
from console.show.output import plain

_LEAST_S, _MOST_S = 60.0, 3600.0
_MARKS: Final = 5


class LagChart(TimeChart):
    """The lag of a group, or of one of its topics, in the last hour."""

    marks = _MARKS

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name)
        self._title = ""
        self._samples: Sequence[Sample] = ()
        self._trend: Trend | None = None
        self._now_s = 0.0
        self._kept = False

    def show_lag(self, title: str, samples: Sequence[Sample], past: LagPast, now_s: float) -> None:
        """title: what it is the lag of. past: of the group. now_s: the right edge, wall clock."""
        self._title, self._now_s, self._kept = title, now_s, past.kept
        self._trend = trend(samples)
        self._samples = [one for one in samples if now_s - one[0] <= _MOST_S]
        self.redraw()

    def describe_frame(self) -> tuple[str, str]:
        """The name with the lag; where it leads, or what is read."""
        title = f"{self._title} {short(self._samples[-1][1])}" if self._samples else self._title
        return plain(title), self.read_value() or self._words()

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

    @property
    def _grows(self) -> bool:
        return self._trend is not None and self._trend.grows_s > 0

    def in_columns(self, width: int) -> Times:
        """The greatest lag of equal parts of the time."""
        span_s = self._span_s
        until_s = right_edge(self._now_s, self._now_s, span_s, width)
        seen = bool(self._samples) and width > 0
        return Times(
            columns(self._samples, width, until_s, span_s) if seen else (), until_s, span_s
        )

    def in_words(self, value: float) -> str:
        """Records."""
        return f"{short(value)} records"

    def draw_framed(self) -> Text:
        """Bars between two axes."""
        if not self._samples:
            return Text("nothing known yet", "dim")
        begin = f"{age(self._span_s)} ago"
        ink = "yellow" if self._grows else "cyan"
        return draw_axes(self.times, self.size, short, self, begin, ink)

    def draw_lines(self) -> Text:
        """The title with the lag and where it leads, or what is read; bars below."""
        width, height = self.size
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{plain(self._title)} ", "bold")
        if not self._samples or width < 1:
            text.append("-", "dim")
            return text
        words, told = leads(self._trend), self._words()
        if read := self.read_value():
            text.append(read)
        else:
            text.append(short(self._samples[-1][1]))
            if words:
                text.append(f"  {words}", "yellow" if self._grows else "green")
            text.append(f"  {told.removeprefix(words).strip()}", "dim")
        times = self.in_columns(width)
        at = times.find_column(self.cursor_s)
        for line in bars(times.columns, width, height - 1):
            text.append("\n")
            append_bars(text, line, "cyan", at)
        return text
