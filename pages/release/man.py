"""Man pages of click's own help: `penstock(1)`, and one page for each group of commands."""

import inspect
from collections.abc import Iterator
from typing import Final

import click

from console.root import root

_SECTION: Final = 1
_ENVIRONMENT: Final = (
    ("PENSTOCK_BOOTSTRAP", "The broker that commands ask, HOST:PORT; localhost:9092 without it."),
    (
        "PENSTOCK_PROFILE",
        "A profile (penstock profile) that says which broker; stronger than that.",
    ),
    ("PENSTOCK_REGISTRY", "URL of a schema registry, for values in Avro and Protobuf."),
)
_CODES: Final = (
    "0 ok, 1 refused or failed, 2 usage or settings, 3 unreachable or too late, 4 a check came out "
    "negative, 130 Ctrl-C."
)


def pages(version: str) -> Iterator[tuple[str, str]]:
    """File names and texts (roff), `penstock.1` first."""
    context = click.Context(root)
    groups = []
    parts = [_head("penstock", version, _short(root)), ".SH SYNOPSIS"]
    parts += [".B penstock\n.I COMMAND\n[\n.I OPTIONS\n]", ".SH DESCRIPTION", _prose(root.help)]
    parts.append(".SH COMMANDS")
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            groups.append((name, command))
            parts.append(f".TP\n.B {name}\n{_text(_short(command))} See\n.BR penstock-{name} (1).")
        else:
            parts.append(_command(("penstock", name), command, ".SS"))
    parts += [".SH ENVIRONMENT", *(f".TP\n.B {name}\n{_text(told)}" for name, told in _ENVIRONMENT)]
    parts += [".SH EXIT STATUS", _text(_CODES), ".SH SEE ALSO"]
    parts.append("\n".join(f".BR penstock-{name} (1)" for name, _ in groups))
    yield "penstock.1", "\n".join(parts) + "\n"
    for name, group in groups:
        yield f"penstock-{name}.1", _group(name, group, version)


def _group(name: str, group: click.Group, version: str) -> str:
    parts = [_head(f"penstock-{name}", version, _short(group)), ".SH SYNOPSIS"]
    parts += [f".B penstock {name}\n.I COMMAND\n[\n.I OPTIONS\n]", ".SH DESCRIPTION"]
    parts += [_prose(group.help), _prose(group.epilog), ".SH COMMANDS"]
    parts += _commands(("penstock", name), group)
    return "\n".join([*parts, ".SH SEE ALSO", ".BR penstock (1)"]) + "\n"


def _commands(words: tuple[str, ...], group: click.Group) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from _commands((*words, name), command)
        elif not command.hidden:
            yield _command((*words, name), command, ".SS")


def _command(words: tuple[str, ...], command: click.Command, macro: str) -> str:
    context = click.Context(command, info_name=" ".join(words))
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"{macro} {_text(' '.join(words))}", f".B {' '.join(words)}\n{_text(usage)}\n.PP"]
    parts.append(_prose(command.help))
    records = (param.get_help_record(context) for param in command.get_params(context))
    parts += [f".TP\n.B {_text(one[0])}\n{_text(one[1])}" for one in records if one]
    parts.append(_prose(command.epilog))
    return "\n".join(part for part in parts if part)


def _head(name: str, version: str, what: str) -> str:
    title = f'.TH {name.upper()} {_SECTION} "" "Penstock {version}" "Penstock"'
    return f"{title}\n.SH NAME\n{_text(name)} \\- {_text(what)}"


def _short(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ")


def _prose(told: str | None) -> str:
    """Paragraphs; one that click leaves as it is (\\b) keeps its lines."""
    parts = []
    for paragraph in inspect.cleandoc(told or "").split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        if lines[0].strip() == "\b":
            parts.append("\n".join([".PP", ".nf", ".RS 2", *map(_text, lines[1:]), ".RE", ".fi"]))
        elif paragraph.strip():
            parts.append(f".PP\n{_text(' '.join(line.strip() for line in lines))}")
    return "\n".join(parts)


def _text(told: str) -> str:
    """roff reads backslashes, hyphens and dots at the beginning of a line as its own."""
    told = told.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    return f"\\&{told}" if told[:1] in (".", "'") else told
