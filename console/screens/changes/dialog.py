"""The dialog of one change: what it would do, the command that does the same, and whether to.

    ASKING ─ plan came ─> READY ─ go ─> AT_WORK ─ it failed ─> READY, or OVER when nobody knows
       └──── it failed ──> OVER             ├── the plan does not hold any more ─> ASKING
                                            └── done: it closes

Cancel has the focus; for what cannot be taken back its name is typed first.
"""

from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input

from console.model.asking.change import BYTES, STALE, Cell, Change, Fact, Proposal, Tier
from console.model.asking.failure import Failure
from console.screens.changes.box import CANCEL, GO, Box
from console.screens.rows import Column, Rows
from console.screens.view import Part, Words
from console.show.figures import NOT_KNOWN, in_bytes
from console.show.output import plain

if TYPE_CHECKING:
    from console.screens.changes.door import Door

ASKING, READY, AT_WORK, OVER = "asking", "ready", "at work", "over"
_MOVES: Final = {
    ASKING: (READY, OVER),
    READY: (AT_WORK,),
    AT_WORK: (READY, ASKING, OVER),
    OVER: (),
}
_WIDEST: Final = 34
_ROUND: Final = 15
"""Lines of the dialog around its table."""


class PlanDialog(Box):
    """door: through which it is done. change: its plan, when it is there already."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy the command line")]
    DEFAULT_CSS = """
    PlanDialog #about { height: auto; max-height: 30vh; }
    PlanDialog #command { color: $text-muted; margin-top: 1; max-height: 4; }
    PlanDialog #question { margin-top: 1; }
    """

    def __init__(self, door: "Door", proposal: Proposal, change: Change | None = None) -> None:
        super().__init__(classes="irrevocable" if proposal.tier is Tier.NAME else None)
        self.state = ASKING
        self._door = door
        self._proposal = proposal
        self._given = change
        self._change: Change | None = None
        self._is_unsure = False
        self._stale = ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Words(name="heading")
            with VerticalScroll(id="about"):
                yield Words(name="facts")
            yield Words(name="command")
            if self._proposal.names:
                yield Words(name="question")
                yield Input(compact=True, id="typed")
            yield Words(name="status")
            yield from self.buttons("…", "error" if self._proposal.names else "primary")

    def on_mount(self) -> None:
        """Ask what it would do, unless that is known."""
        self.query_one("#heading", Words).show_parts(self._proposal.title)
        self.query_one("#keys", Words).show_parts(
            f"Tab  Enter  Esc{' goes back' if self._given else ''}   y copies the line"
        )
        if self._given is not None:
            self.button(CANCEL).label = "Back"  # to the form, which has what was typed
        self.query_one("#about").can_focus = False
        names = self._proposal.names
        if names:
            what = names[0] if len(names) == 1 else f"how many these are ({len(names)})"
            self.query_one("#question", Words).show_parts("Type ", (what, "bold"), " to continue:")
            self.set_focus(self.query_one("#typed"))
        else:
            self.set_focus(self.button(CANCEL))
        self.button(GO).disabled = True
        if self._given is not None:
            self.call_later(self._planned, self._given)
        else:
            self.show_words("asking what it would do …")
            self._door.plan(self._proposal, self._planned)

    def _move(self, state: str) -> None:
        assert state in _MOVES[self.state], f"{self.state} → {state}"
        self.state = state
        self._enable()

    async def _planned(self, answer: Change | Failure) -> None:
        if not self.is_attached:
            return  # nobody waited for it
        if isinstance(answer, Failure):
            self._move(OVER)
            self.query("#about, #command, #question, #typed, #go").set(display=False)
            self.button(CANCEL).focus()
            self.show_words(describe_failure(answer))
            return
        self._change = answer
        about = _about(answer)
        self.query_one("#about").display = bool(about)
        self.query_one("#facts", Words).show_parts(*about)
        line = self._door.line(answer)
        self.query_one("#command", Words).show_parts(
            f"$ {line}" if line else "no line: it has a secret"
        )
        self.button(GO).label = Content(plain(answer.verb))
        await self.query("#plan").remove()
        if answer.rows:
            columns = _columns(answer)
            table = Rows(columns, name="plan", opens=False)
            table.styles.height = max(3, min(len(answer.rows) + 1, self.size.height - _ROUND))
            await self.query_one(Vertical).mount(table, after="#about")
            pad = ("",) * (len(columns) - len(answer.columns))
            rows = {str(n): (*map(_cell, row), *pad) for n, row in enumerate(answer.rows)}
            table.show_rows(list(rows), rows.__getitem__)
        self.show_words(self._stale)
        self._move(READY)
        if self._stale:
            self.set_focus(self.button(CANCEL))

    def _enable(self) -> None:
        self.button(GO).disabled = self.state != READY or not self._is_named()
        if not (self.focused and self.focused.focusable):
            self.button(CANCEL).focus()

    def _is_named(self) -> bool:
        names = self._proposal.names
        if not names:
            return True
        typed = self.query_one("#typed", Input).value
        return typed in ((names[0], plain(names[0])) if len(names) == 1 else (str(len(names)),))

    def on_input_changed(self, event: Input.Changed) -> None:
        """The name opens the way."""
        super().on_input_changed(event)
        if self.state == READY:
            self._enable()

    def action_go(self) -> None:
        """Do it, once it is known what it does and its name is typed."""
        if self.state != READY or self._change is None:
            return
        if not self._is_named():
            self.show_words("the name does not match: nothing was done")
            return
        self._move(AT_WORK)
        self.show_words("it is being done …")
        self._door.carry_out(
            self._proposal, self._change, self._told, self._ended, unsure=self._is_unsure
        )

    def _told(self, words: str) -> None:
        if self.is_attached:
            self.show_words(words)

    def _ended(self, answer: str | Failure) -> None:
        if not self.is_attached:
            return
        if not isinstance(answer, Failure):
            self.dismiss(True)
            return
        if answer.name == STALE:
            self._again(answer)
            return
        self._is_unsure = answer.name == "NOT_KNOWN"
        assert self._change is not None, "what was not planned was not tried"
        lost = self._is_unsure and self._change.seen is None
        self._move(OVER if lost else READY)
        if self._is_unsure and not lost:
            self.button(GO).label = "Ask and continue"
        self.show_words(describe_failure(answer))

    def _again(self, why: Failure) -> None:
        """Something happened between the plan and the yes to it: it is made and shown again, and
        Cancel is the default again."""
        self._stale = describe_failure(why)
        self._move(ASKING)
        self.show_words(self._stale)
        self._door.plan(self._proposal, self._planned)

    def action_leave(self) -> None:
        """Leave it; what is on its way is waited for no longer than for an answer."""
        if self.state == AT_WORK:
            self._door.stop_waiting()
            self.show_words("it is on its way: waiting for its answer …")
        else:
            self.dismiss(False)

    def action_copy(self) -> None:
        """The command line, to the terminal's clipboard."""
        if self._change is not None:
            self._door.copy(self._door.line(self._change))


def describe_failure(failure: Failure) -> str:
    """A failure as a sentence, with its remedy."""
    return failure.message + (f"  → {failure.hint}" if failure.hint else "")


def _about(change: Change) -> list[Part]:
    parts: list[Part] = [f"{words}\n" for words in change.says]
    width = max((len(one.what) for one in change.facts), default=0)
    for one in change.facts:
        parts += [(f"{one.what:<{width}}  ", "dim"), f"{_fact(one)}\n"]
    return parts


def _fact(one: Fact) -> str:
    if one.value is None:
        return NOT_KNOWN
    if isinstance(one.value, str):
        return one.value
    return in_bytes(one.value) if one.unit == BYTES else f"{one.value:,} {one.unit}".rstrip()


def _cell(value: Cell) -> str:
    return NOT_KNOWN if value is None else str(value)


def _columns(change: Change) -> list[Column]:
    """As wide as what is in them; the last one takes what is left."""
    found = []
    for n, title in enumerate(change.columns):
        values = [row[n] for row in change.rows]
        width = max(len(title), *(len(plain(_cell(one))) for one in values[:1000]))
        right = all(isinstance(one, int) or one is None for one in values)
        found.append(Column(title.upper(), min(width, _WIDEST), right=right))
    if found[-1].right:
        return [*found, Column("", 0)]
    return [*found[:-1], Column(found[-1].title, 0)]
