"""The display of the demo: a moving picture on a terminal, elsewhere a line every few seconds.
Narration goes to stderr. The command says what happened (`View`), this file how it looks.
"""

import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from console.commands.demo import chart
from console.show.output import plain, print_note
from console.streams import painter

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

_FRAMES_PER_S: Final = 4
_LINE_S: Final = 5.0
_BAR: Final = 16
_LINES_AROUND_CHART: Final = 15
_COLOURS: Final = {
    "starting": "yellow", "running": "green", "finished": "bold green", "waiting": "yellow",
    "failing": "red", "failed": "red",
}  # fmt: skip


@dataclass(slots=True)
class JobView:
    """One job as it is shown. rows_in of `whole` records were read, `lag` are left, `rate` per
    second; `out` records were derived; `cause`: why it does not run."""

    name: str
    about: str
    whole: int
    state: str = ""
    rows_in: int = 0
    rate: float = 0.0
    lag: int | None = None
    out: int = 0
    cause: str = ""


@dataclass(slots=True)
class View:
    """Everything that is shown. `delays` are the figures of the topic of that name. `moment`: what
    time it is in a replay."""

    title: str
    whole: int
    began_s: float = field(default_factory=time.monotonic)
    stage: str = ""
    moment: str = ""
    loaded: int = 0
    load_rate: float = 0.0
    jobs: list[JobView] = field(default_factory=list)
    delays: Mapping[tuple[Any, ...], Any] = field(default_factory=dict)


class Screen:
    """Shows a view until it is left. `show` may be called as often as one likes."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._tty = sys.stderr.isatty()
        self._said = 0.0
        self._live: Any = None

    def __enter__(self) -> Self:
        if self._tty:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=painter()), refresh_per_second=_FRAMES_PER_S,
                auto_refresh=True,
                get_renderable=lambda: picture(self._view, shutil.get_terminal_size().lines),
            )  # fmt: skip
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show_progress(self) -> None:
        """Off a terminal: a line, now and then."""
        if not self._tty and time.monotonic() - self._said > _LINE_S:
            self._said = time.monotonic()
            print_note(line(self._view))


def line(view: View) -> str:
    """The view in one line, for a log."""
    parts = [f"{time.monotonic() - view.began_s:5.1f} s  {view.stage}"]
    if view.moment:
        parts.append(f"it is {view.moment}")
    if view.loaded < view.whole:
        parts.append(f"written {view.loaded:,} of {view.whole:,}")
    parts += [f"{job.name} {_share(job)}" for job in view.jobs if job.state]
    return "; ".join(parts)


def picture(view: View, height: int) -> "Group":
    """The view as lines for a terminal of so many."""
    from rich.console import Group
    from rich.text import Text

    elapsed = time.monotonic() - view.began_s
    head = Text.assemble(
        (f"{view.title}  ", "bold"), (f"{elapsed:5.1f} s  ", "dim"), (view.stage, "cyan"),
        (f"  {view.moment}", "bold"),
    )  # fmt: skip
    parts: list[RenderableType] = [head, _bars(view)]
    parts += [
        Text(f"{job.name} is {job.state}: {plain(job.cause)}", "red")
        for job in view.jobs
        if job.cause
    ]
    if view.delays:
        bars = min(max(height - _LINES_AROUND_CHART, 3), 10)
        parts.append(Text("\nMinutes late at departure, by hour of the day in New York", "bold"))
        parts.append(chart.draw(chart.by_hour(view.delays), bars))
    return Group(*parts)


def _bars(view: View) -> "RenderableType":
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    for justify in ("left", "left", "left", "right", "right", "right"):
        grid.add_column(justify=justify, no_wrap=True)
    heads = ("", "", "", "records/s", "lag", "derived")
    grid.add_row(*(Text(head, style="dim") for head in heads))
    bar = ProgressBar(view.whole, view.loaded, width=_BAR)
    grid.add_row("load", "into topics", bar, f"{view.load_rate:,.0f}", "", "")
    for job in view.jobs:
        colour = _COLOURS.get(job.state, "")
        begun = job.rows_in > 0
        done = job.whole if job.state == "finished" else job.rows_in
        grid.add_row(
            Text(plain(job.name), style=colour), Text(plain(job.about), style="dim"),
            ProgressBar(job.whole, done, width=_BAR),
            f"{job.rate:,.0f}" if begun else "",
            "" if job.lag is None else f"{job.lag:,}",
            f"{job.out:,}" if job.out else "",
        )  # fmt: skip
    return grid


def _share(job: JobView) -> str:
    if job.cause:
        return f"is {job.state}: {job.cause}"
    if job.state in ("finished", "failed"):
        return job.state
    return f"{min(job.rows_in / job.whole, 1):.0%}" if job.whole else job.state
