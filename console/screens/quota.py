"""One client: which quotas hold for it, and which rule gives them."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from appliance.quotas.limits import Entity, entity_text
from console.model.quotas.quota_change import proposal
from console.model.quotas.quota_rules import Rule, client_of, explained, together
from console.model.quotas.quota_values import KINDS, brief, shown
from console.model.quotas.quotas import Seen, Usage, usage_of
from console.screens import quota_form
from console.screens.actions import ONE_CLIENT, bindings
from console.screens.quotas import ask_whose, share, throttled
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import NOT_KNOWN
from console.show.what_if import what_if

_HOLDS: Final = (
    Column("QUOTA", 11),
    Column("LIMIT", 10, right=True),
    Column("GIVEN BY", 0),
    Column("RATE", 10, right=True),
    Column("USED", 6, right=True),
    Column("WAITS", 7, right=True),
    Column("FOR", 9, right=True, from_width=100),
    Column("COUNTED TOGETHER", 40, from_width=140),
)
_ORDER: Final = (
    Column("", 1, right=True),
    Column("RULE, THE STRONGEST FIRST", 0),
    Column("PRODUCE", 10, right=True),
    Column("FETCH", 10, right=True),
    Column("REQUEST", 7, right=True),
    Column("MUTATION", 8, right=True),
)
_ORDER_OF_IP: Final = (*_ORDER[:2], Column("CONNECTIONS", 11, right=True))


class QuotaView(View):
    """Two tables, Tab goes from one to the other."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ONE_CLIENT)
    DEFAULT_CSS = """
    QuotaView #holds { height: 6; }
    QuotaView #order { height: 1fr; border-top: solid $foreground 20%; }
    QuotaView #about { height: 2; padding: 0 1; color: $text-muted; }
    QuotaView.large #holds { height: 8; }
    QuotaView.large #about { height: 4; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "holds": "Quotas that hold  {}", "order": "Rules  {}", "about": "The rule under the cursor",
    }  # fmt: skip

    def compose(self) -> ComposeResult:
        self._client = client_of(self.place.name)
        yield Words(name="summary", classes="summary")
        yield Rows(_HOLDS, name="holds", opens=False)
        yield Rows(_ORDER_OF_IP if self._client.ip else _ORDER, name="order", opens=False)
        yield Words(name="about")

    def on_mount(self) -> None:
        """Starts without rules."""
        self._rules: dict[str, list[Rule]] = {}

    def paint(self) -> None:
        seen = self.world.quotas.shown.value
        holds, order = self.query_one("#holds", Rows), self.query_one("#order", Rows)
        if seen is None:
            holds.show_rows([], lambda key: (key,), empty=self.waiting())
            order.show_rows([], lambda key: (key,), empty="")
            return
        rules = explained(seen.quotas, self._client, KINDS)
        found = {one.kind: one for one in rules if one.holds}
        self.query_one("#summary", Words).show_parts(
            (self._client.text, "bold"), "  ", ("what holds for it, and which rule says so", "dim")
        )
        uses = {kind: usage_of(seen, one, self._client) for kind, one in found.items()}
        holds.show_rows(
            list(found), lambda key: _held(found[key], uses[key], seen),
            empty="no quota holds for it: it may use all there is",
        )  # fmt: skip
        by_entity: dict[str, list[Rule]] = {}
        for one in rules:
            by_entity.setdefault(entity_text(one.entity), []).append(one)
        self._rules = by_entity
        order.show_rows(list(by_entity), lambda key: _line(by_entity[key]))
        self._about()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another rule is under the cursor."""
        event.stop()
        self._about()

    def action_describe(self) -> None:
        """Ask who the client is."""
        ask_whose(self)

    def action_new_quota(self) -> None:
        """Quotas of this client and nobody else, or of whom is typed instead."""
        self.propose(quota_form.new(self._client.entity))

    def action_edit_quota(self) -> None:
        """The quotas of the rule under the cursor, whether it has any or not."""
        seen = self.world.quotas.shown.value
        if self.entity is not None and seen is not None:
            self.propose(quota_form.edit(self.entity, seen.quotas.get(self.entity, {}), ""))

    def action_delete_quota(self) -> None:
        """Take all quotas of the rule under the cursor away."""
        seen = self.world.quotas.shown.value
        own = seen.quotas.get(self.entity or (), {}) if seen is not None else {}
        if self.entity is None or not own:
            self.notify("the rule under the cursor has no quotas", markup=False)
            return
        self.propose(proposal(self.entity, dict.fromkeys(own), what_if))

    @property
    def entity(self) -> Entity | None:
        """The entity of the rule under the cursor, None where there is none."""
        rules = self._rules.get(self.query_one("#order", Rows).key or "")
        return rules[0].entity if rules else None

    def _about(self) -> None:
        entity = self.entity
        self.query_one("#about", Words).show_parts(
            "" if entity is None else
            f"{entity_text(entity)}: counts together {together(entity)}. Of each quota the first"
            " rule that says something holds."
        )  # fmt: skip


def _held(one: Rule, use: Usage | None, seen: Seen) -> tuple[Cell, ...]:
    told: tuple[Cell, ...] = (
        brief(one.kind),
        shown(one.kind, one.value) or "",
        entity_text(one.entity),
    )
    if use is None:
        nothing = (NOT_KNOWN if seen.untold is not None else "unused", "dim")
        return (*told, nothing, "", "", "", (one.together, "dim"))
    rate = shown(one.kind, use.rate) or ""
    return (*told, rate, share(use.used), *throttled(use), (one.together, "dim"))


def _line(rules: list[Rule]) -> tuple[Cell, ...]:
    values = [_value(one) for one in rules]
    return str(rules[0].rank), entity_text(rules[0].entity), *values


def _value(one: Rule) -> Cell:
    if one.value is None:
        return NOT_KNOWN, "dim"
    told = shown(one.kind, one.value) or ""
    return (told, "good") if one.holds else (told, "dim")
