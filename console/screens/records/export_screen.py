"""Where an export goes to: a file's name, which also says the form; what of the topic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.records.export import Export
from console.model.records.filters import Filter
from console.model.records.reading import Record
from console.model.records.running import Running
from console.model.records.seeking import seek_of
from console.screens import lines
from console.screens.view import Words
from console.show import record_csv, record_json
from console.show.record_format import printer


@dataclass(slots=True, frozen=True)
class Form:
    """A form of exports. flag: of `penstock consume`."""

    about: str
    flag: str
    show: Callable[[Record], bytes]
    head: bytes = b""


_RAW: Final = Form("the bytes of each value as they are, and a newline", "", printer("%v\\n"))
FORMS: Final = {
    ".jsonl": Form("a line of JSON for each record, bytes that are no text in base64", " -J",
                   record_json.whole),
    ".csv": Form("titles and a row for each record, bytes that are no text in base64", " --csv",
                 record_csv.line, record_csv.TITLES),
}  # fmt: skip


def form_of(path: str) -> Form:
    """By the end of the file's name: .jsonl, .csv; everything else is raw."""
    return next((form for end, form in FORMS.items() if path.strip().endswith(end)), _RAW)


class ExportScreen(ModalScreen[Export | None]):
    """Asks until it can begin, or until Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "Cancel"),
        ("ctrl+r", "range", "What"),
        ("ctrl+o", "over", "Write over"),
    ]
    DEFAULT_CSS = """
    ExportScreen { align: center middle; }
    ExportScreen > Vertical {
        width: 76; max-width: 95%; height: auto;
        border: round $primary; padding: 0 1; background: $surface;
    }
    ExportScreen Input { border: none; height: 1; padding: 0; background: $panel; }
    ExportScreen #wrong { color: $text-error; text-style: bold; }
    """

    def __init__(self, running: Running, link: Link) -> None:
        super().__init__()
        self._at_work = running
        self._link = link
        self._all = False
        self._over = False
        self._wrong = ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Words(name="what")
            yield Input(f"{_plain_name(self._at_work.topic)}.jsonl", compact=True)
            yield Words(name="how")
            yield Words(name="wrong")

    def on_mount(self) -> None:
        """The name is typed at once."""
        self.query_one(Input).focus()
        self._paint()

    def _paint(self) -> None:
        path = self.query_one(Input).value
        found = f"what the filter finds in what was looked at: {self._at_work.progress.found:,}"
        whole = "every record of the whole range, found or not"
        self.query_one("#what", Words).show_parts(
            ("Export ", "bold"), f"{whole if self._all else found}\n",
            ("^r changes that. To the file, .jsonl, .csv or raw by its name:", "dim"),
        )  # fmt: skip
        over = " It is written over." if self._over else ""
        self.query_one("#how", Words).show_parts(
            (f"{form_of(path).about}.{over}\n", "dim"), f"$ {self._line(path)}\n",
            ("Enter begins, Esc does not.", "dim"),
        )  # fmt: skip
        self.query_one("#wrong", Words).show_parts(self._wrong)

    def _line(self, path: str) -> str:
        running = self._at_work
        spans = running.spans() if self._all else running.looked_at()
        words = f"penstock consume {lines.quoted(running.topic)} -o {lines.quoted(seek_of(spans))}"
        if running.filter.text and not self._all:
            words += f" --filter {lines.quoted(running.filter.text)}"
        words = lines.asking(f"{words} -e{form_of(path).flag}", self._link.bootstrap)
        return f"{words} > {lines.quoted(path.strip())}"

    def on_input_changed(self, event: Input.Changed) -> None:
        """The form goes by the name."""
        event.stop()
        self._wrong = ""
        self._paint()

    def action_range(self) -> None:
        """Switches between the found records and all."""
        self._all = not self._all
        self._paint()

    def action_over(self) -> None:
        """Write over a file that is there, or not."""
        self._over = not self._over
        self._wrong = ""
        self._paint()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Begin, unless there is such a file."""
        event.stop()
        running, path = self._at_work, event.value
        form = form_of(path)
        try:
            export = Export(
                self._link,
                running.spans() if self._all else running.looked_at(),
                Filter() if self._all else running.filter,
                form.show,
                path,
                over=self._over,
                head=form.head,
            )
        except Failure as wrong:
            self._wrong = f"✗ {wrong.message}  → {wrong.hint}"
            if "write over" in wrong.hint:
                self._wrong += ": ^o"
            self._paint()
            return
        self.dismiss(export)


def _plain_name(topic: str) -> str:
    return "".join(char if char.isalnum() or char in "._-" else "_" for char in topic)[:100]
