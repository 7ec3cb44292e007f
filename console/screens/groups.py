"""Groups: every consumer group with its state, its members, how far it is behind and where that
leads."""

import time
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from console.model.groups import group_changes
from console.model.groups.group_watch import MOST_COUNTED, GroupCount
from console.model.groups.groups import Listed
from console.model.groups.trend import columns, trend
from console.screens.actions import ALL_GROUPS, bindings
from console.screens.beside import POSITIONS, show_positions
from console.screens.places import GROUP, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import NOT_KNOWN, age, right_edge, short, some, spark
from console.show.leads import leads

_COLUMNS: Final = (
    Column("GROUP", 0),
    Column("STATE", 11),
    Column("PROTOCOL", 8, from_width=70),
    Column("MEMBERS", 7, right=True),
    Column("TOPICS", 6, right=True, from_width=100),
    Column("LAG", 7, right=True),
    Column("BEHIND", 9, right=True, from_width=70),
    Column("LAG OVER TIME", 16, from_width=120),
    Column("LEADS TO", 28, from_width=120),
)
_NONE_YET: Final = "no group has committed here yet: penstock consume TOPIC -g GROUP makes one"
_SPARK: Final = 16
_SPARK_S: Final = 240.0
_STATES: Final = {"stable": "good", "empty": "dim", "dead": "dim"}


class GroupsView(View):
    """The list. Enter goes into a group."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_GROUPS)
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"groups": "Groups  {}", "beside": ""}
    has_below: ClassVar[bool] = True
    summary_in: ClassVar[str] = "groups"
    DEFAULT_CSS = """
    GroupsView.wide #groups { width: 5fr; }
    GroupsView.wide #beside { width: 3fr; }
    """

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        with Container(classes="panes"):
            yield Rows(_COLUMNS, name="groups")
            yield Rows(POSITIONS, name="beside", opens=False, classes="beside")

    def on_mount(self) -> None:
        """Only what is shown is counted."""
        self.world.filter_groups = lambda name: keeps(self.filter_text, name)

    def paint(self) -> None:
        seen = self.world.groups.shown.value
        rows = self.query_one(Rows)
        if seen is None:
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            self._beside()
            return
        typed = self.filter_text
        found = {one.name: one for one in seen.listed if not typed or keeps(typed, one.name)}
        said = some(len(found), "group")
        risks = {one.group for one in self.world.risks.shown.value or ()}
        if typed:
            said = f"{len(found)} of {len(seen.listed)} groups: /{typed}  (Esc shows all)"
        if len(found) > MOST_COUNTED:
            said += f"; members and lag are counted of {MOST_COUNTED} at most: / shows fewer"
        self.query_one(Words).show_parts((said, "dim"))
        now_s = time.time()
        rows.show_rows(
            list(found),
            lambda key: _cells(found[key], seen.counts.get(key), key in risks, now_s),
            lambda key, n: _by(found[key], seen.counts.get(key), n),
            empty="no group matches: Esc shows all" if typed else _NONE_YET,
            values=lambda names, n: _values(names, found, seen.counts, n),
        )
        self._beside()

    def _beside(self) -> None:
        """Shows where the group under the cursor is behind."""
        show_positions(self, self.query_one("#beside", Rows), self.query_one(Rows).key)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another group is under the cursor."""
        event.stop()
        if event.rows.id == "groups":
            self._beside()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Into the group."""
        event.stop()
        self.post_message(self.Go(Place(GROUP, event.key)))

    def action_delete(self) -> None:
        """The group under the cursor."""
        key = self.query_one(Rows).key
        if key is not None:
            self.propose(group_changes.delete(key))


def _cells(one: Listed, count: GroupCount | None, at_risk: bool, now_s: float) -> tuple[Cell, ...]:
    known: tuple[Cell, ...] = ((NOT_KNOWN, "dim"),) * 6
    if count is not None:
        lag = (short(count.lag), "warn") if count.lag else short(count.lag)
        until_s = right_edge(now_s, now_s, _SPARK_S, _SPARK)
        past = columns(count.samples, _SPARK, until_s, _SPARK_S)
        known = (
            str(count.members), str(count.topics), lag,
            (age(count.lag_s), "bad" if at_risk else ""),
            (spark(past, _SPARK), "chart"), _leads(count),
        )  # fmt: skip
    state = (one.state, _STATES.get(one.state, "warn"))
    return (one.name, state, _protocol(one), *known)


def _leads(count: GroupCount) -> Cell:
    found = trend(count.samples)
    return leads(found), "warn" if found is not None and found.grows_s > 0 else "dim"


def _protocol(one: Listed) -> str:
    return "simple" if one.is_simple else one.kind


def _values(
    names: Sequence[str], found: Mapping[str, Listed], counts: Mapping[str, GroupCount], column: int
) -> Iterable[str | float] | None:
    """A few hundred of thousands of groups are counted."""
    if column < 2:
        return map(attrgetter("name" if column == 0 else "state"), map(found.__getitem__, names))
    if column == 2:
        return None
    counted = ((name, count) for name, count in counts.items() if name in found)
    known = {name: _by(found[name], count, column) for name, count in counted}
    return (known.get(name, -1) for name in names)


def _by(one: Listed, count: GroupCount | None, column: int) -> str | float:
    if column < 3:
        return (one.name, one.state, _protocol(one))[column]
    if count is None:
        return -1
    found = trend(count.samples)
    values = (
        count.members, count.topics, count.lag, count.lag_s, count.lag,
        found.grows_s if found is not None else 0.0,
    )  # fmt: skip
    value = values[column - 3]
    return -1 if value is None else value
