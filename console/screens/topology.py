"""The topology: a topic, job or group in the middle, who writes it at the left, who reads it at the
right. Arrows walk along."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from console.model.asking.topology import (
    GROUP,
    JOB,
    OUTSIDE,
    TOPIC,
    Edge,
    Part,
    Topology,
    connect_parts,
)
from console.model.jobs.jobs import Status
from console.model.local.clients import Connection
from console.screens.actions import IN_TOPOLOGY, bindings
from console.screens.places import GROUPS, JOBS, RECORDS, TAIL, TOPICS, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import short

_KIND: Final = 5
_WIDE: Final = 40
_PARTS: Final = (
    Column("NAME", 0),
    Column("KIND", _KIND),
    Column("FROM", 4, right=True, from_width=_WIDE),
    Column("TO", 4, right=True, from_width=_WIDE),
)
_SOURCES: Final = (
    Column("COMES FROM", 0),
    Column("KIND", _KIND),
    Column("BEHIND", 6, right=True, from_width=30),
)
_TARGETS: Final = (Column("GOES TO", 0), *_SOURCES[1:])
_NOTHING_YET: Final = "no topic yet: penstock topic create NAME"
_KINDS: Final = {TOPICS: TOPIC, GROUPS: GROUP, JOBS: JOB}
_OF_TOPIC: Final = (RECORDS, TAIL)
_NAMED_MOST: Final = 20


def part_under(focused: Widget | None, here: Place) -> Part | None:
    """The part that a place is about, or that is under the cursor of a list of such."""
    if here.kind in (TOPIC, GROUP, JOB):
        return Part(here.kind, here.name)
    if here.kind in _OF_TOPIC:
        return Part(TOPIC, here.name)
    kind = _KINDS.get(focused.id or "") if isinstance(focused, Rows) else None
    if kind is None or not isinstance(focused, Rows) or focused.key is None:
        return None
    return Part(kind, focused.key)


class TopologyView(View):
    """Three tables. The arrows go from one to the next, and at its end on: the part under the
    cursor comes into the middle. Enter does that too, and in the middle goes into the part."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_TOPOLOGY)
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {
        "sources": "Comes from  {}", "parts": "Topics, jobs, groups  {}", "targets": "Goes to  {}",
        "writers": "Clients that write now",
    }  # fmt: skip
    summary_in: ClassVar[str] = "parts"
    DEFAULT_CSS = """
    TopologyView Horizontal { height: 1fr; }
    TopologyView #sources { width: 3fr; }
    TopologyView #parts { width: 4fr; }
    TopologyView #targets { width: 3fr; }
    TopologyView #writers { height: 1; padding: 0 1; color: $text-muted; }
    TopologyView.large #writers { height: 3; }
    """

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        with Horizontal():
            yield Rows(_SOURCES, name="sources")
            yield Rows(_PARTS, name="parts")
            yield Rows(_TARGETS, name="targets")
        yield Words(name="writers")

    def on_mount(self) -> None:
        """The graph is empty at first."""
        self._seen = Topology()
        self._made_of: tuple[object, ...] = ()
        self._wanted = ""

    def first_table(self) -> Rows:
        """The one in the middle."""
        return self.query_one("#parts", Rows)

    def paint(self) -> None:
        world = self.world
        facts, jobs = world.facts.shown.value, world.jobs.shown.value
        rows = self.first_table()
        if world.main(self.place).shown.value is None:
            for one in self.query(Rows):
                one.show_rows([], lambda key: (key,), empty=self.waiting() if one is rows else "")
            return
        self._look_anew()
        known = jobs.jobs if jobs is not None else {}
        found = {_key(one): one for one in self._seen.parts if self._keeps(one)}
        rows.show_rows(
            list(found), lambda key: self._cells(found[key], known),
            lambda key, n: self._by(found[key], n),
            empty="nothing matches: Esc shows all" if self.filter_text else _NOTHING_YET,
        )  # fmt: skip
        if self._wanted in found:
            rows.select_row(self._wanted)
            self._wanted = ""
        self._around(found.get(rows.key or ""))
        self._writers(facts.clients if facts is not None else ())

    def _look_anew(self) -> None:
        """Works the graph out, unless what it is made of is the same."""
        world = self.world
        facts, jobs = world.facts.shown.value, world.jobs.shown.value
        told, groups = world.topics.shown.value, world.groups.shown.value
        made_of = (facts, jobs, told, groups) if world.is_foreign else (facts, jobs)
        if len(made_of) == len(self._made_of) and all(
            one is other for one, other in zip(made_of, self._made_of, strict=True)
        ):
            return
        self._made_of = made_of
        known = jobs.jobs if jobs is not None else {}
        if facts is not None and not world.is_foreign:
            self._seen = connect_parts(facts.topics, known, facts.lags)
            return
        counts = groups.counts if groups is not None else {}
        lags = {(name, topic): lag for name, one in counts.items() for topic, lag in
                one.reads.items()}  # fmt: skip
        names = [one.name for one in groups.listed] if groups is not None else []
        self._seen = connect_parts(told or (), known, lags, names)

    def _keeps(self, part: Part) -> bool:
        if self.filter_text:
            return keeps(self.filter_text, part.name)
        connected = part in self._seen.sources or part in self._seen.targets
        return connected or not part.name.startswith("__")

    def _cells(self, part: Part, jobs: Mapping[str, Status]) -> tuple[Cell, ...]:
        seen = self._seen
        missing, job = part in seen.missing, jobs.get(part.name)
        sick = part.kind == JOB and job is not None and job.sick
        counts = (len(seen.sources.get(part, ())), len(seen.targets.get(part, ())))
        return (
            (part.name, "bad" if missing else ""), (part.kind, "bad" if sick else "dim"),
            *((str(one), "" if one else "dim") for one in counts),
        )  # fmt: skip

    def _by(self, part: Part, column: int) -> str | int:
        seen = self._seen
        sources, targets = seen.sources.get(part, ()), seen.targets.get(part, ())
        values: tuple[str | int, ...] = (part.name, part.kind, len(sources), len(targets))
        return values[column]

    def _around(self, part: Part | None) -> None:
        """Fills the tables beside the one in the middle, and the line about it."""
        seen = self._seen
        sources = seen.sources.get(part, ()) if part is not None else ()
        targets = seen.targets.get(part, ()) if part is not None else ()
        is_topic = part is not None and part.kind == TOPIC
        none = ("no job writes it", "nobody reads it") if is_topic else ("nothing known",) * 2
        _show_edges(self.query_one("#sources", Rows), sources, none[0])
        _show_edges(self.query_one("#targets", Rows), targets, none[1])
        about = self.query_one("#summary", Words)
        if part is None:
            about.show_parts("")
            return
        behind = [one for one in (*sources, *targets) if one.lag]
        said = f"  from {len(sources)}, to {len(targets)}"
        said += f"; {short(sum(one.lag or 0 for one in behind))} records behind" if behind else ""
        missing = "  is missing" if part in seen.missing else ""
        about.show_parts(f"{part.kind} {part.name}", (missing, "red"), (said, "dim"))

    def _writers(self, clients: tuple[Connection, ...]) -> None:
        """Tells which clients write: which topics they write, nobody counts."""
        names = list(dict.fromkeys(one.client_id or "-" for one in clients if one.produced_s > 0))
        more = f" and {len(names) - _NAMED_MOST} more" if len(names) > _NAMED_MOST else ""
        told = ", ".join(names[:_NAMED_MOST]) + more
        words = self.query_one("#writers", Words)
        if names and self.is_large:
            words.show_parts(told, ("  (into which topics is not recorded)", "dim"))
        elif names:
            words.show_parts(("clients that write now: ", "dim"), told)
        else:
            words.show_parts("no client writes now" if not self.world.is_foreign else "not known")

    # Walking --------------------------------------------------------------------------------------

    def walk_to(self, part: Part) -> None:
        """Brings a part into the middle, as soon as it is known."""
        self._wanted = _key(part)
        if not keeps(self.filter_text, part.name):
            self.filter_text = ""
        self.first_table().focus()
        self.paint()

    def action_walk(self, way: int) -> None:
        """Downstream (1) or upstream (-1): to the table there, from that one on to its part."""
        there = self.query_one("#targets" if way > 0 else "#sources", Rows)
        if there.has_focus and there.key is not None:
            self.walk_to(_part(there.key))
        elif not self.first_table().has_focus:
            self.first_table().focus()
        elif there.count:
            there.focus()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another part is in the middle."""
        event.stop()
        if event.rows is self.first_table():
            self._around(_part(event.key))

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Into what is in the middle; what is beside it comes there."""
        event.stop()
        part = _part(event.key)
        if event.rows is not self.first_table():
            self.walk_to(part)
        elif part.kind == OUTSIDE:
            self.notify(f"{part.name} is not of this cluster", markup=False)
        elif part in self._seen.missing:
            self.notify(f"there is no topic {part.name} here", markup=False)
        else:
            self.post_message(self.Go(Place(part.kind, part.name)))


def _show_edges(rows: Rows, edges: tuple[Edge, ...], empty: str) -> None:
    found = {_key(one.part): one for one in edges}
    rows.show_rows(
        list(found), lambda key: _edge(found[key]), lambda key, n: _edge_by(found[key], n),
        empty=empty,
    )  # fmt: skip


def _key(part: Part) -> str:
    return f"{part.kind} {part.name}"


def _part(key: str) -> Part:
    kind, _, name = key.partition(" ")
    return Part(kind, name)


def _edge(edge: Edge) -> tuple[Cell, ...]:
    lag = edge.lag
    return (
        edge.part.name, (edge.part.kind, "dim"),
        ("" if lag is None else short(lag), "warn" if lag else "good"),
    )  # fmt: skip


def _edge_by(edge: Edge, column: int) -> str | int:
    values: tuple[str | int, ...] = (
        edge.part.name, edge.part.kind, -1 if edge.lag is None else edge.lag,
    )  # fmt: skip
    return values[column]
