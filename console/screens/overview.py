"""Overview: first what needs attention, then how much goes through, how long answers take, who
works, and how much room there is."""

import time
from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from console.model.attention import BAD, attention
from console.model.disk import LogFolder
from console.model.failure import UNREACHABLE
from console.model.local import Facts
from console.model.stats import ApiRate, ProcessRate
from console.screens import jobs as jobs_view
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, View, Words
from console.show.figures import age, bars, in_bytes, meter, short, some

_ATTENTION_MOST: Final = 4
_METER: Final = 16
_APIS: Final = (
    Column("API", 0),
    Column("REQ/S", 6, right=True),
    Column("P50 MS", 6, right=True),
    Column("P99 MS", 6, right=True),
    Column("MAX MS", 6, right=True, from_width=60),
    Column("IN/S", 8, right=True, from_width=60),
    Column("OUT/S", 8, right=True, from_width=60),
    Column("ERRORS", 28, from_width=88),
)
_PROCESSES: Final = (
    Column("PROCESS", 0),
    Column("STATE", 8),
    Column("CPU %", 5, right=True),
    Column("MEM", 7, right=True),
    Column("LONGEST", 9, right=True, from_width=50),
    Column("TURNS/S", 8, right=True, from_width=60),
    Column("PID", 8, right=True, from_width=60),
)


_BROKERS: Final = (
    Column("BROKER", 11, right=True),
    Column("ADDRESS", 0),
    Column("", 10),
)


class Chart(Widget):
    """The last values as bars, the newest at the right, with the newest and the greatest of them in
    words."""

    DEFAULT_CSS = """
    Chart { height: 1fr; width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, title: str, *, is_bytes: bool, name: str) -> None:
        super().__init__(id=name)
        self._title = title
        self._is_bytes = is_bytes
        self._values: Sequence[float] = ()

    def show(self, values: Sequence[float]) -> None:
        """The oldest first; bytes per second or a count per second."""
        self._values = values
        self.refresh()

    def render(self) -> Text:
        """The title and as many lines of bars as there is room for."""
        width, height = self.size
        told = in_bytes if self._is_bytes else short
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{self._title} ", "bold")
        if not self._values:
            text.append("-", "dim")
            return text
        text.append(f"{told(self._values[-1])}/s")
        shown = self._values[-width:]
        text.append(f"  ↑{told(max(shown))}/s", "dim")
        for line in bars(shown, width, height - 1):
            text.append(f"\n{line}", "cyan")
        return text


class OverviewView(View):
    """The first thing that is seen."""

    DEFAULT_CSS = """
    OverviewView #attention { max-height: 6; padding: 0 1; }
    OverviewView #charts { height: 5; margin-top: 1; }
    OverviewView.tall #charts { height: 12; }
    OverviewView #disks { padding: 0 1; margin-top: 1; max-height: 5; }
    OverviewView #jobs { padding: 0 1; max-height: 2; }
    OverviewView #tables { height: 1fr; margin-top: 1; }
    OverviewView #apis { width: 5fr; margin: 0 1; }
    OverviewView #processes { width: 4fr; margin-right: 1; }
    OverviewView #brokers { display: none; margin: 1; }
    OverviewView.foreign #charts, OverviewView.foreign #tables { display: none; }
    OverviewView.foreign #brokers { display: block; }
    """

    def compose(self) -> ComposeResult:
        yield Words(name="attention")
        with Horizontal(id="charts"):
            yield Chart("Written", is_bytes=True, name="in")
            yield Chart("Read", is_bytes=True, name="out")
            yield Chart("Requests", is_bytes=False, name="requests")
        yield Words(name="disks")
        yield Words(name="jobs")
        with Horizontal(id="tables"):
            yield Rows(_APIS, name="apis", opens=False)
            yield Rows(_PROCESSES, name="processes", opens=False)
        yield Rows(_BROKERS, name="brokers", opens=False)

    def on_resize(self) -> None:
        """Higher charts where there is room."""
        self.set_class(self.size.height >= 32, "tall")

    def paint(self) -> None:
        facts = None if self.world.is_foreign else self.world.facts.shown.value
        self.set_class(self.world.is_foreign, "foreign")
        self._brokers()
        self._attention(facts)
        history = facts.history if facts is not None else ()
        self.query_one("#in", Chart).show([one.in_mb_s * 1e6 for one in history])
        self.query_one("#out", Chart).show([one.out_mb_s * 1e6 for one in history])
        self.query_one("#requests", Chart).show([one.requests_s for one in history])
        self._disks(facts)
        self._jobs()
        self._apis(facts)
        self._processes(facts)

    def _attention(self, facts: Facts | None) -> None:
        world = self.world
        lost, cluster = world.cluster.shown.failure, world.cluster.shown.value
        folders, seen = world.folders.shown.value or [], world.topics.shown.value or {}
        words = self.query_one("#attention", Words)
        if cluster is None and lost is None:
            words.say(f"asking {world.link.bootstrap} …")
            return
        jobs = world.jobs.shown.value
        sick = jobs.sick if jobs is not None else ()
        found = attention(lost, facts, folders, seen, world.risks.shown.value or (), sick)
        if not found:
            words.say(("✓ Nothing needs attention", "green"), self._since(facts))
            return
        parts: list[list[Part]] = []
        for one in found[:_ATTENTION_MOST]:
            style = "bold red" if one.level == BAD else "yellow"
            remedy = f"  → {one.remedy}" if one.remedy else ""
            parts.append([(f"! {one.what}", style), remedy])
        if found[_ATTENTION_MOST:]:
            parts.append([f"and {len(found) - _ATTENTION_MOST} more"])
        if cluster is None and lost is not None and lost.code == UNREACHABLE:
            parts.append(["It is shown here as soon as it answers."])
        words.say(*_lines(parts))

    def _since(self, facts: Facts | None) -> str:
        cluster = self.world.cluster.shown.value
        assert cluster is not None
        if facts is None:
            count = some(len(self.world.topics.shown.value or ()), "topic")
            return f"  {some(len(cluster.brokers), 'broker')}, {count}, cluster {cluster.id}"
        partitions = sum(one.partitions for one in facts.topics.values())
        up = age(time.time() - facts.started_ms / 1000)
        topics = some(len(facts.topics), "topic")
        return f"  {topics}, {some(partitions, 'partition')}, up for {up}"

    def _disks(self, facts: Facts | None) -> None:
        words = self.query_one("#disks", Words)
        parts: list[list[Part]] = []
        if self.world.is_foreign:
            failure = self.world.facts.shown.failure
            assert failure is not None
            parts.append([(f"{failure.message}: {failure.hint}", "dim")])
        parts += [_disk(one) for one in self.world.folders.shown.value or []]
        words.say(*_lines(parts))

    def _jobs(self) -> None:
        seen = self.world.jobs.shown.value
        words = self.query_one("#jobs", Words)
        words.display = bool(seen and seen.jobs)
        if seen is not None and seen.jobs:
            words.say(("Jobs ", "bold"), *jobs_view.told(seen, len(seen.jobs)))

    def _brokers(self) -> None:
        cluster = self.world.cluster.shown.value
        found = {str(key): where for key, where in cluster.brokers.items()} if cluster else {}
        leads = str(cluster.controller) if cluster else ""
        self.query_one("#brokers", Rows).show(
            list(found), lambda key: (key, found[key], "controller" if key == leads else "")
        )

    def _apis(self, facts: Facts | None) -> None:
        found = {one.api: one for one in facts.apis} if facts is not None else {}
        self.query_one("#apis", Rows).show(
            list(found), lambda key: _api(found[key]), lambda key, n: _api_by(found[key], n),
            empty="nobody asked anything in ten seconds" if facts is not None else "",
        )  # fmt: skip

    def _processes(self, facts: Facts | None) -> None:
        found = {one.process: one for one in facts.processes} if facts is not None else {}
        self.query_one("#processes", Rows).show(
            list(found),
            lambda key: _process(found[key]),
            lambda key, n: _process_by(found[key], n),
        )


def _lines(lines: list[list[Part]]) -> list[Part]:
    """One below the other."""
    return [part for n, line in enumerate(lines) for part in (["\n"] if n else []) + line]


def _disk(one: LogFolder) -> list[Part]:
    if one.problem:
        return [(f"{one.path} is offline: {one.problem}", "bold red")]
    if one.total_bytes <= 0:
        return [one.path]
    used = 1 - one.free_bytes / one.total_bytes
    style = "red" if used > 0.98 else "yellow" if used > 0.9 else "green"
    free = f" {used:4.0%} used, {in_bytes(one.free_bytes)} free  "
    return [("Disk ", "bold"), (meter(used, _METER), style), free, (one.path, "dim")]


def _api(one: ApiRate) -> tuple[Cell, ...]:
    errors = ", ".join(f"{name} {count}" for name, count in one.errors.items())
    return (
        one.api, short(one.requests_s), short(one.p50_ms), short(one.p99_ms), short(one.max_ms),
        in_bytes(one.in_mb_s * 1e6), in_bytes(one.out_mb_s * 1e6), (errors, "warn"),
    )  # fmt: skip


def _api_by(one: ApiRate, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        one.api, one.requests_s, one.p50_ms, one.p99_ms, one.max_ms, one.in_mb_s, one.out_mb_s,
        sum(one.errors.values()),
    )  # fmt: skip
    return values[column]


def _process(one: ProcessRate) -> tuple[Cell, ...]:
    return (
        one.process, (one.state, "good" if one.state == "ready" else "bad"),
        short(one.cpu_percent), in_bytes(one.memory_mb * 1e6), f"{short(one.longest_turn_ms)} ms",
        short(one.turns_s), str(one.pid),
    )  # fmt: skip


def _process_by(one: ProcessRate, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        one.process, one.state, one.cpu_percent, one.memory_mb, one.longest_turn_ms, one.turns_s,
        one.pid,
    )  # fmt: skip
    return values[column]
