"""The line where something is typed: behind `:` where to go, behind `/` what to keep."""

from collections.abc import Callable, Mapping

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.suggester import Suggester
from textual.widgets import Input

from console.screens.places import GROUP, JOB, QUOTA, TOPIC
from console.screens.view import Words

JUMP = ":"
FILTER = "/"


class Names(Suggester):
    """Goes on with the first name that begins like what is typed behind `topic`, `group` or
    `quota`."""

    def __init__(self, names: Callable[[], Mapping[str, list[str]]]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._names = names

    async def get_suggestion(self, value: str) -> str | None:
        """The whole line, None when nothing begins so."""
        word, space, begun = value.partition(" ")
        kinds = (TOPIC, GROUP, QUOTA, JOB)
        kind = next((one for one in kinds if f"{one}s".startswith(word)), "")
        if not (word and space and begun and kind):
            return None
        names = self._names().get(kind, [])
        found = next((name for name in names if name.startswith(begun)), None)
        return f"{word} {found}" if found is not None and found.isprintable() else None


class Prompt(Horizontal):
    """Hidden until it is opened."""

    DEFAULT_CSS = """
    Prompt { height: 1; display: none; }
    Prompt.open { display: block; }
    Prompt Words { width: 2; text-style: bold; color: $text-primary; }
    Prompt Input { border: none; height: 1; padding: 0; width: 1fr; background: $surface; }
    """

    def __init__(self, names: Callable[[], Mapping[str, list[str]]]) -> None:
        super().__init__()
        self._names = names
        self.kind = ""

    def compose(self) -> ComposeResult:
        yield Words()
        yield Input(suggester=Names(self._names), compact=True, select_on_focus=False)

    @property
    def is_open(self) -> bool:
        """True while text is being typed."""
        return bool(self.kind)

    def open_prompt(self, kind: str, text: str = "") -> None:
        """Let JUMP or FILTER be typed."""
        self.kind = kind
        self.query_one(Words).show_parts(kind)
        self.add_class("open")
        typed = self.query_one(Input)
        typed.value = text
        typed.cursor_position = len(text)
        typed.focus()

    def close(self) -> None:
        """It is hidden again."""
        self.kind = ""
        self.remove_class("open")
