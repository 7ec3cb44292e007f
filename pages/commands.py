"""The page of commands: each with what `--help` says of it, from click's tree."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import click

from console.root import root
from pages.markdown import NOTE, code, plain, table, wrap

_INTRO: Final = f"""\
# Commands

{NOTE}

`penstock COMMAND --help` says the same in a terminal. What a command prints goes to stdout, what it says of it to
stderr. Exit codes: 0 ok, 1 refused or failed, 2 usage or settings, 3 unreachable or too late, 4 a check came out
negative, 130 Ctrl-C. TAB completes in bash once `eval "$(_PENSTOCK_COMPLETE=bash_source penstock)"` was run; in zsh and
fish with `zsh_source` and `fish_source`.
"""
_MANY: Final = 20
"""An option that so many commands have is described once."""
_DEFAULT: Final = re.compile(r"\s*\[default: (.*?)\]$")
_HEAD: Final = ("option", "takes", "meaning")

Row = tuple[str, str, str]


class Found(NamedTuple):
    """A command and the words that call it."""

    words: tuple[str, ...]
    command: click.Command


def found(command: click.Command = root, words: tuple[str, ...] = ("penstock",)) -> Iterator[Found]:
    """Every command, a group before what is in it, in the order in which --help lists them."""
    yield Found(words, command)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            if not inner.hidden:
                yield from found(inner, (*words, name))


def text() -> str:
    """All of it, as Markdown."""
    every = list(found())
    counted = Counter(row for one in every for row in _options(one.command))
    common = sorted(row for row, count in counted.items() if count >= _MANY)
    parts = [_INTRO, "## Options of many commands\n", table(_HEAD, common)]
    parts += [_section(one, common) for one in every if one.words != ("penstock",)]
    return "\n".join(parts)


def _section(one: Found, common: list[Row]) -> str:
    depth = min(len(one.words), 4)
    parts = [f"{'#' * depth} {' '.join(one.words)}\n"]
    if not isinstance(one.command, click.Group):
        parts.append(f"```text\n{_usage(one)}\n```\n")
    parts.append(_prose(one.command.help or ""))
    rows = _options(one.command)
    if own := [row for row in rows if row not in common]:
        parts.append(table(_HEAD, own))
    if shared := [row[0].split(", ")[0] for row in rows if row in common]:
        parts.append(wrap(f"And {', '.join(shared)}, as above.") + "\n")
    parts.append(_prose(one.command.epilog or ""))
    return "\n".join(part for part in parts if part)


def _usage(one: Found) -> str:
    told = [*one.words, "[OPTIONS]"] if one.command.params else [*one.words]
    for param in one.command.params:
        if isinstance(param, click.Argument):
            name = param.metavar or (param.name or "").upper() + ("..." if param.nargs < 0 else "")
            told.append(name if param.required or param.metavar else f"[{name}]")
    return " ".join(told)


def _options(command: click.Command) -> list[Row]:
    return [
        (", ".join(map(code, param.opts)), _takes(param), plain(_meaning(param)))
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden
    ]


def _takes(param: click.Option) -> str:
    if param.is_flag or param.count:
        return ""
    kind = param.type
    if isinstance(kind, click.Choice) and not param.metavar:
        return ", ".join(code(str(choice)) for choice in kind.choices)
    told = code(param.metavar or kind.name.upper())
    if isinstance(kind, click.IntRange | click.FloatRange):
        if kind.min is not None and kind.max is not None:
            told += f", {_number(kind.min)} to {_number(kind.max)}"
        elif kind.min is not None:
            told += f", ≥ {_number(kind.min)}"
    return told


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _meaning(param: click.Option) -> str:
    told = param.help or ""
    if isinstance(param.show_default, str):
        told += f" Default: {param.show_default}."
    elif param.show_default:
        told += f" Default: {param.default}."
    return _DEFAULT.sub(r" Default: \1.", told).strip()


def _prose(told: str) -> str:
    """click's text as Markdown: paragraphs that it leaves as they are (\\b) are code."""
    parts = []
    for paragraph in inspect.cleandoc(told).split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        if lines[0].strip() == "\b":
            parts.append("```text\n" + "\n".join(lines[1:]).rstrip() + "\n```\n")
        elif paragraph.strip():
            parts.append(wrap(plain(" ".join(line.strip() for line in lines))) + "\n")
    return "\n".join(parts)
