"""By which schema file keys or values of a topic are read: Avro's, or Protobuf's descriptors. What
is chosen changes nothing in the broker: it is kept for the topic, as other decoders are."""

import asyncio
import os
import threading
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import Input

from console.model.asking.failure import Failure
from console.model.decoding import schemas
from console.model.decoding.decoded import AUTO, KEY, VALUE
from console.model.decoding.memory import Choice
from console.model.decoding.schemas import Schema
from console.screens import lines
from console.screens.changes.dialog import describe_failure
from console.screens.sources import answered
from console.screens.view import Words

_OTHER: Final = {KEY: VALUE, VALUE: KEY}


class Files(Suggester):
    """Goes on with the first folder or schema file that begins like what is typed."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """The whole path, None when nothing begins so."""
        return await asyncio.to_thread(begun, value) if value else None


def begun(path: str) -> str | None:
    """The first folder or schema file whose path begins so."""
    folder, name = os.path.split(path)
    with suppress(OSError), os.scandir(os.path.expanduser(folder) or ".") as there:
        for one in sorted(there, key=lambda entry: entry.name):
            is_meant = one.name.startswith(name) and (name or not one.name.startswith("."))
            if is_meant and one.name.isprintable():
                if one.is_dir():
                    return os.path.join(folder, one.name, "")
                if one.name.endswith(schemas.ENDINGS):
                    return os.path.join(folder, one.name)
    return None


def flags(value: Choice, key: Choice) -> str:
    """How `penstock consume` reads what was chosen; "" where nobody chose."""
    words = "" if value.decoder == AUTO else f" --decode {value.decoder}"
    words += "" if key.decoder == AUTO else f" --decode-key {key.decoder}"
    of = next((one for one in (value, key) if one.decoder != AUTO and one.schema), None)
    if of is not None:
        words += f" --schema {lines.quoted(of.schema)}"
        words += f" --message {lines.quoted(of.message)}" if of.message else ""
    return words


class SchemaScreen(ModalScreen[tuple[str, Choice] | None]):
    """Ends with KEY or VALUE and what it is read by from now on, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "Cancel"),
        ("ctrl+o", "part", "Keys or values"),
    ]
    DEFAULT_CSS = """
    SchemaScreen { align: center middle; }
    SchemaScreen > Vertical {
        width: 84; max-width: 95%; height: auto;
        border: round $primary; padding: 0 1; background: $surface;
    }
    SchemaScreen Input { border: none; height: 1; padding: 0; background: $panel; }
    SchemaScreen #wrong { color: $text-error; text-style: bold; }
    """

    def __init__(self, topic: str, known: dict[str, Choice]) -> None:
        """known: by KEY and VALUE, what holds now."""
        super().__init__()
        self._topic = topic
        self._known = known
        self._part = VALUE
        self._is_read = False
        """The file is being read."""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Words(name="what")
            yield Input(id="file", compact=True, placeholder="order.avsc", suggester=Files())
            yield Words(name="which")
            yield Input(id="message", compact=True, placeholder="shop.Order")
            yield Words(name="how")
            yield Words(name="wrong")

    def on_mount(self) -> None:
        """The file is typed at once."""
        self.query_one("#which", Words).show_parts(
            ("Message, where Protobuf's descriptors have several:", "dim")
        )
        self._fill()

    def _fill(self) -> None:
        known = self._known[self._part]
        self.query_one("#file", Input).value = known.schema
        self.query_one("#message", Input).value = known.message
        self.query_one("#what", Words).show_parts(
            (f"Schema of the {self._part}s of {self._topic}\n", "bold"),
            (f"^o: of its {_OTHER[self._part]}s. File:", "dim"),
        )
        self.query_one("#how", Words).show_parts(
            (f"{' '.join(schemas.AVRO_ENDINGS)}: Avro. {' '.join(schemas.SETS)}: descriptors of"
             " Protobuf, as protoc --include_imports --descriptor_set_out=FILE.desc writes them.\n"
             "→ goes on with the name. Enter reads all of the topic by it, now and later; without a"
             " file as what fits. Esc does not.", "dim"),
        )  # fmt: skip
        for box in self.query(Input):
            box.cursor_position = len(box.value)
        self.query_one("#file", Input).focus()

    def action_part(self) -> None:
        """Switches between keys and values."""
        self._part = _OTHER[self._part]
        self._fill()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Clears the message about a mistake."""
        event.stop()
        self.query_one("#wrong", Words).show_parts("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Read the file, in a thread: it may be far, and its library is loaded."""
        event.stop()
        typed, message = (self.query_one(f"#{one}", Input).value.strip() for one in _TYPED)
        if not typed:
            self.dismiss((self._part, Choice()))
        elif not self._is_read:
            self._is_read = True
            path = os.path.abspath(os.path.expanduser(typed))
            chosen = partial(self._chosen, self._part, path, message)

            def run() -> None:
                found = answered(path, lambda: schemas.load(path, message))
                with suppress(RuntimeError):  # the loop has ended
                    self.app.call_later(chosen, found)

            threading.Thread(target=run, name=f"read {path}", daemon=True).start()

    def _chosen(self, part: str, path: str, message: str, found: Schema | Failure) -> None:
        self._is_read = False
        if not self.is_current:
            return  # nobody waited for it
        if isinstance(found, Failure):
            self.query_one("#wrong", Words).show_parts(f"✗ {describe_failure(found)}")
        else:
            self.dismiss((part, Choice(found.kind, path, message)))


_TYPED: Final = ("file", "message")
