"""A Form on the screen: its fields, what is wrong in each, and what the broker says of it.

TYPING ─ go, nothing is wrong ─> AT_WORK ─ it failed, or was left ─> TYPING
                                    └── done: it closes, and its draft is forgotten
"""

from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import DescendantFocus
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Checkbox, Input, TextArea

from console.model.asking.change import Change, Proposal, Tier
from console.model.asking.failure import Failure
from console.screens.changes.box import GO, Box
from console.screens.changes.dialog import PlanDialog, describe_failure
from console.screens.changes.form import FLAG, LINES, YES, Field, Form
from console.screens.view import Words
from console.show.output import plain

if TYPE_CHECKING:
    from console.screens.changes.door import Door

_LABEL: Final = 18
_TALLEST: Final = 22
_LEAST: Final = 4
_FRAME: Final = 2
_SHARE: Final = 96
"""Per cent of the screen that the box may take."""


class FormScreen(Box):
    """door: through which what was typed goes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "go", "Go on", priority=True)]
    DEFAULT_CSS = f"""
    FormScreen #fields {{ height: auto; }}
    FormScreen .field {{ height: auto; }}
    FormScreen .label {{ width: {_LABEL}; height: 1; }}
    FormScreen .wrong {{ color: $text-error; padding-left: {_LABEL}; display: none; }}
    FormScreen .wrong.there {{ display: block; }}
    FormScreen TextArea {{ border: none; padding: 0; width: 1fr; }}
    FormScreen Checkbox {{ border: none; height: 1; padding: 0; }}
    FormScreen #about {{ color: $text-muted; height: 2; margin-top: 1; }}
    FormScreen #preview {{ display: none; margin-top: 1; max-height: 6; }}
    FormScreen #preview.there {{ display: block; }}
    """

    def __init__(self, door: "Door", form: Form) -> None:
        super().__init__()
        self._door = door
        self._form = form
        self._proposal: Proposal | None = None
        self._is_unsure = False
        """An earlier try had no answer: asked about before the same is sent again."""

    @property
    def is_at_work(self) -> bool:
        """True while the typed change is on its way."""
        return self._proposal is not None

    def compose(self) -> ComposeResult:
        draft = self._door.drafts.get(self._form.title, {})
        with Vertical():
            yield Words(name="heading")
            with VerticalScroll(id="fields"):
                for n, one in enumerate(self._form.fields):
                    with Horizontal(classes="field"):
                        yield Words(name=f"label-{n}", classes="label")
                        yield _input(one, draft.get(one.key, one.value), f"field-{n}")
                    yield Words(name=f"wrong-{n}", classes="wrong")
            yield Words(name="preview")
            yield Words(name="about")
            yield Words(name="status")
            yield from self.buttons("Go on")

    def on_mount(self) -> None:
        """The first field has the cursor."""
        self.query_one("#heading", Words).show_parts(self._form.title)
        self.query_one("#keys", Words).show_parts("Tab  Enter  Esc keeps it")
        self.query_one("#fields").can_focus = False
        for n, one in enumerate(self._form.fields):
            self.query_one(f"#label-{n}", Words).show_parts(one.title)
        self.set_focus(self._field(0))
        self._preview()

    def on_resize(self) -> None:
        """On another screen there is other room."""
        self.call_after_refresh(self._fit)

    def show_words(self, words: str) -> None:
        """Shows a message, which takes its room from the fields."""
        super().show_words(words)
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Scrolls the fields, so that all around them stays visible."""
        if not self.is_attached:
            return
        around = sum(
            one.outer_size.height + one.styles.margin.height
            for one in self.query_one(Vertical).children
            if one.id != "fields" and one.display
        )
        left = self.size.height * _SHARE // 100 - _FRAME - around
        self.query_one("#fields").styles.max_height = max(_LEAST, min(_TALLEST, left))

    def _field(self, number: int) -> Widget:
        return self.query_one(f"#field-{number}")

    @property
    def values(self) -> dict[str, str]:
        """The typed values."""
        return {one.key: _value(self._field(n)) for n, one in enumerate(self._form.fields)}

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Explains the field under the cursor."""
        about = {f"field-{n}": one.about for n, one in enumerate(self._form.fields)}
        words = about.get(event.widget.id or "") or self._form.about
        self.query_one("#about", Words).show_parts(words)

    def on_input_changed(self, event: Input.Changed) -> None:
        """It is kept, whatever comes."""
        super().on_input_changed(event)
        self._typed()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """The same, of several lines."""
        event.stop()
        self._typed()

    def on_checkbox_changed(self, event: Checkbox.Changed) -> None:
        """The same, of a yes or no."""
        event.stop()
        _mark(event.checkbox)
        self._typed()

    def _typed(self) -> None:
        values = self.values
        first = {one.key: _shown(one.value, one.kind) for one in self._form.fields}
        if values != first:
            self._door.drafts[self._form.title] = values
        else:
            self._door.drafts.pop(self._form.title, None)
        self._preview()
        self._is_unsure = False  # it is something else now

    def _preview(self) -> None:
        words = self._form.preview(self.values) if self._form.preview is not None else ""
        shown = self.query_one("#preview", Words)
        shown.set_class(bool(words), "there")
        shown.show_parts(words)
        self.call_after_refresh(self._fit)

    def action_go(self) -> None:
        """Propose it, when nothing is wrong in it."""
        if self.is_at_work or self.app.screen is not self:
            return
        values = self.values
        if self._mark(self._form.wrong(values)):
            return
        try:
            proposal = self._form.propose(values)
        except Failure as failure:
            self.show_words(describe_failure(failure))
            return
        self._work(proposal)
        self.show_words("asking what it would do …")
        self._door.plan(proposal, self._planned)

    def _mark(self, wrong: dict[str, str]) -> bool:
        """Say below each field what is wrong in it, and go to the first such one."""
        for n, one in reversed(list(enumerate(self._form.fields))):
            line = self.query_one(f"#wrong-{n}", Words)
            line.set_class(one.key in wrong, "there")
            line.show_parts(wrong.get(one.key, ""))
            if one.key in wrong:
                self._field(n).focus()
        return bool(wrong)

    def _work(self, proposal: Proposal | None) -> None:
        self._proposal = proposal
        self.button(GO).disabled = proposal is not None

    def _planned(self, answer: Change | Failure) -> None:
        if not self.is_attached or self._proposal is None:
            return
        if isinstance(answer, Failure):
            self._work(None)
            self.show_words(describe_failure(answer))
        elif self._proposal.tier is Tier.UNDO:
            self.show_words("it is being done …")
            self._door.carry_out(
                self._proposal, answer, self._told, self._ended, unsure=self._is_unsure
            )
        else:
            self.show_words("")
            self.app.push_screen(PlanDialog(self._door, self._proposal, answer), self._left)

    def _left(self, is_done: bool | None) -> None:
        self._work(None)
        if is_done:
            self._close()

    def _told(self, words: str) -> None:
        if self.is_attached:
            self.show_words(words)

    def _ended(self, answer: str | Failure) -> None:
        if not self.is_attached:
            return
        self._work(None)
        if isinstance(answer, Failure):
            self._is_unsure = answer.name == "NOT_KNOWN"
            self.show_words(describe_failure(answer))
        else:
            self._close()

    def _close(self) -> None:
        self._door.drafts.pop(self._form.title, None)
        self.dismiss(True)

    def action_leave(self) -> None:
        """Leave it; what was typed is there when it is opened again."""
        if self.is_at_work:
            self._door.stop_waiting()
        else:
            self.dismiss(False)


def _input(field: Field, value: str, id_: str) -> Widget:
    shown = _shown(value, field.kind)
    if field.kind == FLAG:
        box = Checkbox("yes", value == YES, id=id_, compact=True)
        _mark(box)
        return box
    if field.kind == LINES:
        area = TextArea(shown, id=id_, compact=True, tab_behavior="focus")
        area.styles.height = field.lines
        return area
    choices = [one for one in field.choices if one.isprintable()]
    suggester = SuggestFromList(choices) if choices else None
    hint = plain(field.hint or " | ".join(choices))
    return Input(shown, hint, id=id_, compact=True, suggester=suggester, select_on_focus=False)


def _mark(box: Checkbox) -> None:
    """Textual tells yes from no by colour alone, which not everybody sees."""
    box.BUTTON_INNER = "X" if box.value else " "
    box.refresh(layout=True)


def _shown(value: str, kind: str) -> str:
    """Escapes control characters in a broker's value."""
    return "\n".join(map(plain, value.split("\n"))) if kind == LINES else plain(value)


def _value(field: Widget) -> str:
    if isinstance(field, Checkbox):
        return YES if field.value else ""
    if isinstance(field, TextArea):
        return field.text
    assert isinstance(field, Input), "there are three kinds of fields"
    return field.value
