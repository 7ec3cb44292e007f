"""Clients: who is connected, with what software, how fast, and who has to wait for which quota."""

from typing import ClassVar, Final

from textual.app import ComposeResult

from console.model.clients import Connection
from console.model.quota_rules import ANYBODY, Client
from console.screens.places import QUOTA, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import age, in_bytes, short, some, took

FOREIGN: Final = "who is connected is known of an appliance of this host only"
_SHORT: Final = {
    "producer_byte_rate": "produce",
    "consumer_byte_rate": "fetch",
    "request_percentage": "requests",
    "controller_mutation_rate": "changes",
}
_COLUMNS: Final = (
    Column("CLIENT ID", 0),
    Column("SOFTWARE", 29, from_width=70),
    Column("USER", 12, from_width=110),
    Column("ADDRESS", 15, from_width=100),
    Column("LISTENER", 10, from_width=150),
    Column("SINCE", 10, right=True, from_width=100),
    Column("IN/S", 8, right=True),
    Column("OUT/S", 8, right=True),
    Column("REQ/S", 6, right=True, from_width=96),
    Column("LAST", 16, from_width=130),
    Column("THROTTLED", 13),
)


class ClientsView(View):
    """The list, the fastest first. Enter tells which quotas hold for a client."""

    has_filter: ClassVar[bool] = True

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="clients")

    def paint(self) -> None:
        facts = self.world.facts.shown.value
        words, rows = self.query_one(Words), self.query_one(Rows)
        if facts is None or self.world.is_foreign:
            words.say("")
            empty = FOREIGN if self.world.is_foreign else self.waiting()
            rows.show([], lambda key: (key,), empty=empty)
            return
        typed = self.filter_text
        found = {one.key: one for one in facts.clients if keeps(typed, _told(one))}
        words.say((self._summary(len(found), facts.clients, facts.clients_left_out), "dim"))
        rows.show(
            list(found), lambda key: _cells(found[key]), lambda key, n: _by(found[key], n),
            empty="no client is called so" if typed else "nobody is connected",
        )  # fmt: skip

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To the quotas of that client."""
        event.stop()
        facts = self.world.facts.shown.value
        for one in facts.clients if facts is not None else ():
            if one.key == event.key:
                who = Client(one.user or ANYBODY, one.client_id)
                self.post_message(self.Go(Place(QUOTA, who.text)))

    def _summary(self, shown: int, every: tuple[Connection, ...], left_out: int) -> str:
        waiting = sum(bool(one.throttled_by) for one in every)
        said = f"{some(len(every) + left_out, 'connection')}, {waiting} throttled"
        if self.filter_text:
            said = f"{shown} of {said}: /{self.filter_text}  (Esc shows all)"
        if left_out:
            said += f"; {left_out} more than have a line here"
        return said


def software(one: Connection) -> str:
    """Name and version, as the client itself says, without what is behind a dash."""
    return f"{one.software} {one.version.partition('-')[0]}".strip() or "does not say"


def throttled(one: Connection) -> str:
    """For how long still, and for which quota; "" for who has not to wait."""
    if not one.throttled_by:
        return ""
    kind = _SHORT.get(one.throttled_by, one.throttled_by)
    return f"{took(one.throttled_ms / 1000)}, {kind}"


def _told(one: Connection) -> str:
    return " ".join((one.client_id, one.software, one.version, one.user, one.address))


def _cells(one: Connection) -> tuple[Cell, ...]:
    return (
        one.client_id or ("(none)", "dim"), software(one), one.user or ("-", "dim"), one.address,
        one.listener, age(one.connected_s), in_bytes(one.in_s), in_bytes(one.out_s),
        short(one.requests_s), one.last_api, (throttled(one), "warn"),
    )  # fmt: skip


def _by(one: Connection, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        one.client_id, software(one), one.user, one.address, one.listener, one.connected_s,
        one.in_s, one.out_s, one.requests_s, one.last_api, float(one.throttled_ms),
    )  # fmt: skip
    return values[column]
