"""Users: who can log in by which mechanisms, what they may do, and when they last did."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from appliance.authorization.standard import ANYBODY
from console.model.access import access_changes, acls
from console.model.access.access import AccessSeen, Person, is_about, people
from console.model.access.audit_memory import AuditSeen
from console.model.access.users import User
from console.screens.access import around, forms
from console.screens.actions import ALL_USERS, bindings
from console.screens.places import ACLS, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, View, Words
from console.show.figures import NOT_KNOWN, age, some

_WIDE: Final = 110
_RULES_SHOWN: Final = 3
_NOTHING: Final = AuditSeen()
_NO_USER: Final = "there is no user under the cursor who logs in with SCRAM"
_COLUMNS: Final = (
    Column("PRINCIPAL", 0),
    Column("LOGS IN BY", 14, below_width=_WIDE),
    Column("LOGS IN BY", 30, from_width=_WIDE),
    Column("MAY", 12),
    Column("LAST LOGIN", 15, right=True),
    Column("FROM", 16, from_width=_WIDE),
    Column("BY", 14, from_width=_WIDE),
    Column("FAILED", 6, right=True),
)


class UsersView(View):
    """The list. Enter leads to the ACLs that hold for somebody."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_USERS)
    DEFAULT_CSS = """
    UsersView #about { height: 5; padding: 0 1; border-top: solid $foreground 20%; }
    UsersView.large #about { height: 6; }
    """
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"users": "Principals  {}", "about": "May"}

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="users")
        yield Words(name="about")

    def on_mount(self) -> None:
        """Starts without users."""
        self._people: dict[str, Person] = {}

    def paint(self) -> None:
        seen, rows = self.world.access.shown.value, self.query_one("#users", Rows)
        if seen is None:
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            return
        audit = self.world.audit.shown.value or _NOTHING
        found = {
            one.principal: one
            for one in people(seen, audit.logins)
            if keeps(self.filter_text, f"{one.principal} {' '.join(one.mechanisms)}")
        }
        self._people, now_s = found, time.time()
        rows.show_rows(
            list(found), lambda key: _cells(found[key], seen, now_s),
            lambda key, n: _by(found[key], n),
            empty="no user matches" if self.filter_text else
            "no user has credentials: n makes the first one",
        )  # fmt: skip
        self.query_one("#summary", Words).show_parts(*self._summary(seen))
        self._about()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Somebody else is under the cursor."""
        event.stop()
        self._about()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To the ACLs that hold for this one."""
        event.stop()
        self.post_message(self.Go(Place(ACLS, event.key)))

    def action_other(self) -> None:
        """The ACLs."""
        around.go_to_next(self)

    def action_ask(self) -> None:
        """Ask whether the one under the cursor may do something."""
        one = self._chosen
        around.ask_whether(self, forms.begun(one.principal) if one is not None else "")

    def action_new_user(self) -> None:
        """Ask for a name and rights."""
        self.propose(forms.new_user())

    def action_password(self) -> None:
        """Give the user under the cursor another password."""
        if (user := self._user) is None:
            self.notify(_NO_USER, markup=False)
        else:
            self.propose(forms.password(user))

    def action_remove_user(self) -> None:
        """Remove the user under the cursor."""
        if (user := self._user) is None:
            self.notify(_NO_USER, markup=False)
        else:
            self.propose(access_changes.remove_user(user.name))

    @property
    def _chosen(self) -> Person | None:
        return self._people.get(self.query_one("#users", Rows).key or "")

    @property
    def _user(self) -> User | None:
        """The user under the cursor, None where that has no credentials."""
        seen, one = self.world.access.shown.value, self._chosen
        if seen is None or one is None or not one.user:
            return None
        return next((each for each in seen.users if each.name == one.user), None)

    def _summary(self, seen: AccessSeen) -> tuple[Part, ...]:
        parts = [*around.titles(self.place.kind), some(len(seen.users), "user")]
        if seen.problem:
            return (*parts, (f"  {seen.problem}", "yellow"))
        if seen.policy is None:
            return (*parts, (f"  {around.FREE}", "yellow"))
        return tuple(parts)

    def _about(self) -> None:
        """Shows who is under the cursor, and the first rules that hold."""
        one, seen = self._chosen, self.world.access.shown.value
        about = self.query_one("#about", Words)
        if one is None or seen is None:
            about.show_parts("")
            return
        lines = [f"may do everything: {one.everything}"] if one.everything else []
        rules = seen.policy.rules if seen.policy is not None else ()
        mine = [acls.sentence(rule) for rule in rules if is_about(rule, one.principal)]
        lines += mine[:_RULES_SHOWN]
        if len(mine) > _RULES_SHOWN:
            lines[-1] += f", and {len(mine) - _RULES_SHOWN} more (Enter)"
        if not lines and seen.policy is not None and seen.policy.has_acls:
            lines = ["no ACL allows it anything"]
        about.show_parts((one.principal, "bold"), "\n" + "\n".join(lines) if lines else "")


def _cells(one: Person, seen: AccessSeen, now_s: float) -> tuple[Cell, ...]:
    long = ", ".join(one.mechanisms)
    short = ",".join(one.mechanisms).replace("SCRAM-SHA-", "SCRAM ", 1).replace("SCRAM-SHA-", "")
    last = one.last
    failed: Cell = (str(last.failed), "warn") if last is not None and last.failed else ""
    none: Cell = ("-", "dim")
    return (
        one.principal, short or none, long or none, _may(one, seen), _ago(one, now_s),
        last.address if last is not None else "", last.mechanism if last is not None else "",
        failed,
    )  # fmt: skip


def _may(one: Person, seen: AccessSeen) -> Cell:
    if one.everything:
        return "everything", "warn"
    if seen.policy is None or not seen.policy.has_acls:
        return "everything", "dim"
    if one.rules:
        return some(one.rules, "ACL")
    for_all = any(rule.principal == ANYBODY for rule in seen.policy.rules)
    return (f"as {ANYBODY}" if for_all else "nothing"), "dim"


def _ago(one: Person, now_s: float) -> Cell:
    if one.last is None or not one.last.time:
        return NOT_KNOWN, "dim"
    at_s = seconds_of(one.last.time)
    return (f"{age(now_s - at_s)} ago" if at_s else one.last.time[:12]), ""


def _by(one: Person, column: int) -> str | float:
    last = one.last
    values: tuple[str | float, ...] = (
        one.principal, ",".join(one.mechanisms), ",".join(one.mechanisms), float(one.rules),
        seconds_of(last.time) if last is not None else 0.0,
        last.address if last is not None else "", last.mechanism if last is not None else "",
        float(last.failed) if last is not None else 0.0,
    )  # fmt: skip
    return values[column]


def seconds_of(text: str) -> float:
    """A time of the audit in seconds since 1970; 0 where it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
