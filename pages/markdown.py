"""The little Markdown that the made pages need."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from console.model.asking.explaining import anchor

WIDTH: Final = 120
NOTE: Final = "Made by `python -m pages`; a test holds it to the code."


def plain(text: str) -> str:
    """`text`, of which nothing is taken as markup."""
    for sign, told in (("\\", "\\\\"), ("*", "\\*"), ("__", "\\_\\_"), ("<", "&lt;")):
        text = text.replace(sign, told)
    return text


def wrap(paragraph: str) -> str:
    """A paragraph in lines of at most WIDTH characters."""
    return textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)


def code(text: str) -> str:
    """`text` as code; nothing when there is none. It must not have backticks in it."""
    assert "`" not in text, text
    return f"`{text}`" if text else ""


def anchored(name: str) -> str:
    """A name as code, to which links may lead: its letters small."""
    return f'<a id="{anchor(name)}"></a>{code(name)}'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown; it ends with a new line."""
    lines = [_row(head), "|" + "---|" * len(head)]
    for row in rows:
        assert len(row) == len(head), row
        lines.append(_row(row))
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
