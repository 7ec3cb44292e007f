"""Rows to stdout in the form that was asked for: table, wide, json, jsonl, yaml, name, csv.

Rows are dictionaries with the same keys in the same order; `rows_of` makes them of the model's
values. Text that came from a broker is shown with control characters escaped, so that no name or
value can paint the terminal.
"""

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from console.called import typed
from console.streams import escaped, escaped_in_json, is_unicode

Row = dict[str, Any]
FORMATS: Final = ("table", "wide", "json", "jsonl", "yaml", "name", "csv")
LINE: Final = "json-line"
"""JSON in one line: one of several pictures, which `--watch` prints one behind the other."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""Keys that TOML takes without quotes."""


def rows_of(values: Iterable[Any]) -> list[Row]:
    """Values of the model as rows: a column for each field."""
    return [dataclasses.asdict(value) for value in values]


def emit(
    rows: Sequence[Row],
    output: str,
    *,
    narrow: Sequence[str] = (),
    name: str = "name",
    empty: str = "",
) -> None:
    """Print `rows`. narrow: the columns of a plain table, all of them when empty. empty: what a
    person is told, as narration, when there is no row."""
    if not rows and empty and output in ("table", "wide"):
        print_note(empty)
    if output == "json":
        print(as_json(list(rows), indent=2))
    elif output == LINE:
        print(as_json(list(rows)))
    elif output == "jsonl":
        for row in rows:
            print(as_json(row))
    elif output == "yaml":
        print("\n".join(_yaml(rows, "")) or "[]")
    elif output == "name":
        for row in rows:
            print(plain(row[name]))
    elif output == "csv":
        _csv(rows)
    elif rows:
        columns = list(rows[0])
        if output == "table" and narrow:
            columns = [column for column in columns if column in narrow]
        table(columns, rows)


def emit_one(row: Row, output: str, *, name: str = "name") -> None:
    """Print what there is one of: in JSON and YAML no list around it."""
    if output in ("json", LINE):
        print(as_json(row, indent=2 if output == "json" else None))
    elif output == "yaml":
        print(as_yaml(row))
    else:
        emit([row], output, name=name)


def telling(rows: Sequence[Row]) -> list[str]:
    """The columns that say something."""
    return [name for name in rows[0] if any(row[name] for row in rows)] if rows else []


def table(columns: Sequence[str], rows: Iterable[Row], *, err: bool = False) -> None:
    """Aligned columns, numbers to the right. err: on stderr, as narration."""
    cells = [[plain(row.get(column)) for column in columns] for row in rows]
    titles = [column.replace("_", " ").upper() for column in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    right = [bool(cells) and all(_is_number(one[i]) for one in cells) for i in range(len(columns))]
    for line in (titles, *cells):
        parts = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        )
        print("  ".join(parts).rstrip(), file=sys.stderr if err else sys.stdout)


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.lstrip("-").replace(".", "", 1).isdigit()


def plain(value: object) -> str:
    """One cell: `-` for nothing, control characters escaped."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(plain, value)) or "-"
    if isinstance(value, dict):
        return ",".join(f"{plain(key)}={plain(item)}" for key, item in value.items())
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _csv(rows: Sequence[Row]) -> None:
    import csv

    if rows:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            cells = (json.dumps(v) if isinstance(v, dict | list) else v for v in row.values())
            writer.writerow(["" if cell is None else cell for cell in cells])


def as_json(value: object, indent: int | None = None) -> str:
    """A value in JSON that stdout can write and no terminal is misled by."""
    ascii_alone = not is_unicode(sys.stdout)
    return escaped_in_json(json.dumps(value, indent=indent, ensure_ascii=ascii_alone))


def as_toml(value: dict[str, Any]) -> str:
    """A table of tables and lists of tables in TOML, without a newline at its end. A key with dots
    is quoted, so that they are no tables."""
    return "\n".join(_toml(value, "")).strip()


def _toml(table: dict[str, Any], path: str) -> Iterator[str]:
    plainly = {k: v for k, v in table.items() if not isinstance(v, dict) and not _is_tables(v)}
    for key, value in plainly.items():
        yield f"{_key(key)} = {_scalar(value)}"
    for key, value in table.items():
        if key in plainly:
            continue
        there = f"{path}{_key(key)}"
        for one in value if isinstance(value, list) else [value]:
            yield f"\n[[{there}]]" if isinstance(value, list) else f"\n[{there}]"
            yield from _toml(one, f"{there}.")


def _key(key: str) -> str:
    """As TOML wants it."""
    return key if _BARE.fullmatch(key) else _scalar(key)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def as_yaml(value: object) -> str:
    """A value in YAML, without a newline at its end."""
    return "\n".join(_yaml(value, ""))


def _yaml(value: object, indent: str) -> Iterator[str]:
    """Lines of YAML's block style; its scalars are JSON's."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _yaml_item(f"{indent}{_scalar(key)}:", item, indent + "  ")
    elif isinstance(value, list | tuple) and value:
        for item in value:
            lines = list(_yaml(item, indent + "  "))
            yield f"{indent}- {lines[0].lstrip()}"
            yield from lines[1:]
    else:
        yield indent + _scalar(value)


def _yaml_item(head: str, value: object, indent: str) -> Iterator[str]:
    if isinstance(value, dict | list | tuple) and value:
        yield head
        yield from _yaml(value, indent)
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: object) -> str:
    # Everything beyond ASCII is escaped: YAML forbids some characters that JSON lets through.
    return json.dumps(value)


def print_note(text: str) -> None:
    """Narration: stderr."""
    print(escaped(typed(text)), file=sys.stderr)
