"""`penstock config lint` and `show`: a server.properties file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.flags.output import formatted
from console.model.asking.failure import NEGATIVE, OK, unreadable, usage
from console.show.output import Row, emit, print_note

if TYPE_CHECKING:
    from appliance.config.broker import BrokerConfig


@click.command("lint")
@click.argument("file")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@formatted
def lint(file: str, strict: bool, output: str) -> int:
    """Check a server.properties file as penstock up would read it. Exit code 4: it has errors.

    All errors and warnings are shown at once, with their lines; those of a JAAS file, which the
    file or KAFKA_OPTS names, too.

    \b
    penstock config lint server.properties
    penstock config lint server.properties --strict -o json
    """
    from appliance.base.errors import ConfigError
    from appliance.config.cluster_checks import who_begins
    from appliance.config.load import examine
    from console.model.access.jaas_file import jvm_remarks, of_jaas_file

    text, environment = _text_of(file), {}
    rows: list[Row] = []
    try:
        environment = of_jaas_file(text, {}, file_name=file)
    except ConfigError as wrong:
        rows.append({"line": None, "level": "error", "message": str(wrong)})
    config, remarks = examine(text, {}, environment)
    rows += [
        {"line": one.line, "level": "error" if one.wrong else "warning", "message": one.text}
        for one in remarks
    ]
    rows += [{"line": None, "level": "warning", "message": words} for words in jvm_remarks()]
    if not any(row["level"] == "error" for row in rows):
        rows += _of_certificates(config)
    if words := who_begins(config):
        rows.append({"line": None, "level": "note", "message": words})
    emit(rows, output, name="message")
    bad = any(row["level"] == "error" or (strict and row["level"] == "warning") for row in rows)
    print_note(f"{file}: {_summary(rows)}")
    return NEGATIVE if bad else OK


def _summary(rows: list[Row]) -> str:
    """The number of rows by level, for example "2 errors, 1 warning"."""
    levels = [row["level"] for row in rows]
    counts = {level: levels.count(level) for level in ("error", "warning", "note")}
    told = [f"{n} {level}{'s' if n > 1 else ''}" for level, n in counts.items() if n]
    return ", ".join(told or ["no errors"])


def _of_certificates(config: "BrokerConfig") -> list[Row]:
    """Rows for the certificates as a start would see their files now."""
    from appliance.base.clock import clock_here
    from appliance.base.errors import ConfigError
    from appliance.certificates.validation import check

    try:
        found = check(config, clock_here()).warnings
    except ConfigError as wrong:
        return [{"line": None, "level": "error", "message": str(wrong)}]
    return [{"line": None, "level": "warning", "message": words} for words in found]


@click.command("show")
@click.argument("file")
@click.option("-a", "--all", "everything", is_flag=True, help="Include settings at their default.")
@formatted
def show_file(file: str, everything: bool, output: str) -> int:
    """Show the parsed values of a server.properties file, and the defaults.

    \b
    penstock config show server.properties
    """
    from appliance.base.errors import ConfigError
    from appliance.config.broker_settings import BROKER
    from appliance.config.listener_settings import declared
    from appliance.config.load import load
    from appliance.config.setting import shown
    from console.model.access.jaas_file import of_jaas_file

    text = _text_of(file)
    try:
        environment = of_jaas_file(text, {}, file_name=file)
        config, warnings = load(text, {}, file_name=file, environment=environment)
    except ConfigError as wrong:
        raise usage(str(wrong)) from None
    for text in warnings:
        print_note(text)
    rows: list[Row] = []
    for key in sorted({*BROKER, *config.set_names()}):
        setting, entry = declared(key), config.entry(key)
        if entry is None and not everything:
            continue
        value = shown(config.get_value(key))
        row: Row = {"key": key, "value": None if setting.sensitive else value}
        row |= {
            "source": entry.source if entry else "default",
            "default": shown(config.default(key)),
        }
        rows.append(row | {"doc": setting.doc, "no_effect": setting.inert or None})
    emit(rows, output, narrow=("key", "value", "source", "default"), name="key")
    return OK


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise unreadable(path, problem) from None
