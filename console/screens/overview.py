"""Overview: first what needs attention, then how much goes through, how long answers take, who
works, and how much room there is."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.geometry import Size

from console.model.asking.failure import UNREACHABLE
from console.model.local.attention import BAD, attention
from console.model.local.history import Series
from console.model.local.local import Facts
from console.model.local.remembered import Remembered
from console.model.local.stats import ApiRate, ProcessRate
from console.model.storage.disk import LogFolder
from console.model.storage.forecast import SOON_S, Forecast
from console.screens import jobs as jobs_view
from console.screens.actions import PAST, bindings
from console.screens.busiest import (
    GROUPS_COLUMNS,
    JOBS_COLUMNS,
    TOPICS_COLUMNS,
    show_groups,
    show_jobs,
    show_topics,
)
from console.screens.chart import Chart
from console.screens.chart_view import ChartView
from console.screens.clients import software, throttled
from console.screens.places import (
    CLIENTS,
    GROUP,
    GROUPS,
    JOB,
    JOBS,
    LISTS,
    TOPIC,
    TOPICS,
    Place,
    key_of,
)
from console.screens.rows import Cell, Column, Rows
from console.screens.sources import Source
from console.screens.view import Part, Words
from console.screens.world import World
from console.show.figures import age, buckets, in_bytes, meter, right_edge, short, some
from console.show.figures import spark as _spark
from console.show.leads import full

_ATTENTION_MOST: Final = 4
_KINDS_MOST: Final = 3
_NAME_MOST: Final = 40
_SPARK: Final = 12
_SPANS: Final = (600.0, 3600.0, 86_400.0, 60.0)
"""Seconds that the charts tell of, one after the other."""
_CHARTS: Final = {"in": "bytes_in", "out": "bytes_out", "requests": "requests"}
_NOT_OF_OTHERS: Final = (
    "so there are no rates, latencies, processes, clients and forecasts of it here"
)
_METER: Final = 16
_DISK: Final = ("Disk ", "bold")
_APIS: Final = (
    Column("API", 0),
    Column("REQ/S", 6, right=True),
    Column("P50 MS", 6, right=True),
    Column("P99 MS", 6, right=True),
    Column("MAX MS", 6, right=True, from_width=60),
    Column("IN/S", 8, right=True, from_width=60),
    Column("OUT/S", 8, right=True, from_width=60),
    Column("P99 PAST", _SPARK, from_width=76),
    Column("ERRORS", 28, from_width=104),
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


_FRAMES: Final = {
    **dict.fromkeys(_CHARTS, ""),  # whose titles are their own
    "attention": "Attention",
    "disks": "Disk",
    "clients": f"Clients → {key_of(CLIENTS)}",
    "topics": f"Busiest topics → {key_of(TOPICS)}",
    "groups": f"Groups by lag → {key_of(GROUPS)}",
    "joblist": f"Jobs → {key_of(JOBS)}",
    "apis": "Requests by API",
    "processes": "Processes",
}
_LEADS_TO: Final = {"topics": TOPIC, "groups": GROUP, "joblist": JOB}


class OverviewView(ChartView):
    """The first thing that is seen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(PAST)
    frames: ClassVar[Mapping[str, str]] = _FRAMES
    frames_from: ClassVar[Size] = Size(110, 32)
    DEFAULT_CSS = """
    OverviewView #attention { max-height: 6; padding: 0 1; }
    OverviewView #charts { height: 5; margin-top: 1; }
    OverviewView.tall #charts { height: 12; }
    OverviewView #about { height: auto; margin-top: 1; }
    OverviewView #disks { padding: 0 1; max-height: 5; }
    OverviewView #jobs { padding: 0 1; max-height: 2; }
    OverviewView #clients { padding: 0 1; max-height: 3; }
    OverviewView.foreign #clients { display: none; }
    OverviewView #busiest { display: none; height: 1fr; }
    OverviewView #tables { height: 1fr; margin-top: 1; }
    OverviewView #apis { width: 1fr; }
    OverviewView #processes { width: 38; }
    OverviewView.large #apis { width: 5fr; }
    OverviewView.large #processes { width: 4fr; }
    OverviewView #brokers { display: none; margin: 1 0; }
    OverviewView.foreign #charts, OverviewView.foreign #tables { display: none; }
    OverviewView.foreign #brokers { display: block; }

    OverviewView.large #attention { max-height: 8; }
    OverviewView.large #charts { height: 2fr; min-height: 8; max-height: 14; margin: 0; }
    OverviewView.large #about { layout: horizontal; height: 5; margin: 0; }
    OverviewView.large #about Words { height: 5; max-height: 5; width: 1fr; }
    OverviewView.large #busiest { display: block; height: 2fr; }
    OverviewView.large #topics { width: 5fr; }
    OverviewView.large #groups, OverviewView.large #joblist { width: 4fr; }
    OverviewView.large #tables { height: 2fr; margin: 0; }
    OverviewView.large.foreign #busiest { display: none; }
    """

    def __init__(self, place: Place, world: World) -> None:
        super().__init__(place, world)
        self._span = 0  # which of _SPANS

    def compose(self) -> ComposeResult:
        yield Words(name="attention")
        with Horizontal(id="charts"):
            yield Chart("Written", is_bytes=True, name="in")
            yield Chart("Read", is_bytes=True, name="out", ink="green")
            yield Chart("Requests", is_bytes=False, name="requests", ink="blue")
        with Container(id="about"):
            yield Words(name="disks")
            yield Words(name="clients")
            yield Words(name="jobs")
        with Horizontal(id="busiest"):
            yield Rows(TOPICS_COLUMNS, name="topics")
            yield Rows(GROUPS_COLUMNS, name="groups")
            yield Rows(JOBS_COLUMNS, name="joblist")
        with Horizontal(id="tables"):
            yield Rows(_APIS, name="apis", opens=False)
            yield Rows(_PROCESSES, name="processes", opens=False)
        yield Rows(_BROKERS, name="brokers", opens=False)

    def on_mount(self) -> None:
        """Only a large window has room for the tables that lead on."""
        for name in _LEADS_TO:
            self.query_one(f"#{name}").display = False

    def on_resize(self) -> None:
        """Higher charts where there is room; more tables where there is much."""
        self.set_class(self.size.height >= 32, "tall")

    def _set_large(self, large: bool) -> None:
        if large == self.is_large:
            return
        super()._set_large(large)
        tables = [self.query_one(f"#{name}", Rows) for name in _LEADS_TO]
        for table in tables:
            table.display = large
        if large:  # a table that has just been asked to take the keys has them after the refresh
            self.call_after_refresh(self._focus_topics)

    def _focus_topics(self) -> None:
        """The keys go to the first of the tables that lead on, unless to something else by now."""
        if self.display and self.is_large and isinstance(self.app.focused, Rows):
            self.query_one("#topics", Rows).focus()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Into the topic, group or job."""
        event.stop()
        self.post_message(self.Go(Place(_LEADS_TO[str(event.rows.id)], event.key)))

    def paint(self) -> None:
        facts = None if self.world.is_foreign else self.world.facts.shown.value
        self.set_class(self.world.is_foreign, "foreign")
        self._brokers()
        self._attention(facts)
        self._charts()
        self._disks()
        self._clients(facts)
        self._jobs()
        if self.is_large:
            risks = self.world.risks.shown.value or ()
            show_topics(self.query_one("#topics", Rows), facts)
            show_groups(
                self.query_one("#groups", Rows), facts, frozenset(one.group for one in risks)
            )
            show_jobs(self.query_one("#joblist", Rows), self.world.jobs.shown.value)
        self._apis(facts)
        self._processes(facts)

    @property
    def _past(self) -> Remembered | None:
        return None if self.world.is_foreign else self.world.past.shown.value

    def action_wider(self) -> None:
        """Charts of a longer time, and after the longest one of the shortest."""
        self._span = (self._span + 1) % len(_SPANS)
        self.paint()

    def _charts(self) -> None:
        past, span_s = self._past, _SPANS[self._span]
        for name, field in _CHARTS.items():
            series = past.rates(field, span_s) if past is not None else Series()
            until_s = past.at_s if past is not None else 0.0
            self.query_one(f"#{name}", Chart).over(series, until_s, span_s)

    def _attention(self, facts: Facts | None) -> None:
        world = self.world
        lost, cluster = world.cluster.shown.failure, world.cluster.shown.value
        folders, seen = world.folders.shown.value or [], world.topics.shown.value or {}
        words = self.query_one("#attention", Words)
        if cluster is None and lost is None:
            words.show_parts(f"asking {world.link.bootstrap} …")
            return
        jobs, risks, past = world.jobs.shown.value, world.risks.shown.value or (), self._past
        sick = jobs.sick if jobs is not None else ()
        forecasts = past.forecasts if past is not None else {}
        found = attention(
            lost, facts, folders, seen, risks, sick, forecasts, world.open_transactions,
            world.nodes.shown.value,
        )  # fmt: skip
        if not found and self._is_asked:
            words.show_parts(f"asking {world.link.bootstrap} …")
            return
        if not found:
            words.show_parts(("✓ Nothing needs attention", "green"), self._since(facts))
            return
        parts: list[list[Part]] = []
        for one in found[:_ATTENTION_MOST]:
            style = "bold red" if one.level == BAD else "yellow"
            key = f"{key_of(one.place)}: " if one.place in LISTS else ""
            remedy = f"  → {key}{one.remedy}" if one.remedy else ""
            parts.append([(f"! {one.what}", style), remedy])
        if found[_ATTENTION_MOST:]:
            parts.append([f"and {len(found) - _ATTENTION_MOST} more"])
        if cluster is None and lost is not None and lost.code == UNREACHABLE:
            parts.append(["It is shown here as soon as it answers."])
        words.show_parts(*_lines(parts))

    @property
    def _is_asked(self) -> bool:
        """Something that may need attention has not been told yet."""
        world = self.world
        awaited: list[Source[Any]] = [world.cluster, world.facts, world.folders]
        awaited += [world.topics] if world.is_foreign else []
        return any(one.shown.value is None and one.shown.failure is None for one in awaited)

    def _since(self, facts: Facts | None) -> str:
        cluster = self.world.cluster.shown.value
        assert cluster is not None
        if facts is None:
            count = some(len(self.world.topics.shown.value or ()), "topic")
            return f"  {some(len(cluster.brokers), 'broker')}, {count}, cluster {cluster.id}"
        partitions = sum(one.partitions for one in facts.topics.values())
        up = age(time.time() - facts.started_ms / 1000)
        topics = some(len(facts.topics), "topic")
        seen = self.world.nodes.shown.value
        nodes = f"{some(len(seen.nodes.all), 'node')}, " if seen and seen.several else ""
        return f"  {nodes}{topics}, {some(partitions, 'partition')}, up for {up}"

    def _disks(self) -> None:
        words, past = self.query_one("#disks", Words), self._past
        parts: list[list[Part]] = []
        if self.world.is_foreign:
            failure = self.world.facts.shown.failure
            assert failure is not None
            parts.append([(f"{failure.message}: {failure.hint}", "dim")])
            parts.append([(_NOT_OF_OTHERS, "dim")])
        forecasts = past.forecasts if past is not None else {}
        for number, one in enumerate(self.world.folders.shown.value or []):
            told = _disk(one, forecasts.get(number), self.world.is_foreign)
            parts.append(told[1:] if words.has_class("framed") and told[0] == _DISK else told)
        words.show_parts(*_lines(parts))

    def _clients(self, facts: Facts | None) -> None:
        words = self.query_one("#clients", Words)
        if facts is None:
            words.show_parts("")
            return
        every = facts.clients
        framed = words.has_class("framed")
        parts: list[Part] = [] if framed else [("Clients ", "bold")]
        parts.append(some(len(every) + facts.clients_left_out, "connection"))
        count = Counter(software(one) for one in every)
        fast: Counter[str] = Counter()
        for one in every:
            fast[software(one)] += round(one.in_s + one.out_s)
        for name, number in count.most_common(_KINDS_MOST):
            parts.append(f"  {name} ×{number} {in_bytes(fast[name])}/s")
        if count and not framed:
            parts.append((f"  → {key_of(CLIENTS)}", "dim"))
        waiting = sorted(
            (one for one in every if one.throttled_by), key=lambda one: -one.throttled_ms
        )
        if waiting:
            first = waiting[0]
            who = first.client_id[:_NAME_MOST]
            told = (f"! {len(waiting)} throttled: {who} {throttled(first)}", "yellow")
            parts = [told, "\n", *parts] if framed else [*parts, "\n", told]
        words.show_parts(*parts)

    def _jobs(self) -> None:
        seen = self.world.jobs.shown.value
        words = self.query_one("#jobs", Words)
        words.display = bool(seen and seen.jobs) and not self.is_large
        if seen is not None and seen.jobs:
            words.show_parts(("Jobs ", "bold"), *jobs_view.summarise_jobs(seen, len(seen.jobs)))

    def _brokers(self) -> None:
        cluster = self.world.cluster.shown.value
        found = {str(key): where for key, where in cluster.brokers.items()} if cluster else {}
        leads = str(cluster.controller) if cluster else ""
        self.query_one("#brokers", Rows).show_rows(
            list(found), lambda key: (key, found[key], "controller" if key == leads else "")
        )

    def _apis(self, facts: Facts | None) -> None:
        found = {one.api: one for one in facts.apis} if facts is not None else {}
        past, span_s = self._past, _SPANS[self._span]

        def spark(api: str) -> str:
            if past is None:
                return ""
            series = past.p99(api, span_s)
            times, values = series.times, series.values
            until_s = right_edge(past.at_s, times[-1] if times else 0.0, span_s, _SPARK)
            return _spark(buckets(times, values, until_s, span_s, _SPARK), _SPARK)

        self.query_one("#apis", Rows).show_rows(
            list(found),
            lambda key: _api(found[key], spark(key)),
            lambda key, n: _api_by(found[key], n),
            empty="no request in the last ten seconds" if facts is not None else "",
        )  # fmt: skip

    def _processes(self, facts: Facts | None) -> None:
        found = {one.process: one for one in facts.processes} if facts is not None else {}
        self.query_one("#processes", Rows).show_rows(
            list(found),
            lambda key: _process(found[key]),
            lambda key, n: _process_by(found[key], n),
        )


def _lines(lines: list[list[Part]]) -> list[Part]:
    """One below the other."""
    return [part for n, line in enumerate(lines) for part in (["\n"] if n else []) + line]


def _disk(one: LogFolder, forecast: Forecast | None, is_foreign: bool) -> list[Part]:
    if one.problem:
        return [(f"{one.path} is offline: {one.problem}", "bold red")]
    if one.total_bytes <= 0:
        return [one.path]
    used = 1 - one.free_bytes / one.total_bytes
    style = "red" if used > 0.98 else "yellow" if used > 0.9 else "green"
    free = f" {used:4.0%} used, {in_bytes(one.free_bytes)} free"
    leads = "" if is_foreign else f", {full(forecast)}"
    soon = forecast is not None and forecast.full_s is not None and forecast.full_s < SOON_S
    return [
        _DISK, (meter(used, _METER), style), free, (leads, "yellow" if soon else ""),
        (f"  {one.path}", "dim"),
    ]  # fmt: skip


def _api(one: ApiRate, spark: str) -> tuple[Cell, ...]:
    errors = ", ".join(f"{name} {count}" for name, count in one.errors.items())
    return (
        one.api, short(one.requests_s), short(one.p50_ms), short(one.p99_ms), short(one.max_ms),
        in_bytes(one.in_mb_s * 1e6), in_bytes(one.out_mb_s * 1e6), (spark, "chart"),
        (errors, "warn"),
    )  # fmt: skip


def _api_by(one: ApiRate, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        one.api, one.requests_s, one.p50_ms, one.p99_ms, one.max_ms, one.in_mb_s, one.out_mb_s,
        one.p99_ms, sum(one.errors.values()),
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
