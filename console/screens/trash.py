"""Deleted topics: what can be brought back, until when."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from console.model.topics import topic_changes
from console.model.topics.topics import Deleted
from console.screens.actions import IN_TRASH, bindings
from console.screens.places import keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import in_bytes, short, some

_COLUMNS: Final = (
    Column("TOPIC", 0),
    Column("PARTS", 6, right=True),
    Column("RECORDS", 7, right=True),
    Column("SIZE", 7, right=True),
    Column("DELETED", 19),
    Column("UNTIL", 19),
    Column("ID", 22, from_width=120),
)


class TrashView(View):
    """The list. Enter brings a topic back."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_TRASH)
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"trash": "Deleted topics  {}"}
    summary_in: ClassVar[str] = "trash"

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="trash")

    def paint(self) -> None:
        seen = self.world.trash.shown.value
        if seen is None:
            self.query_one(Words).show_parts("")
            self.query_one(Rows).show_rows([], lambda key: (key,), empty=self.waiting())
            return
        found = {one.id: one for one in seen if keeps(self.filter_text, one.name)}
        said = f"{some(len(found), 'deleted topic')} can be brought back with all that was in it"
        self.query_one(Words).show_parts((said, "dim"))
        self.query_one(Rows).show_rows(
            list(found), lambda key: _cells(found[key]), lambda key, n: _by(found[key], n),
            empty="no deleted topic can be brought back",
        )  # fmt: skip

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Back it comes."""
        event.stop()
        self.action_undelete()

    def action_undelete(self) -> None:
        """Bring the topic under the cursor back."""
        key = self.query_one(Rows).key
        for one in self.world.trash.shown.value or ():
            if one.id == key:
                self.propose(topic_changes.undeletion(one.name, one.id))


def _cells(one: Deleted) -> tuple[Cell, ...]:
    return (
        one.name, str(one.partitions), short(one.records), in_bytes(one.bytes), _at(one.deleted),
        _at(one.until), (one.id, "dim"),
    )  # fmt: skip


def _at(told: str) -> str:
    return told[:19].replace("T", " ")


def _by(one: Deleted, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        one.name, one.partitions, one.records, one.bytes, one.deleted, one.until, one.id,
    )  # fmt: skip
    return values[column]
