"""ACLs: which rules there are, or those that hold for one principal."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from appliance.authorization.standard import DENY, AclRule
from console.model.access import access_changes
from console.model.access.access import AccessSeen, is_about, question_of
from console.model.access.acls import Entry, entry, sentence
from console.screens.access import around, forms
from console.screens.actions import ALL_ACLS, bindings
from console.screens.places import CAN, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, View, Words
from console.show.figures import some

_WIDE: Final = 100
_COLUMNS: Final = (
    Column("PRINCIPAL", 24),
    Column("", 5),
    Column("OPERATION", 16),
    Column("KIND", 8, below_width=_WIDE),
    Column("KIND", 16, from_width=_WIDE),
    Column("NAME", 0),
    Column("FROM", 15, from_width=_WIDE),
)


class AclsView(View):
    """The list. Enter tells who else may do what the rule under the cursor is about."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_ACLS)
    DEFAULT_CSS = """
    AclsView #about { height: 2; padding: 0 1; color: $text-muted; }
    AclsView.large #about { height: 3; }
    """
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"acls": "ACLs  {}", "about": "This ACL"}

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="acls", marks=True)
        yield Words(name="about")

    def on_mount(self) -> None:
        """Starts without rules."""
        self._rules: dict[str, AclRule] = {}

    def paint(self) -> None:
        seen, rows = self.world.access.shown.value, self.query_one("#acls", Rows)
        if seen is None:
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            return
        every = seen.policy.rules if seen.policy is not None else ()
        found = {
            "\0".join(map(str, one)): one
            for one in every
            if (not self.place.name or is_about(one, self.place.name))
            and keeps(self.filter_text, sentence(one))
        }
        self._rules = found
        rows.show_rows(
            list(found), lambda key: _cells(found[key]), lambda key, n: _by(found[key], n),
            empty=self._nothing(seen),
        )  # fmt: skip
        self.query_one("#summary", Words).show_parts(*self._summary(seen, len(found), len(every)))
        self._about()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another rule is under the cursor."""
        event.stop()
        self._about()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To what the rule decides, and who else may."""
        event.stop()
        rule = self._rules.get(event.key)
        asked = question_of(rule) if rule is not None else None
        if asked is None:
            self.notify("nothing can be asked about this kind of resource", markup=False)
        else:
            self.post_message(self.Go(Place(CAN, asked.text)))

    def action_other(self) -> None:
        """The audit."""
        around.go_to_next(self)

    def action_ask(self) -> None:
        """Ask whether somebody may do something."""
        around.ask_whether(self, forms.begun(self.place.name))

    def action_new_acl(self) -> None:
        """Ask who may do what."""
        self.propose(forms.new_rule(self.place.name))

    def action_remove_acl(self) -> None:
        """Remove the rule under the cursor, or those that are marked."""
        rows = self.query_one("#acls", Rows)
        keys = rows.marked or ((rows.key,) if rows.key is not None else ())
        gone = [self._rules[key] for key in keys if key in self._rules]
        if gone:
            self.propose(access_changes.remove_rules(gone))
        else:
            self.notify("there is no ACL under the cursor", markup=False)

    def _nothing(self, seen: AccessSeen) -> str:
        if seen.policy is None or not seen.policy.has_acls:
            return seen.problem or around.FREE
        if self.filter_text:
            return "no ACL says so"
        return "no ACL holds for it" if self.place.name else "there is no ACL: n adds the first one"

    def _summary(self, seen: AccessSeen, shown: int, every: int) -> tuple[Part, ...]:
        of = f"{shown} of {some(every, 'ACL')}" if shown != every else some(every, "ACL")
        whose = f", for {self.place.name}" if self.place.name else ""
        parts: list[Part] = [*around.titles("acls"), f"{of}{whose}"]
        if seen.policy is not None and seen.policy.open_unnamed:
            parts.append(("  what no ACL names is open to all", "yellow"))
        return tuple(parts)

    def _about(self) -> None:
        rule = self._rules.get(self.query_one("#acls", Rows).key or "")
        self.query_one("#about", Words).show_parts(sentence(rule) if rule is not None else "")


def _cells(rule: AclRule) -> tuple[Cell, ...]:
    one: Entry = entry(rule)
    ink = "bad" if rule.permission == DENY else "good"
    more = "…" if one.pattern == "prefixed" else ""
    short = one.resource.replace("transactional-id", "txn id")
    name = "" if one.resource == "cluster" else f"{one.name}{more}"
    return (
        one.principal, (one.permission, ink), one.operation, short, one.resource, name,
        (one.host, "dim" if one.host == "*" else ""),
    )  # fmt: skip


def _by(rule: AclRule, column: int) -> str:
    one = entry(rule)
    values = (
        one.principal, one.permission, one.operation, one.resource, one.resource, one.name,
        one.host,
    )  # fmt: skip
    return values[column]
