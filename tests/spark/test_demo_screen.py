"""What the demo says while it runs, without Spark and without an appliance."""

import time

import pytest
from rich.console import Console

from console.commands.demo.derive import Derivation
from console.commands.demo.screen import JobView, line, picture
from console.model.asking.failure import Failure

CAUSE = "IOException: Failed to create a temp directory"


class Jobs:
    def __init__(self):
        self.told = {}

    def states(self):
        return self.told

    def add(self, *names):
        pass


class Screen:
    def show_progress(self):
        pass


@pytest.fixture
def run(tmp_path):
    from console.model.asking.link import Link

    found = Derivation(Link("127.0.0.1:1", {}, 1), tmp_path, Jobs(), time.monotonic())
    found._view.jobs = [JobView("totals", "totals per carrier", 100)]
    found._hand_out = lambda: None
    return found


def turn(run, **told):
    run._jobs.told["totals"] = told
    run._turn(Screen())
    return line(run._view)


def shown(view):
    console = Console(width=100)
    with console.capture() as said:
        console.print(picture(view, 24))
    return said.get()


def test_a_failing_job_is_shown_as_failing_and_ends_the_demo_in_the_end(run):
    said = turn(run, state="failing", cause=CAUSE, attempt=1)
    assert f"totals is failing: {CAUSE}" in said
    assert f"totals is failing: {CAUSE}" in shown(run._view)
    assert CAUSE not in turn(run, state="running", cause=None, progress={"rows_in": 50})
    assert CAUSE not in shown(run._view)
    with pytest.raises(Failure, match="job totals failed: IOException"):
        turn(run, state="failing", cause=CAUSE, attempt=3)


def test_the_phase_is_that_of_now(run):
    assert "Spark starts while the data is written" in turn(run, state="starting")
    run.marks["everything written"] = 1.0
    assert "everything is written, Spark reads its first batch" in turn(run, state="running")
    told = {"state": "running", "progress": {"rows_in": 50}}
    assert "Spark derives the first rows" in turn(run, **told)
    run._watch.first_s = time.monotonic()
    assert "rows are derived" in turn(run, **told)


def test_a_replay_shows_what_time_it_is_there(run, monkeypatch):
    from console.commands.demo import derive, load

    events = [(22_616_940 + minute, "flights", b"k", b"v") for minute in range(3)]
    monkeypatch.setattr(load, "events", lambda _: events)
    monkeypatch.setattr(load, "load_tables", lambda *_: None)

    class Writer:
        def all(self, rows):
            list(rows)

        def poll(self, _):
            pass

        def finish(self):
            pass

    monkeypatch.setattr(load, "_Writer", lambda *_, **__: Writer())
    monkeypatch.setattr(run, "_advance", lambda *_: None)
    seen = []

    def goes_on(link, source, speed, advance, go_on, clock):
        def until_next_year(there):
            clock(there)
            seen.append(run._view.moment)
            run._goes_on = len(seen) < 9

        load.replay(link, source, speed, advance, go_on, until_next_year)

    monkeypatch.setattr(derive, "replay", goes_on)
    run._replay(1e9)
    assert seen[0].startswith("2013-01-01 05:0")
    assert seen[-1] > seen[0]
    assert seen[-1][:4] > "2013"
    assert f"it is {seen[-1]}" in line(run._view)
    assert seen[-1] in shown(run._view)
