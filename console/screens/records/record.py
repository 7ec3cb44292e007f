"""One record, whole: what is known of it, key, headers and value, decoded or as bytes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import BindingType

from console.model.decoding.memory import Choice
from console.model.records.leaf import Leaf
from console.screens.actions import IN_RECORD, bindings
from console.screens.places import RECORDS, TAIL, Place, record_of
from console.screens.records import decoder
from console.screens.records.cells import record_lines
from console.screens.records.sending import Sending
from console.screens.records.why import WhyScreen
from console.screens.rows import Column, Rows
from console.screens.view import Words

if TYPE_CHECKING:
    from console.screens.app import ConsoleApp

_COLUMNS: Final = (Column("", 0),)


class RecordView(Sending):
    """Lines of a record; only those that are seen are drawn."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_RECORD)
    frames: ClassVar[Mapping[str, str]] = {"record": "Record"}
    summary_in: ClassVar[str] = "record"

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="record", opens=False)

    def on_mount(self) -> None:
        """Decoded at first, long lines wrapped."""
        self._digits = False
        self._wraps = True
        self._painted: object = None

    @property
    def topic(self) -> str:
        """The topic of this record."""
        return record_of(self.place)[0]

    def under_cursor(self) -> tuple[int, int] | None:
        """It is the only one here."""
        _, partition, offset = record_of(self.place)
        return partition, offset

    def action_other(self) -> None:
        """Decoded, or as bytes."""
        self._digits = not self._digits
        self.paint()

    def action_decoder(self) -> None:
        """The value is read by another decoder."""
        self.notify(decoder.change(self.world.choices, self.topic), markup=False)
        self.read_anew()

    def read_anew(self) -> None:
        """Decoded, when that has come."""
        self._digits = False
        self.world.main(self.place).request_update()

    def action_why(self) -> None:
        """Why it looks so, and how else."""
        leaf = self.world.main(self.place).shown.value
        if isinstance(leaf, Leaf):
            self.app.push_screen(WhyScreen(self.topic, leaf.tried), self._chosen)

    def _chosen(self, wanted: tuple[str, str] | None) -> None:
        if wanted is not None:
            part, name = wanted
            self.world.read_as(self.topic, part, Choice(name))
            self.read_anew()

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self._wraps = not self._wraps
        self.paint()

    def on_resize(self) -> None:
        """Lines are as wide as the screen is."""
        if self.is_ready:
            self.paint()

    def paint(self) -> None:
        leaf = self.world.main(self.place).shown.value
        rows = self.query_one("#record", Rows)
        if leaf is None:
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            return
        assert isinstance(leaf, Leaf)
        width = max(8, rows.size.width - 1)
        painted = (leaf, self._digits, self._wraps, width)
        if painted == self._painted:
            return
        self._painted = painted
        form, other = ("as bytes", "decoded") if self._digits else ("decoded", "as bytes")
        self.query_one("#summary", Words).show_parts(
            (self.place.name, "bold"), (f"  {form}   (v: {other}, w: wrap)", "dim")
        )
        told = record_lines(leaf, width, digits=self._digits, wraps=self._wraps)
        rows.show_rows(list(map(str, range(len(told)))), lambda key: (told[int(key)],))

    def escape(self) -> bool:
        """To the list, or the tail, that led here."""
        console = cast("ConsoleApp", self.app)
        came = console.history.before
        if came is None or came.kind not in (RECORDS, TAIL):
            return False
        console.call_later(console.action_back)
        return True

    def action_browse(self) -> None:
        """The records around it."""
        self.post_message(self.Go(Place(RECORDS, record_of(self.place)[0])))
