"""The cursor of charts reads a value, and what a frame has no room for is left out whole."""

from unittest import mock

from textual.geometry import Size

from console.model.local.history import Series
from console.screens.chart import Chart
from tests.console.test_screen_parts import framed


def test_a_cursor_reads_a_column_and_stays_at_its_time():
    drawn = Chart("Written", is_bytes=True, name="in")
    drawn.add_class("framed")
    times = tuple(float(n) for n in range(1, 601))
    with mock.patch.object(Chart, "size", Size(71, 9)):  # of which 60 are columns
        drawn.over(Series(times, tuple(n * 1e3 for n in times)), 600.0, 600.0)
        assert len(drawn.times.columns) == 60
        drawn.show_cursor(305.0)
        assert drawn.read_value().endswith("  304 kB/s")
        assert str(drawn.border_subtitle) == drawn.read_value()
        assert [one for one in drawn.render().spans if "reverse" in str(one.style)]
        drawn.over(Series(times, times), 640.0, 600.0)
        assert drawn.times.find_column(305.0) == 25, "four columns to the left of 29"
        drawn.show_cursor(10.0)
        assert not drawn.read_value(), "it has left the chart"


def test_a_frame_has_the_figures_that_fit():
    told = framed([float(n) for n in range(50)], (24, 9))[1]
    assert told == "now 49 B/s  peak 49 B/s", "what there is no room for is left out whole"
