"""Groups: every consumer group with its state, its members and how far it is behind."""

from typing import ClassVar, Final

from textual.app import ComposeResult

from console.model.groups import Listed
from console.screens.places import GROUP, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.screens.world import MOST_COUNTED, GroupCount
from console.show.figures import NOT_KNOWN, short, some

_COLUMNS: Final = (
    Column("GROUP", 0),
    Column("STATE", 20),
    Column("PROTOCOL", 8, from_width=80),
    Column("MEMBERS", 7, right=True),
    Column("TOPICS", 6, right=True),
    Column("LAG", 7, right=True),
)
_STATES: Final = {"stable": "good", "empty": "dim", "dead": "dim"}


class GroupsView(View):
    """The list. Enter goes into a group."""

    has_filter: ClassVar[bool] = True

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="groups")

    def on_mount(self) -> None:
        """Only what is shown is counted."""
        self.world.filter_groups = lambda name: keeps(self.filter_text, name)

    def paint(self) -> None:
        seen = self.world.groups.shown.value
        rows = self.query_one(Rows)
        if seen is None:
            rows.show([], lambda key: (key,), empty=self.waiting())
            return
        typed = self.filter_text
        found = {one.name: one for one in seen.listed if keeps(typed, one.name)}
        said = some(len(found), "group")
        if typed:
            said = f"{len(found)} of {len(seen.listed)} groups: /{typed}  (Esc shows all)"
        if len(found) > MOST_COUNTED:
            said += f"; members and lag are counted of {MOST_COUNTED} at most: / shows fewer"
        self.query_one(Words).say((said, "dim"))
        rows.show(
            list(found),
            lambda key: _cells(found[key], seen.counts.get(key)),
            lambda key, n: _by(found[key], seen.counts.get(key), n),
            empty="no group is called so" if typed else "no group has read or committed here yet",
        )

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Into the group."""
        event.stop()
        self.post_message(self.Go(Place(GROUP, event.key)))


def _cells(one: Listed, count: GroupCount | None) -> tuple[Cell, ...]:
    known: tuple[Cell, ...] = ((NOT_KNOWN, "dim"),) * 3
    if count is not None:
        lag = (short(count.lag), "warn") if count.lag else short(count.lag)
        known = (str(count.members), str(count.topics), lag)
    state = (one.state, _STATES.get(one.state, "warn"))
    return (one.name, state, one.kind, *known)


def _by(one: Listed, count: GroupCount | None, column: int) -> str | int:
    if column < 3:
        return (one.name, one.state, one.kind)[column]
    if count is None:
        return -1
    return (count.members, count.topics, -1 if count.lag is None else count.lag)[column - 3]
