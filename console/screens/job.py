"""One job: how it is, why it failed, what its batches spend their time on, and its log."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal

from console.model.jobs.job_watch import JobSeen, age_s
from console.model.jobs.jobs import Status
from console.model.local.tail import Line
from console.screens.actions import ONE_JOB, bindings
from console.screens.chart import Chart
from console.screens.jobs import INKS, STATES, JobActions, about_job, state_of
from console.screens.rows import Column, Rows
from console.screens.view import Part, Words
from console.show.figures import age, in_bytes, meter, short, some, spark

_BAR: Final = 16
_SPARK: Final = 18
_WIDE: Final = 100
_PHASES: Final = {
    "latestOffset": "finds end offsets",
    "getBatch": "reads new records",
    "queryPlanning": "plans the query",
    "walCommit": "writes its offsets",
    "addBatch": "derives and writes",
    "commitBatch": "commits the batch",
    "commitOffsets": "commits the batch",
}
"""Spark's parts of a micro-batch, and what each is."""
LOG, ERROR, SPARK, SQL = "Log", "Last failure", "Spark's own log", "SQL"
_TEXTS: Final = (LOG, ERROR, SPARK, SQL)
_STILL: Final = (ERROR, SQL)
"""Texts that do not grow."""
_DERIVES_UNKNOWN: Final = "its file is on the host of its runner"


class JobView(JobActions):
    """Facts, charts, and a log that is followed while the cursor is on its last line."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ONE_JOB)
    DEFAULT_CSS = """
    JobView #facts { max-height: 8; padding: 0 1; }
    JobView #where { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    JobView #charts { height: 5; }
    JobView.tall #charts { height: 9; margin-top: 1; }
    JobView #phases {
        height: 1fr; width: 3fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    JobView #rates { width: 2fr; }
    JobView #lines { border-top: solid $foreground 20%; min-height: 5; }
    JobView #whole { max-height: 3; padding: 0 1; }
    JobView.large #facts { max-height: 10; }
    JobView.large #where { display: none; }
    JobView.large #whole { padding: 0 2; }
    JobView.large #charts { height: 10; margin: 0; }
    JobView.large #phases { height: 1fr; }
    JobView.wide #lines { width: 3fr; }
    JobView.wide #derives { width: 2fr; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "facts": "Job", "phases": "Last batch", "in": "", "out": "", "lines": LOG,
        "derives": SQL,
    }  # fmt: skip

    def compose(self) -> ComposeResult:
        yield Words(name="facts")
        yield Words(name="where")
        with Horizontal(id="charts"):
            yield Words(name="phases")
            with Horizontal(id="rates"):
                yield Chart("Read", is_bytes=False, name="in")
                yield Chart("Derived", is_bytes=False, name="out")
        with Container(classes="panes"):
            yield Rows((Column("", 0),), name="lines", opens=False)
            yield Rows((Column("", 0),), name="derives", opens=False, classes="beside")
        yield Words(name="whole")

    def on_mount(self) -> None:
        """Its log is shown at first, and followed."""
        self._text = LOG
        self._follows = True
        self._seen_to = 0
        self._lines: dict[str, str] = {}

    def on_resize(self) -> None:
        """Higher charts where there is room."""
        self.set_class(self.size.height >= 32, "tall")

    @property
    def chosen(self) -> str | None:
        """This one."""
        return self.place.name

    def action_tail(self) -> None:
        """To the end of its log, and on with it."""
        self._show(LOG if self._text in _STILL else self._text)

    def action_other(self) -> None:
        """The next of its texts."""
        self._show(_TEXTS[(_TEXTS.index(self._text) + 1) % len(_TEXTS)])

    def _show(self, text: str) -> None:
        self._text, self._follows, self._seen_to = text, text not in _STILL, 0
        self.paint()
        self.query_one(Rows).action_end(self._follows)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Stops following when the cursor moves up; follows again at the end."""
        event.stop()
        if event.rows.id != "lines":
            return
        if self._text not in _STILL:
            self._follows = self.query_one(Rows).key == next(reversed(self._lines), None)
        self._head()

    def paint(self) -> None:
        jobs = self.world.jobs.shown.value
        one = jobs.jobs.get(self.place.name) if jobs is not None else None
        seen = self.world.detail(self.place).shown.value
        assert seen is None or isinstance(seen, JobSeen)
        facts = self.query_one("#facts", Words)
        if jobs is None or one is None:
            facts.show_parts(
                self.waiting() if jobs is None else f"there is no job {self.place.name}"
            )
        else:
            where: list[Part] = [("checkpoint ", "dim"), one.checkpoint or "-"]
            facts.show_parts(*_facts(one, seen), *(["\n", *where] if self.is_large else []))
            self.query_one("#where", Words).show_parts(*where)
            self.query_one("#charts").display = one.batch is not None
            past = jobs.past.get(self.place.name, ())
            self.query_one("#in", Chart).show_values([each.rows_per_s for each in past])
            self.query_one("#out", Chart).show_values([each.rows_out_per_s for each in past])
            batches = spark([each.batch_ms for each in past], _SPARK)
            is_wide = self.size.width >= _WIDE
            self.query_one("#phases", Words).show_parts(*_phases(one, batches, is_wide=is_wide))
        self._log(seen)
        derives = _text(SQL, seen)
        self.query_one("#derives", Rows).show_rows(
            list(derives), lambda key: (derives[key],),
            empty=_DERIVES_UNKNOWN if seen is None else "",
        )  # fmt: skip

    def _log(self, seen: JobSeen | None) -> None:
        rows, problem = self.query_one(Rows), self.world.detail(self.place).shown.failure
        self._lines = found = _text(self._text, seen)
        empty = "it has not failed" if self._text == ERROR else "nothing was written yet"
        if self._text == SQL:
            empty = ""
        if seen is None:
            empty = problem.message if problem is not None else "asking …"
        rows.show_rows(list(found), lambda key: (found[key],), empty=empty)
        if self._follows and found:
            self._seen_to = max(map(int, found))
            if rows.key != next(reversed(found)):
                rows.action_end(True)
        self._head()

    def _head(self) -> None:
        """The head: the shown text, whether it is followed, and the line under the cursor where it
        is too long for its row.
        """
        rows, told = self.query_one(Rows), "following"
        if self._text == ERROR:
            told = "the cause first"
        elif self._text == SQL:
            told = "as its file has it"
        elif not self._follows:
            new = sum(int(key) > self._seen_to for key in self._lines)
            told = f"paused, {new} new: t follows"
        rows.set_title(self._text)
        rows.set_columns((Column(f"{told}   (v: other logs)", 0),))
        line = self._lines.get(rows.key or "", "")
        self.query_one("#whole", Words).show_parts(
            (line if len(line) > rows.size.width else "", "dim")
        )


def _text(which: str, seen: JobSeen | None) -> dict[str, str]:
    """Lines by keys that stay theirs while more come."""
    if seen is None:
        return {}
    if which == ERROR:
        if seen.broke is None:
            return {}
        trace = [seen.broke.cause, *seen.broke.trace.splitlines()]
        return {str(n): line for n, line in enumerate(trace)}
    if which == SQL:
        return {str(n): line for n, line in enumerate(seen.derives.strip().splitlines())}
    lines: tuple[Line, ...] = seen.log if which == LOG else seen.spark_log
    return {str(one.at): one.text for one in lines}


def _facts(one: Status, seen: JobSeen | None) -> list[Part]:
    since = age_s(one.since)
    restarts = f"  {some(one.restarts, 'restart')} after failures" if one.restarts else ""
    parts: list[Part] = [
        (one.job, "bold"), "  ", (state_of(one), INKS[STATES.get(state_of(one), "")]),
        f" for {age(since)}" if since is not None else "",
        f"  {one.kind}" if one.kind else "", restarts, "\n",
    ]  # fmt: skip
    parts += [*about_job(one), f"  {one.delivery}" if one.delivery else "", "\n"]
    if seen is not None and seen.problem:
        parts += [(f"! its file: {seen.problem}\n", "bold red")]
    if seen is not None and seen.broke is not None and not one.cause:
        ago = age(age_s(seen.broke.at_ms))
        parts += [(f"It failed {ago} ago: {seen.broke.cause}\n", "yellow")]
    behind = f", {age(one.lag_s)} behind" if one.lag_s else ""
    parts += [
        ("read ", "dim"), f"{short(one.rows_in)}  ", ("derived ", "dim"), f"{short(one.rows_out)}",
        ("  lag ", "dim"), f"{short(one.lag_records)}{behind}",
        ("  late ", "dim"), short(one.late_rows),
        ("  dead letters ", "dim"), short(one.dead_letters), "\n",
    ]  # fmt: skip
    if one.state_rows:
        size = in_bytes(one.state_bytes)
        rows = "1 row" if one.state_rows == 1 else f"{short(one.state_rows)} rows"
        parts += [("state ", "dim"), f"{rows}, {size}"]
        parts += [("  watermark ", "dim"), f"{one.watermark}"] if one.watermark else []
        parts += ["\n"]
    return parts[:-1]


def _phases(one: Status, batches: str, *, is_wide: bool) -> list[Part]:
    """The parts of the last batch as bars, the longest first, and how long the last ones took."""
    parts: list[Part] = [("Batch ", "bold"), f"{one.batch}  {short(one.batch_ms)} ms  "]
    parts += [(batches, "cyan")]
    told = one.phases_ms if isinstance(one.phases_ms, dict) else {}
    known = {str(name): ms for name, ms in told.items() if isinstance(ms, int | float)}
    whole = max(one.batch_ms or 0, *known.values(), 1) if known else 1
    for name, ms in sorted(known.items(), key=lambda each: -each[1]):
        share = meter(ms / whole, _BAR).rstrip("░")
        parts += ["\n", f"{name[:13]:<13} {short(ms):>5} ", (f"{share:<{_BAR}}", "cyan")]
        parts += [(f" {_PHASES.get(name, '')}", "dim")] if is_wide else []
    return parts
