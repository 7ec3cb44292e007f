"""Preview: what a job would derive from the last records of its sources. Nothing is written."""

import json
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, ClassVar, Final

from textual.app import ComposeResult

from console.model.jobs.job_preview import ROWS, Preview
from console.screens.rows import Column, Rows
from console.screens.view import Part, View, Words
from console.show.figures import some

_WAITS: Final = "Spark starts and reads the last records of the job's sources: some seconds …"
_COLUMNS_MOST: Final = 12
_WIDEST: Final = 32


class PreviewView(View):
    """Asked once; r asks again."""

    DEFAULT_CSS = """
    PreviewView #said { max-height: 8; padding: 0 1; }
    PreviewView.large #said { max-height: 10; }
    """
    frames: ClassVar[Mapping[str, str]] = {"said": "Preview", "rows": "Rows  {}"}

    def compose(self) -> ComposeResult:
        yield Words(name="said")
        yield Rows((Column("", 0),), name="rows", opens=False)

    def paint(self) -> None:
        source = self.world.detail(self.place)
        seen, failure = source.shown.value, source.shown.failure
        said, rows = self.query_one("#said", Words), self.query_one(Rows)
        title: list[Part] = [(self.place.name, "bold"), "  "]
        if source.in_flight:
            title += [(_WAITS, "yellow")]
        if failure is not None:
            title += [(f"\n! {failure.message}", "bold red")]
            title += [f"\n→ {failure.hint}"] if failure.hint else []
        if seen is None:
            said.show_parts(*title)
            rows.show_rows(
                [], lambda key: (key,), empty="nothing is written, nothing is remembered"
            )
            return
        assert isinstance(seen, Preview)
        title += [f"would derive {some(len(seen.rows), 'row')}"]
        title += [f" and more: these are {ROWS}"] if len(seen.rows) >= ROWS else []
        title += [(f"\n{line}", "dim") for line in seen.said]
        said.show_parts(*title)
        found = {str(n): row for n, row in enumerate(seen.rows)}
        names = list(seen.rows[0])[:_COLUMNS_MOST] if seen.rows else []
        numbers = {name for name in names if _are_numbers(row.get(name) for row in seen.rows)}
        rows.set_columns(
            [_column(name, seen.rows, name in numbers, name == names[-1]) for name in names]
        )
        rows.show_rows(
            list(found), lambda key: [_cell(found[key].get(name)) for name in names],
            lambda key, n: _by(found[key].get(names[n]), names[n] in numbers),
            empty="it derives no row from these records",
        )  # fmt: skip


def _column(name: str, rows: list[dict[str, Any]], right: bool, last: bool) -> Column:
    if last:
        return Column(name, 0)
    widest = max([len(name) + 1, *(len(_cell(row.get(name))) for row in rows)])
    return Column(name, min(widest, _WIDEST), right=right)


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(one, int | float | None) for one in values)


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _by(value: Any, number: bool) -> str | float:
    if number:
        return -inf if value is None else value
    return _cell(value)
