"""Clients: who is connected, with what software, how fast, who has to wait for which quota, and
what a client says of itself."""

from collections.abc import Mapping
from math import isfinite
from typing import ClassVar, Final

from textual.app import ComposeResult

from console.model.local.client_metrics import Number, Pushing
from console.model.local.clients import Connection
from console.model.local.local import Facts
from console.model.quotas.quota_rules import ANYBODY, Client
from console.screens.places import QUOTA, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import NOT_KNOWN, age, in_bytes, short, some, took

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
_PUSHED: Final = (
    Column("METRIC", 0),
    Column("OF", 22, from_width=60),
    Column("VALUE", 12, right=True),
    Column("UNIT", 8, from_width=110),
)
_OF_JAVA: Final = "org.apache.kafka."
"""How names of metrics begin by KIP-714; what is behind it tells them apart."""
_LABEL_OF_CLIENT: Final = "client.id"


class ClientsView(View):
    """The list, the fastest first. Enter tells which quotas hold for a client. Below it, where the
    client under the cursor pushes them, its own metrics: Tab goes there."""

    has_filter: ClassVar[bool] = True
    DEFAULT_CSS = """
    ClientsView #pushed { height: 50%; min-height: 12; border-top: solid $foreground 20%; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "clients": "Connections  {}", "pushed": "Metrics of this client",
    }  # fmt: skip
    summary_in: ClassVar[str] = "clients"

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="clients")
        yield Rows(_PUSHED, name="pushed", opens=False)

    def paint(self) -> None:
        facts = self.world.facts.shown.value
        words, rows = self.query_one("#summary", Words), self.query_one("#clients", Rows)
        if facts is None or self.world.is_foreign:
            words.show_parts("")
            empty = FOREIGN if self.world.is_foreign else self.waiting()
            rows.show_rows([], lambda key: (key,), empty=empty)
            self._say(())
            return
        typed = self.filter_text
        found = {one.key: one for one in facts.clients if keeps(typed, _told(one))}
        words.show_parts((self._summary(len(found), facts), "dim"))
        rows.show_rows(
            list(found), lambda key: _cells(found[key]), lambda key, n: _by(found[key], n),
            empty="no client matches" if typed else "no client is connected",
        )  # fmt: skip
        self._say(self._pushing(facts))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another client is under the cursor."""
        event.stop()
        facts = self.world.facts.shown.value
        if facts is not None and event.rows.id == "clients":
            self._say(self._pushing(facts))

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To the quotas of that client."""
        event.stop()
        facts = self.world.facts.shown.value
        for one in facts.clients if facts is not None else ():
            if one.key == event.key:
                who = Client(one.user or ANYBODY, one.client_id)
                self.post_message(self.Go(Place(QUOTA, who.text)))

    def _pushing(self, facts: Facts) -> tuple[Pushing, ...]:
        """The pushing instances of the client under the cursor: several may have one id."""
        key = self.query_one("#clients", Rows).key
        for one in facts.clients:
            if one.key == key:
                return tuple(
                    who for who in facts.pushing
                    if (who.client.client_id, who.client.user, who.client.address)
                    == (one.client_id, one.user, one.address)
                )  # fmt: skip
        return ()

    def _say(self, pushing: tuple[Pushing, ...]) -> None:
        """Shows the last metrics of these; hides the table without any."""
        rows = self.query_one("#pushed", Rows)
        rows.display = bool(pushing)
        if not pushing:
            if rows.has_focus:
                self.query_one("#clients", Rows).focus()
            return
        rows.set_title(_said(pushing))
        several = len(pushing) > 1
        found = {
            f"{one.client.instance} {n}": (one.client.instance if several else "", sample)
            for one in pushing
            for n, sample in enumerate(one.samples)
        }
        wrong = next((one.client.wrong for one in pushing if one.client.wrong), "it said nothing")
        rows.show_rows(
            list(found), lambda key: _pushed(*found[key]),
            lambda key, n: _pushed_by(found[key][1], n), empty=wrong,
        )  # fmt: skip

    def _summary(self, shown: int, facts: Facts) -> str:
        every, left_out = facts.clients, facts.clients_left_out
        waiting = sum(bool(one.throttled_by) for one in every)
        said = f"{some(len(every) + left_out, 'connection')}, {waiting} throttled"
        if self.filter_text:
            said = f"{shown} of {said}: /{self.filter_text}  (Esc shows all)"
        if left_out:
            said += f"; {left_out} more than have a line here"
        if facts.pushing:
            push = "pushes metrics" if len(facts.pushing) == 1 else "push metrics"
            said += f", {len(facts.pushing)} {push}"
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


def _said(pushing: tuple[Pushing, ...]) -> str:
    """A line on the number of pushed metrics and the time of the last push."""
    last = pushing[0].client
    numbers = sum(one.client.metrics for one in pushing)
    ago = min(one.client.pushed_s for one in pushing)
    who = f", {len(pushing)} instances" if len(pushing) > 1 else ""
    said = f"Metrics of {last.client_id or '(none)'}{who}  {numbers}"
    return f"{said}, pushed {age(ago)} ago, every {age(last.interval_s)}"


def _pushed(instance: str, one: Number) -> tuple[Cell, ...]:
    labels = " ".join(f"{name}={value}" for name, value in one.labels if name != _LABEL_OF_CLIENT)
    told = f"{instance[:6]} {labels}".strip()
    return one.name.removeprefix(_OF_JAVA), (told, "dim"), _number(one.value), (one.unit, "dim")


def _number(value: int | float) -> str:
    """Java's averages over nothing are no numbers."""
    return short(value) if isfinite(value) else NOT_KNOWN


def _pushed_by(one: Number, column: int) -> str | float:
    return (one.name, str(one.labels), float(one.value), one.unit)[column]


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
