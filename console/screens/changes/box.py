"""The frame that dialogs and forms have in common: title, what there is to say, buttons."""

from collections.abc import Iterator
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input
from textual.widgets.button import ButtonVariant

from console.screens.view import Words

CANCEL: Final = "cancel"
GO: Final = "go"


class Box(ModalScreen[bool]):
    """Above the place where somebody is; True when what it is for was done. Messages of what is
    typed in it end here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel"),
        Binding("left", "app.focus_previous", "To the button before", show=False),
        Binding("right", "app.focus_next", "To the next button", show=False),
    ]
    DEFAULT_CSS = """
    Box { align: center middle; }
    Box > Vertical {
        width: 92; max-width: 96%; height: auto; max-height: 96%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    Box.irrevocable > Vertical { border: round $error; }
    Box #heading { text-style: bold; margin-bottom: 1; }
    Box #status { color: $text-error; display: none; margin-top: 1; }
    Box #status.there { display: block; }
    Box #buttons { height: 1; margin-top: 1; }
    Box Button { margin-right: 2; }
    Box Input { border: none; height: 1; padding: 0; width: 1fr; background: $panel; }
    Box #keys { width: 1fr; text-align: right; color: $text-muted; }
    """

    def buttons(self, verb: str, variant: ButtonVariant = "primary") -> Iterator[Widget]:
        """Cancel first: it is the default."""
        with Horizontal(id="buttons"):
            yield _button("Cancel", CANCEL)
            yield _button(verb, GO, variant)
            yield Words(name="keys")

    def show_words(self, words: str) -> None:
        """Shows progress or a failure; "" for neither."""
        status = self.query_one("#status", Words)
        status.set_class(bool(words), "there")
        status.show_parts(words)

    def button(self, which: str) -> Button:
        """CANCEL or GO."""
        return self.query_one(f"#{which}", Button)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Does what the button says."""
        event.stop()
        if not self.is_current:
            return  # it was pressed twice, and the first time has closed this
        if event.button.id == GO:
            self.action_go()
        else:
            self.action_leave()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keeps the event from views below."""
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter, where something is typed."""
        event.stop()
        self.action_go()

    def action_go(self) -> None:
        """Go on, as far as that can be done."""

    def action_leave(self) -> None:
        """Closes the box without a change."""
        self.dismiss(False)


def _button(words: str, which: str, variant: ButtonVariant = "default") -> Button:
    button = Button(Content(words), id=which, compact=True, variant=variant)
    # Meanwhile Textual's is deaf, and a broker may answer sooner; who is at work takes no second.
    button.active_effect_duration = 0
    return button
