"""A right: whether somebody may do something with one resource, which ACL or setting decides it,
who else may, and all ACLs about that resource."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from appliance.authorization import operations as kafka
from appliance.authorization.standard import ANY_HOST, AclRule
from appliance.authorization.words import KINDS, OPERATIONS
from console.model.access import acls
from console.model.access.access import AccessSeen, Question, question
from console.model.access.acls import Holder
from console.screens.access import around, forms
from console.screens.actions import ONE_RIGHT, bindings
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words

_HOLDERS: Final = (
    Column("WHO MAY", 26),
    Column("FROM", 15),
    Column("BECAUSE", 0),
)
_RULES: Final = (Column("ACL", 0),)


class CanView(View):
    """The verdict and two tables, Tab goes from one to the other."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ONE_RIGHT)
    DEFAULT_CSS = """
    CanView #verdict { height: 3; padding: 0 1; }
    CanView #holders { height: 1fr; }
    CanView #rules { height: 1fr; border-top: solid $foreground 20%; }
    CanView.large #verdict { height: 4; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "verdict": "Answer", "holders": "Who may  {}", "rules": "ACLs about it  {}",
    }  # fmt: skip

    def compose(self) -> ComposeResult:
        self._asked: Question = question(self.place.name)
        yield Words(name="verdict")
        yield Rows(_HOLDERS, name="holders", opens=False)
        yield Rows(_RULES, name="rules", opens=False)

    def paint(self) -> None:
        seen = self.world.access.shown.value
        holders, rules = self.query_one("#holders", Rows), self.query_one("#rules", Rows)
        if seen is None:
            holders.show_rows([], lambda key: (key,), empty=self.waiting())
            rules.show_rows([], lambda key: (key,), empty="")
            return
        self._verdict(seen)
        if seen.policy is None:
            holders.show_rows([], lambda key: (key,), empty=seen.problem or around.FREE)
            rules.show_rows([], lambda key: (key,), empty="")
            return
        asked = self._asked
        found = {
            f"{one.principal}\0{one.host}": one
            for one in acls.who_can(seen.policy, asked.operation, asked.target)
        }
        holders.show_rows(
            list(found), lambda key: _cells(found[key]), lambda key, n: found[key][n],
            empty="nobody may",
        )  # fmt: skip
        about = {
            "\0".join(map(str, one)): one
            for one in seen.policy.rules
            if acls.about(one, asked.target)
        }
        rules.show_rows(
            list(about), lambda key: _rule(about[key], asked), empty="no ACL is about it"
        )

    def action_ask(self) -> None:
        """Ask something else; what is asked now stands there."""
        around.ask_whether(self, self._asked.text)

    def action_new_acl(self) -> None:
        """Allow or deny what is asked."""
        self.propose(forms.new_rule(self._asked.principal, self._asked))

    def _verdict(self, seen: AccessSeen) -> None:
        asked, words = self._asked, self.query_one("#verdict", Words)
        allowed, why = True, seen.problem or around.FREE
        if seen.policy is not None:
            verdict = acls.can(
                seen.policy, asked.principal, asked.host, asked.operation, asked.target
            )
            allowed, why = verdict
        words.show_parts(
            (asked.principal, "bold"), f" {_what(asked)}: ",
            ("yes", "bold green") if allowed else ("no", "bold red"), f"\n{why}",
        )  # fmt: skip


def _what(asked: Question) -> str:
    """`write topic orders from 10.0.0.5`."""
    kind = acls.typed(KINDS[asked.target.kind])
    name = "" if asked.target.kind == kafka.CLUSTER else f" {asked.target.name}"
    host = "" if asked.host == ANY_HOST else f" from {asked.host}"
    return f"{acls.typed(OPERATIONS[asked.operation])} {kind}{name}{host}"


def _cells(one: Holder) -> tuple[Cell, ...]:
    return one.principal, (one.host, "dim" if one.host == ANY_HOST else ""), one.why


def _rule(rule: AclRule, asked: Question) -> tuple[Cell, ...]:
    own = rule.principal in (asked.principal, "User:*")
    return ((acls.sentence(rule), "" if own else "dim"),)
