"""The demo with jobs: data in, jobs over it, what comes out watched and in the end compared.

Four things go on at once: the feeding thread, the runner's process, the watching thread, and the
loop here, which hands out jobs, fills the view and knows when everything is there.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from console.commands.demo.data import TABLES
from console.commands.demo.figures import DERIVED, Figures, expected, flights
from console.commands.demo.jobs import BATCHES, FIRST, THEN, Jobs
from console.commands.demo.load import load, replay
from console.commands.demo.screen import JobView, Screen, View, line
from console.commands.demo.watch import Watch
from console.model.asking.failure import NEGATIVE, OK, UNREACHABLE, Failure
from console.model.asking.link import Link
from console.show.output import Row, emit, print_note

_TURN_S: Final = 0.25
_SILENCE_S: Final = 180.0
_MOST_ATTEMPTS: Final = 3
_STARTS: Final = "Spark starts while the data is written"
_COLUMNS_SAY: Final = (
    "RECORDS are the rows that a job wrote. FIGURES are what they come to: of rows that replace\n"
    "each other the latest of each key, of rows that are final how many are alike. FLIGHTS are\n"
    "those that the figures stand for, FROM CSV the same by plain Python from the CSV files."
)
_ABOUT: Final = {
    "totals": "totals per carrier",
    "delays": "per airport and hour",
    "cancelled": "never departed",
    "enriched": "names from tables",
    "weather": "with the weather",
    "to_parquet": "topic to Parquet",
    "from_parquet": "Parquet to topic",
}
_COUNTS: Final = {table.topic: table.count for table in TABLES}


class Derivation:
    """One run. began_s: when the command did, monotonic. `marks` tells afterwards when things were
    first so, in seconds since then."""

    def __init__(self, link: Link, source: Path, jobs: Jobs, began_s: float) -> None:
        self.marks: dict[str, float] = {}
        self._link = link
        self._source = source
        self._jobs = jobs
        self._watch = Watch(link)
        self._view = View("Penstock demo", sum(_COUNTS.values()), began_s)
        self._expected: dict[str, Figures] = {}
        self._failure: BaseException | None = None
        self._goes_on = True
        self._first_row = threading.Event()
        self._moved: object = None
        self._moved_s = time.monotonic()
        self._given: set[str] = set()
        self._outputs = {one.job: self._watch.found[one.topic] for one in DERIVED}

    def run(self, output: str) -> int:
        """Load the year, wait until all is derived, compare. Raises Failure."""
        with self._feeding(self._load) as screen:
            while not self._derived():
                self._turn(screen)
            self._all_is_there()
        self._mark("all rows derived")
        return self._compare(output)

    def replay(self, speed: float) -> int:
        """The year again and again until Ctrl-C. Raises Failure."""
        try:
            with self._feeding(lambda: self._replay(speed)) as screen:
                self._view.jobs = [job for job in self._view.jobs if job.name not in BATCHES]
                while True:
                    self._turn(screen)
        except KeyboardInterrupt:
            return OK

    @contextmanager
    def _feeding(self, feed: Callable[[], None]) -> Iterator[Screen]:
        """Jobs are there, data comes, and what is derived is watched."""
        self._view.jobs = [JobView(name, about, _whole(name)) for name, about in _ABOUT.items()]
        self._view.delays = self._watch.found["delays"].figures
        self._give(*FIRST)
        self._view.stage = _STARTS
        thread = threading.Thread(target=self._guarded, args=(feed,), name="feed", daemon=True)
        with Screen(self._view) as screen:
            self._watch.start_reading()
            thread.start()
            try:
                yield screen
            finally:
                self._goes_on = False
                self._first_row.set()
                self._watch.stop()
                thread.join()

    def _guarded(self, feed: Callable[[], None]) -> None:
        try:
            feed()
        except BaseException as problem:  # raised again by the loop
            self._failure = problem

    def _load(self) -> None:
        load(self._link, self._source, self._advance)
        self._mark("everything written")
        # What is seen first has the processors for itself.
        self._first_row.wait()
        if self._goes_on:
            self._expected = expected(self._source)

    def _replay(self, speed: float) -> None:
        def clock(there: datetime) -> None:
            self._view.moment = f"{there:%Y-%m-%d %H:%M} UTC"

        replay(self._link, self._source, speed, self._advance, lambda: self._goes_on, clock)

    def _advance(self, _: str, more: int) -> None:
        self._view.loaded += more
        self._view.load_rate = self._view.loaded / (time.monotonic() - self._view.began_s)

    def _turn(self, screen: Screen) -> None:
        """Look at everything once, and wait a little."""
        for failure in (self._failure, self._watch.failure):
            if failure is not None:
                raise failure
        states = self._jobs.states()
        for job in self._view.jobs:
            self._see(job, states.get(job.name, {}))
        self._check_silence(time.monotonic())
        if self._watch.first_s is not None:
            self._mark("first derived row", self._watch.first_s)
            self._first_row.set()
        self._view.stage = self._stage(states)
        self._hand_out()
        screen.show_progress()
        time.sleep(_TURN_S)

    def _stage(self, states: dict[str, dict[str, Any]]) -> str:
        if self._watch.first_s is not None:
            return "rows are derived"
        if any((state.get("progress") or {}).get("rows_in") for state in states.values()):
            return "Spark derives the first rows"
        if "everything written" in self.marks:
            return "everything is written, Spark reads its first batch"
        return _STARTS

    def _see(self, view: JobView, state: dict[str, Any]) -> None:
        """Takes a job's state from the runner and the derived topic. Raises Failure when it
        failed.
        """
        told = state.get("progress") or {}
        view.state = state.get("state", view.state)
        view.cause = state.get("cause") or ""
        view.rows_in = told.get("rows_in") or view.rows_in
        view.rate = told.get("processed_per_s") or view.rate
        view.lag = None if view.state == "finished" else told.get("lag_records", view.lag)
        view.out = self._outputs[view.name].records if view.name in self._outputs else 0
        if view.state == "failed" or (
            view.state == "failing" and state.get("attempt", 0) >= _MOST_ATTEMPTS
        ):
            raise Failure(f"job {view.name} failed: {view.cause}", state.get("remedy") or "")
        if view.rows_in:
            self._mark("first batch read")

    def _hand_out(self) -> None:
        """Give the runner the jobs whose time has come."""
        left = [job.name for job in self._view.jobs if job.name not in self._given]
        states = {job.name: job for job in self._view.jobs}
        if left and left[0] in THEN:
            # What is seen first is not kept waiting by the rest.
            if all(states[name].out for name in FIRST):
                self._give(*THEN)
        elif (
            left
            and "everything written" in self.marks
            and (left[0] == BATCHES[0] or states[BATCHES[0]].state == "finished")
        ):
            self._give(left[0])

    def _give(self, *names: str) -> None:
        self._jobs.add(*names)
        self._given |= set(names)

    def _check_silence(self, now: float) -> None:
        """Raises Failure when the feed and all jobs have been where they are for too long."""
        jobs = [(job.state, job.rows_in, job.out) for job in self._view.jobs]
        if self._moved != (self._view.loaded, jobs):
            self._moved, self._moved_s = (self._view.loaded, jobs), now
        elif now - self._moved_s > _SILENCE_S:
            problem = f"nothing has moved for {_SILENCE_S:.0f} s ({line(self._view)})"
            hint = f"the runner's log is {self._jobs.log_file}"
            raise Failure(problem, hint, code=UNREACHABLE, name="_TIMED_OUT")

    def _derived(self) -> bool:
        """True if every topic holds the expected figures."""
        if not self._expected:
            return False
        found = self._watch.found
        return all(found[topic].figures == figures for topic, figures in self._expected.items())

    def _all_is_there(self) -> None:
        """The figures say so before the runner's next account of its jobs does."""
        self._view.stage = "everything is derived"
        for job in self._view.jobs:
            job.rows_in = job.whole
            job.lag = None if job.lag is None else 0
            if job.name in self._outputs:
                job.out = self._outputs[job.name].records

    def _compare(self, output: str) -> int:
        found = self._watch.found
        rows: list[Row] = [
            {
                "topic": one.topic,
                "job": one.job,
                "records": found[one.topic].records,
                "figures": len(found[one.topic].figures),
                "flights": found[one.topic].flights,
                "from_csv": flights(one, self._expected[one.topic]),
                "same": found[one.topic].figures == self._expected[one.topic],
            }
            for one in DERIVED
        ]
        emit(rows, output, name="topic")
        if output in ("table", "wide"):
            print_note(_COLUMNS_SAY)
        united = found["carrier-totals"].figures.get(("UA",), (0,))[0]
        total = found["carrier-totals"].flights
        if not all(row["same"] for row in rows):
            print_note("What the jobs derived is not what the CSV files say.")
            return NEGATIVE
        print_note(
            "Every figure is the one that plain Python computes from the CSV files:\n"
            f"UA {united:,} flights, {total:,} in all."
        )
        return OK

    def _mark(self, what: str, at_s: float | None = None) -> None:
        self.marks.setdefault(what, (at_s or time.monotonic()) - self._view.began_s)


def _whole(job: str) -> int:
    """Records that a job reads."""
    return _COUNTS["flights"] + (_COUNTS["weather"] if job == "weather" else 0)
