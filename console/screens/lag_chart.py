"""Lag over time as bars, with where it leads."""

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from console.model.group_watch import LagPast
from console.model.trend import Sample, Trend, columns, trend
from console.show.figures import age, bars, short
from console.show.leads import leads
from console.show.output import plain

_LEAST_S, _MOST_S = 60.0, 3600.0


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
        self._drawn = Text()

    def show_lag(self, title: str, samples: Sequence[Sample], past: LagPast, now_s: float) -> None:
        """title: what it is the lag of. past: of the group. now_s: the right edge, wall clock."""
        self._title, self._now_s, self._kept = title, now_s, past.kept
        self._trend = trend(samples)
        self._samples = [one for one in samples if now_s - one[0] <= _MOST_S]
        if (drawn := self._draw()) != self._drawn:
            self._drawn = drawn
            self.refresh()

    def render(self) -> Text:
        """A line of words and as many lines of bars as there is room for."""
        return self._draw()

    def _draw(self) -> Text:
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
        seen_s = max(self._now_s - self._samples[0][0], 0.0)
        top = max(value for _, value in self._samples)
        # Honest about how much it is: the console's own look is as old as the console.
        seen = "last" if self._kept else "seen here for"
        text.append(f"  {seen} {age(seen_s)}, ↑{short(top)}", "dim")
        shown = columns(self._samples, width, self._now_s, max(seen_s, _LEAST_S))
        for line in bars(shown, width, height - 1):
            text.append(f"\n{line}", "cyan")
        return text
