"""Quotas: every limit with how much of it is used, and who uses it, the throttled first."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from appliance.quotas.limits import Entity, entity_text
from console.model.quotas.quota_change import proposal
from console.model.quotas.quota_rules import together
from console.model.quotas.quota_values import brief, shown
from console.model.quotas.quotas import Seen, Usage, client
from console.screens import quota_form
from console.screens.actions import ALL_QUOTAS, bindings
from console.screens.places import QUOTA, Place, keeps
from console.screens.prompt import JUMP, Prompt
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import NOT_KNOWN, age, some, took
from console.show.what_if import what_if

_FULL, _NEAR = 1.0, 0.8
_WIDE: Final = 110
_WIDER: Final = 132  # who it is matters more than by whose quota, which is told below
_NO_QUOTA: Final = "there is no quota under the cursor"
_RULES: Final = (
    Column("QUOTAS OF", 0),
    Column("QUOTA", 11),
    Column("LIMIT", 10, right=True),
    Column("CLIENTS", 7, right=True, from_width=_WIDE),
    Column("RATE", 10, right=True),
    Column("USED", 6, right=True),
    Column("THROTTLED", 9, right=True),
)
_LIVE: Final = (
    Column("WHO", 0),
    Column("QUOTA", 11),
    Column("LIMIT", 10, right=True, from_width=_WIDE),
    Column("RATE", 10, right=True),
    Column("USED", 6, right=True),
    Column("WAITS", 7, right=True),
    Column("FOR", 9, right=True),
    Column("TIMES", 7, right=True, from_width=_WIDE),
    Column("BY THE QUOTA OF", 32, from_width=_WIDER),
)


class QuotasView(View):
    """Two tables, Tab goes from one to the other. Enter on a client tells which quotas hold for
    it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_QUOTAS)
    DEFAULT_CSS = """
    QuotasView #rules { height: 1fr; }
    QuotasView #live { height: 1fr; border-top: solid $foreground 20%; }
    QuotasView #about { height: 2; padding: 0 1; color: $text-muted; }
    QuotasView.large #about { height: 4; }
    QuotasView.wide #rules, QuotasView.wide #live { width: 1fr; }
    """
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {
        "rules": "Quotas  {}", "live": "Clients that use a quota  {}", "about": "Under the cursor",
    }  # fmt: skip
    summary_in: ClassVar[str] = "rules"

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        with Container(classes="panes"):
            yield Rows(_RULES, name="rules", opens=False)
            yield Rows(_LIVE, name="live")
        yield Words(name="about")

    def on_mount(self) -> None:
        """Starts without rules or usage."""
        self._rules: dict[str, tuple[Entity, str]] = {}
        self._live: dict[str, Usage] = {}

    def paint(self) -> None:
        seen = self.world.quotas.shown.value
        rules, live = self.query_one("#rules", Rows), self.query_one("#live", Rows)
        if seen is None:
            rules.show_rows([], lambda key: (key,), empty=self.waiting())
            live.show_rows([], lambda key: (key,), empty="")
            return
        self._summary(seen)
        self._paint_rules(seen, rules)
        self._paint_live(seen, live)
        self._about()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another row is under the cursor."""
        event.stop()
        self._about()

    def on_descendant_focus(self) -> None:
        """The cursor is in the other table."""
        self._about()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To the quotas of that client."""
        event.stop()
        one = self._live.get(event.key)
        if one is not None and (who := client(one)) is not None:
            self.post_message(self.Go(Place(QUOTA, who.text)))

    def action_describe(self) -> None:
        """Ask who the client is."""
        ask_whose(self)

    def action_new_quota(self) -> None:
        """Ask whose, and how much. What is typed first is the client under the cursor."""
        live = self.query_one("#live", Rows)
        one = self._live.get(live.key or "") if live.has_focus else None
        who = client(one) if one is not None else None
        self.propose(quota_form.new(who.entity if who is not None else ()))

    def action_edit_quota(self) -> None:
        """The quotas of whoever has the one under the cursor."""
        seen = self.world.quotas.shown.value
        if self.rule is None or seen is None:
            self.notify(_NO_QUOTA, markup=False)
            return
        entity, kind = self.rule
        self.propose(quota_form.edit(entity, seen.quotas.get(entity, {}), kind))

    def action_delete_quota(self) -> None:
        """Take the quota under the cursor away."""
        if self.rule is None:
            self.notify(_NO_QUOTA, markup=False)
            return
        entity, kind = self.rule
        self.propose(proposal(entity, {kind: None}, what_if))

    @property
    def rule(self) -> tuple[Entity, str] | None:
        """(whose, which) quota is under the cursor, None where there is none."""
        return self._rules.get(self.query_one("#rules", Rows).key or "")

    def _summary(self, seen: Seen) -> None:
        count = sum(map(len, seen.quotas.values()))
        waiting = [one for one in seen.usage if one.throttle_ms]
        words = self.query_one("#summary", Words)
        told = f"{some(count, 'quota')} of {some(len(seen.quotas), 'entity')}"
        told = told.replace("entitys", "entities")
        if seen.untold is not None:
            words.show_parts(f"{told}  ", (f"{seen.untold.message}: {seen.untold.hint}", "dim"))
        elif waiting:
            words.show_parts(
                f"{told}  ", (f"{some(len(waiting), 'client')} throttled now", "yellow")
            )
        else:
            words.show_parts(f"{told}  ", ("no client is throttled now", "green") if count else "")

    def _paint_rules(self, seen: Seen, rows: Rows) -> None:
        found = {
            f"{entity_text(entity)}\0{kind}": (entity, kind)
            for entity, quotas in sorted(seen.quotas.items(), key=str)
            for kind in sorted(quotas)
            if keeps(self.filter_text, f"{entity_text(entity)} {kind} {brief(kind)}")
        }
        self._rules = found
        used: dict[tuple[str, str], list[Usage]] = {}
        for one in seen.usage:
            used.setdefault((one.set_for, one.quota), []).append(one)

        def of(key: str) -> tuple[str, str, float, list[Usage] | None]:
            entity, kind = found[key]
            name = entity_text(entity)
            known = None if seen.untold is not None else used.get((name, kind), [])
            return name, kind, seen.quotas[entity][kind], known

        rows.show_rows(
            list(found), lambda key: _rule(*of(key)), lambda key, n: _rule_by(*of(key), n),
            empty="no quota matches" if self.filter_text else
            "no quota is set: n sets the first one",
        )  # fmt: skip

    def _paint_live(self, seen: Seen, rows: Rows) -> None:
        order = sorted(seen.usage, key=lambda one: (not one.throttle_ms, -one.used))
        keyed = {f"{_who(one)} {one.quota} {one.set_for}": one for one in order}
        found = {key: one for key, one in keyed.items() if keeps(self.filter_text, key)}
        self._live = found
        nobody = "no client has used a quota since the broker started"
        rows.show_rows(
            list(found), lambda key: _use(found[key]), lambda key, n: _use_by(found[key], n),
            empty=nobody if seen.untold is None else "",
        )  # fmt: skip

    def _about(self) -> None:
        """Shows the details of the row under the cursor."""
        live, seen = self.query_one("#live", Rows), self.world.quotas.shown.value
        one = self._live.get(live.key or "") if live.has_focus else None
        told = ""
        if one is not None:
            limit = f"{one.quota} {shown(one.quota, one.limit)} of {one.set_for}"
            times = f", throttled {_times(one.throttled)}" if one.throttled else ""
            last = f"last pause {took(one.last_throttle_ms / 1000)}{times}" if times else ""
            told = f"held to {limit}\n{last}"
        elif self.rule is not None and seen is not None:
            entity, kind = self.rule
            limit = shown(kind, seen.quotas.get(entity, {}).get(kind)) or ""
            told = f"{kind} {limit} of {entity_text(entity)}\ncounted together: {together(entity)}"
        self.query_one("#about", Words).show_parts(told)


def ask_whose(view: View) -> None:
    """Let a client be typed; Enter leads to what holds for it."""
    view.app.query_one(Prompt).open_prompt(JUMP, f"{QUOTA} ")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _who(one: Usage) -> str:
    who = client(one)
    return who.text if who is not None else "everybody"


def _rule(name: str, kind: str, limit: float, used: list[Usage] | None) -> tuple[Cell, ...]:
    told = name, brief(kind), shown(kind, limit) or ""
    if used is None:
        return (*told, *((NOT_KNOWN, "dim"),) * 4)
    throttled = sum(bool(one.throttle_ms) for one in used)
    return (
        *told,
        str(len(used)),
        shown(kind, sum(one.rate for one in used)) or "",
        share(max((one.used for one in used), default=0.0)),
        (f"{throttled} now", "warn") if throttled else "",
    )


def _rule_by(
    name: str, kind: str, limit: float, used: list[Usage] | None, column: int
) -> str | float:
    used = used or []
    values: tuple[str | float, ...] = (
        name, brief(kind), limit, len(used), sum(one.rate for one in used),
        max((one.used for one in used), default=0.0), sum(bool(one.throttle_ms) for one in used),
    )  # fmt: skip
    return values[column]


def _use(one: Usage) -> tuple[Cell, ...]:
    return (
        _who(one), brief(one.quota), shown(one.quota, one.limit) or "",
        shown(one.quota, one.rate) or "", share(one.used), *throttled(one), str(one.throttled),
        (one.set_for, "dim"),
    )  # fmt: skip


def _use_by(one: Usage, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        _who(one), brief(one.quota), one.limit, one.rate, one.used, one.throttle_ms,
        one.throttled_for_ms, one.throttled, one.set_for,
    )  # fmt: skip
    return values[column]


def share(used: float) -> Cell:
    """How much of a limit is used: 97 %."""
    told = f"{used * 100:.0f} %" if used < 1000 else ">999 x"
    return told, "bad" if used > _FULL else "warn" if used >= _NEAR else ""


def throttled(one: Usage) -> tuple[Cell, Cell]:
    """How long it still waits, and for how long it has been held again and again."""
    held = age(one.throttled_for_ms / 1000) if one.throttled_for_ms else ""
    if one.throttle_ms:
        return (took(one.throttle_ms / 1000), "warn"), (held, "warn")
    return "", (held, "dim")
