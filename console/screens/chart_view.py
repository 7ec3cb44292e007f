"""A view with charts, of which < and > read one time."""

from console.screens.chart import TimeChart
from console.screens.view import View


class ChartView(View):
    """All charts of the view have their cursor at one time, wall clock; Esc takes it away."""

    _read_s: float | None = None

    def action_read_chart(self, by: int) -> None:
        """Reads the charts so many columns on; at first their newest columns."""
        for chart in self.query(TimeChart):
            times = chart.times
            if not (chart.display and times.columns and times.span_s > 0):
                continue
            last = len(times.columns) - 1
            at = times.find_column(self._read_s)
            column = last if at is None else min(max(at + by, 0), last)
            self._read_at(times.time_of(column))
            return

    def on_time_chart_pointed(self, event: TimeChart.Pointed) -> None:
        """Reads the time that was clicked on."""
        event.stop()
        self._read_at(event.at_s)

    def escape(self) -> bool:
        """Takes the cursor away."""
        was = self._read_s
        self._read_at(None)
        return was is not None

    def _read_at(self, at_s: float | None) -> None:
        self._read_s = at_s
        for chart in self.query(TimeChart):
            chart.show_cursor(at_s)
