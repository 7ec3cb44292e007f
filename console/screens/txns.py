"""Transactions: which are open, for how long, and what each of them keeps from read_committed
readers."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from console.model.transactions.open_transactions import Held, Open, is_late
from console.model.transactions.transaction_changes import proposal
from console.screens.actions import ALL_TXNS, bindings
from console.screens.places import TOPIC, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import NOT_KNOWN, age, short, some

_COLUMNS: Final = (
    Column("TRANSACTION", 0),
    Column("STATE", 14),
    Column("OPEN FOR", 10, right=True),
    Column("TIMEOUT", 10, right=True, from_width=90),
    Column("PARTS", 5, right=True),
    Column("HELD BACK", 9, right=True),
    Column("OLDEST", 10, right=True),
    Column("PRODUCER", 12, right=True, from_width=110),
    Column("EPOCH", 6, right=True, from_width=110),
    Column("COORDINATOR", 11, right=True, from_width=130),
)
_HELD: Final = (
    Column("TOPIC", 0),
    Column("PART", 5, right=True),
    Column("ITS FIRST", 11, right=True),
    Column("READ UP TO", 11, right=True, from_width=100),
    Column("END", 11, right=True),
    Column("HELD BACK", 9, right=True),
    Column("OLDEST", 10, right=True),
)
_FOREIGN: Final = "; penstock txn hanging looks for hanging ones"


class TxnsView(View):
    """Two tables: the transactions, and the partitions of the one under the cursor. Enter there
    goes to the topic."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_TXNS)
    has_filter: ClassVar[bool] = True
    DEFAULT_CSS = """
    TxnsView #txns { height: 1fr; }
    TxnsView #held { height: 1fr; border-top: solid $foreground 20%; }
    TxnsView.wide #txns { width: 5fr; }
    TxnsView.wide #held { width: 3fr; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "txns": "Open transactions  {}", "held": "Partitions of this transaction  {}",
    }  # fmt: skip
    summary_in: ClassVar[str] = "txns"

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        with Container(classes="panes"):
            yield Rows(_COLUMNS, name="txns", opens=False)
            yield Rows(_HELD, name="held")

    def paint(self) -> None:
        seen = self.world.transactions.shown.value
        rows, held = self.query_one("#txns", Rows), self.query_one("#held", Rows)
        if seen is None:
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            held.show_rows([], lambda key: (key,), empty="")
            return
        found = {one.key: one for one in seen if keeps(self.filter_text, _named(one))}
        self.query_one(Words).show_parts((self._summary(len(found), seen), "dim"))
        rows.show_rows(
            list(found), lambda key: _cells(found[key]), lambda key, n: _by(found[key], n),
            empty="no open transaction matches" if self.filter_text else
            "no transaction is open",
        )  # fmt: skip
        self._partitions(held, found.get(rows.key or ""))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another transaction may be under the cursor."""
        event.stop()
        self.paint()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To the topic."""
        event.stop()
        self.post_message(self.Go(Place(TOPIC, event.key.rpartition(" ")[0])))

    def action_abort(self) -> None:
        """The one under the cursor."""
        key = self.query_one("#txns", Rows).key
        for one in self.world.transactions.shown.value or ():
            if one.key == key:
                self.propose(proposal(one))
                return
        self.notify("nothing is open", markup=False)

    def _partitions(self, rows: Rows, one: Open | None) -> None:
        held = {f"{of.topic} {of.partition}": of for of in (one.held if one is not None else ())}
        rows.show_rows(
            list(held), lambda key: _place(held[key]), lambda key, n: _place_by(held[key], n),
            empty="it has no partition yet" if one is not None else "",
        )  # fmt: skip

    def _summary(self, shown: int, every: tuple[Open, ...]) -> str:
        hanging = sum(one.hangs for one in every)
        said = some(len(every), "open transaction")
        if self.filter_text:
            said = f"{shown} of {said}: /{self.filter_text}  (Esc shows all)"
        if hanging:
            said += f", {hanging} hanging"
        return said + (_FOREIGN if self.world.is_foreign else "")


def _named(one: Open) -> str:
    if one.name:
        return one.name
    return " ".join(["producer", str(one.producer_id), *(of.topic for of in one.held)])


def _cells(one: Open) -> tuple[Cell, ...]:
    style = "bad" if one.hangs else "warn" if is_late(one) else ""
    timeout = age(one.timeout_ms / 1000) if one.timeout_ms is not None else NOT_KNOWN
    broker = NOT_KNOWN if one.coordinator is None else str(one.coordinator)
    return (
        one.name or (f"(producer {one.producer_id})", "dim"), (one.state, style),
        (age(one.age_s), style), timeout, str(len(one.held)),
        (short(one.records), "warn" if one.records else ""), age(one.seconds),
        str(one.producer_id), str(one.epoch), broker,
    )  # fmt: skip


def _by(one: Open, column: int) -> str | float:
    values = (
        _named(one), one.state, one.age_s, one.timeout_ms, len(one.held), one.records,
        one.seconds, one.producer_id, one.epoch, one.coordinator,
    )  # fmt: skip
    value = values[column]
    return -1 if value is None else value


def _place(one: Held) -> tuple[Cell, ...]:
    start, stable, end = (
        NOT_KNOWN if at is None else str(at) for at in (one.start, one.stable, one.end)
    )
    held = (short(one.records), "warn" if one.records else "")
    return one.topic, str(one.partition), start, stable, end, held, age(one.seconds)


def _place_by(one: Held, column: int) -> str | float:
    values = (
        one.topic, one.partition, one.start, one.stable, one.end, one.records, one.seconds,
    )  # fmt: skip
    value = values[column]
    return -1 if value is None else value
