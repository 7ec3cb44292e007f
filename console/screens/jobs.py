"""Jobs: every derived stream with its state, what goes in and out, how far it is behind, and what
is wrong with it."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from console.model.asking.change import Proposal
from console.model.jobs import job_changes
from console.model.jobs.job_watch import Jobs, Sample
from console.model.jobs.jobs import ENDED, Status
from console.screens.actions import A_JOB, bindings
from console.screens.places import JOB, PREVIEW, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, View, Words
from console.show.figures import age, short, some, spark
from spark_local.folder import RUNNING

_SPARK: Final = 12
_WIDE: Final = 110
_LATE: Final = (
    "{} of {} rows came later than the watermark and were left out: a longer `watermark` of the"
    " source takes them"
)
_MOST: Final = 500
"""Characters of a sentence; a runner's are shorter."""
_COLUMNS: Final = (
    Column("JOB", 0),
    Column("STATE", 10),
    Column("IN/S", 6, right=True),
    Column("IN PAST", _SPARK, from_width=_WIDE),
    Column("OUT/S", 6, right=True),
    Column("OUT PAST", _SPARK, from_width=_WIDE),
    Column("LAG", 6, right=True),
    Column("BEHIND", 10, right=True),
    Column("BATCH MS", 8, right=True),
    Column("RESTARTS", 8, right=True, from_width=90),
)
STATES: Final = {
    "running": "good", "starting": "warn", "waiting": "warn", "stopping": "warn",
    "failing": "bad", "failed": "bad", "down": "bad", "finished": "dim", "stopped": "dim",
}  # fmt: skip
NEVER_RAN: Final = "never ran"
INKS: Final = {"good": "green", "warn": "yellow", "bad": "bold red", "dim": "dim", "": ""}
NONE_YET: Final = "no job yet: penstock job add FILE makes one (docs/jobs.md)"


class JobActions(View):
    """The actions on one job, in the list and at its own place."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(A_JOB)

    @property
    def chosen(self) -> str | None:
        """The job that is meant: the one under the cursor, None when there is none."""
        return self.query_one(Rows).key

    def action_job_preview(self) -> None:
        """Opens the preview of the job."""
        if self.chosen is not None:
            self.post_message(self.Go(Place(PREVIEW, self.chosen)))

    def action_job_switch(self) -> None:
        """Stop it when it should run, else start it."""
        jobs = self.world.jobs.shown.value
        one = jobs.jobs.get(self.chosen or "") if jobs is not None else None
        if one is not None:
            runs = one.wanted == RUNNING and one.state not in ENDED
            self._propose(job_changes.stop if runs else job_changes.propose_start)

    def action_job_restart(self) -> None:
        """Stop and start."""
        self._propose(job_changes.restart)

    def action_job_reset(self) -> None:
        """Let it forget how far it came."""
        self._propose(job_changes.reset)

    def action_job_remove(self) -> None:
        """Delete it."""
        self._propose(job_changes.remove)

    def _propose(self, change: Callable[[str, str], Proposal]) -> None:
        folder = self.world.jobs_folder
        if self.chosen is None:
            return
        if folder:
            self.propose(change(folder, self.chosen))
        else:
            self.notify("jobs of another host are changed there", severity="error", markup=False)


class JobsView(JobActions):
    """The list. Enter goes into a job."""

    DEFAULT_CSS = """
    JobsView #about { height: 4; padding: 0 1; }
    JobsView.large #about { height: 6; }
    JobsView.wide #jobs { width: 5fr; }
    JobsView.wide #about { width: 3fr; height: 1fr; }
    """
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"jobs": "Jobs  {}", "about": "This job"}
    summary_in: ClassVar[str] = "jobs"

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        with Container(classes="panes"):
            yield Rows(_COLUMNS, name="jobs")
            yield Words(name="about")

    def paint(self) -> None:
        seen = self.world.jobs.shown.value
        rows, about = self.query_one(Rows), self.query_one("#about", Words)
        if seen is None:
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            about.show_parts("")
            return
        typed = self.filter_text
        found = {one: seen.jobs[one] for one in worst_first(seen.jobs) if keeps(typed, one)}
        self.query_one("#summary", Words).show_parts(*summarise_jobs(seen, len(found), typed))
        empty = "no job matches" if seen.jobs else NONE_YET
        rows.show_rows(
            list(found),
            lambda key: _cells(found[key], seen.past.get(key, ())),
            lambda key, n: _by(found[key], n),
            empty=empty,
        )
        one = found.get(rows.key or "")
        about.show_parts(*(about_job(one) if one is not None else ("",)))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another job is under the cursor."""
        event.stop()
        self.paint()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Into the job."""
        event.stop()
        self.post_message(self.Go(Place(JOB, event.key)))


def summarise_jobs(seen: Jobs, shown: int, typed: str = "") -> list[Part]:
    """All jobs in one line: how many are how, and whether a runner works."""
    said = some(len(seen.jobs), "job")
    if typed:
        said = f"{shown} of {some(len(seen.jobs), 'job')}: /{typed}  (Esc shows all)"
    parts: list[Part] = [said]
    for state, count in count_states(seen.jobs.values()):
        parts += [", ", (f"{count} {state}", INKS[STATES.get(state, "dim")])]
    if not seen.folder and seen.jobs:
        parts.append(("; states come from their topic; change jobs on their own host", "dim"))
    elif seen.runner is None and seen.jobs:
        command = f"penstock job serve --jobs {seen.folder}"
        parts += [("; no runner is running: ", "yellow"), f"{command} starts one"]
    return parts


def worst_first(jobs: Mapping[str, Status]) -> list[str]:
    """Names of jobs: those that should run and do not, then by the power of ten of their lag, so
    that a row stays where it is while its lag moves a little."""
    return sorted(jobs, key=lambda name: (not jobs[name].sick, -_power(jobs[name]), name))


def _power(one: Status) -> int:
    return len(str(one.lag_records)) if one.lag_records and one.lag_records > 0 else 0


def count_states(jobs: Iterable[Status]) -> list[tuple[str, int]]:
    """The states of jobs with the number of jobs in each, the most frequent first."""
    return Counter(map(state_of, jobs)).most_common()


def about_job(one: Status) -> list[Part]:
    """The inputs and outputs of a job, after its failure, the cause first."""
    parts: list[Part] = []
    if one.cause:
        parts += [(f"! {one.cause[:_MOST]}\n", INKS["bad" if one.sick else "warn"])]
        parts += [f"→ {one.remedy[:_MOST]}\n"] if one.remedy else []
    elif one.note:
        parts += [(f"{one.note[:_MOST]}\n", "yellow")]
    if one.drops_all:
        parts += [(f"! {_LATE}\n".format(short(one.late_rows), short(one.rows_in)), "yellow")]
    reads = ", ".join(map(str, one.reads)) if isinstance(one.reads, list) else "-"
    parts += [("reads ", "dim"), reads[:_MOST]]
    parts += [(" writes ", "dim"), str(one.writes or "-")[:_MOST]]
    if isinstance(one.next_attempt, int) and one.state in ("waiting", "failing"):
        wait = one.next_attempt / 1000 - time.time()
        parts += [(f"  tried again in {age(max(0.0, wait))}", "yellow")]
    return parts


def state_of(one: Status) -> str:
    """One of those that there are: the topic of states may hold anything."""
    return NEVER_RAN if not one.state else one.state if one.state in STATES else "unknown"


def _cells(one: Status, past: tuple[Sample, ...]) -> tuple[Cell, ...]:
    return (
        one.job,
        (state_of(one), STATES.get(state_of(one), "dim")),
        short(one.rows_per_s),
        (spark([each.rows_per_s for each in past], _SPARK), "chart"),
        short(one.rows_out_per_s),
        (spark([each.rows_out_per_s for each in past], _SPARK), "chart"),
        (short(one.lag_records), "warn") if one.lag_records else short(one.lag_records),
        age(one.lag_s),
        short(one.batch_ms),
        (short(one.restarts), "warn") if one.restarts else short(one.restarts),
    )


def _by(one: Status, column: int) -> str | float:
    if column < 2:
        return (one.job, one.state or "")[column]
    values = (
        one.rows_per_s, one.rows_per_s, one.rows_out_per_s, one.rows_out_per_s, one.lag_records,
        one.lag_s, one.batch_ms, one.restarts,
    )  # fmt: skip
    value = values[column - 2]
    return -1.0 if value is None else value
