"""`penstock audit`."""

import sys
import time
from collections.abc import Iterable
from contextlib import closing
from typing import Final

import click

from appliance.history.audit_log import Entry
from console.flags.folder import located
from console.flags.output import formatted
from console.model.access.audit import AuditFilter, AuditReader, entry_text, since_text
from console.model.asking.failure import OK, usage
from console.model.groups.offsets import time_of
from console.show.output import emit, plain, print_note

_EVERY_S: Final = 0.3
_LINES: Final = ("table", "wide")
_EVENTS: Final = ("login", "login-failed", "access-denied", "changed")


@click.command("audit")
@located
@click.option("-f", "--follow", is_flag=True, help="Follow new entries until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(1), default=100, show_default=True,
    help="Number of latest entries.",
)  # fmt: skip
@click.option(
    "--who", default="", metavar="TEXT",
    help="Only entries with this part of a principal, address, client id or listener.",
)  # fmt: skip
@click.option(
    "--since", default="", metavar="TIME",
    help="Only entries from this time on: 2h (ago), 12:00, 2026-11-28T12:00:00Z.",
)  # fmt: skip
@click.option(
    "--event", "kind", default="", type=click.Choice(("", *_EVENTS)), metavar="EVENT",
    help=f"Only entries of this kind: {', '.join(_EVENTS)}.",
)  # fmt: skip
@formatted
def command(
    data: str, follow: bool, lines: int, who: str, since: str, kind: str, output: str
) -> int:
    """Show who logged in, who failed to, who was denied what and who changed what.

    The command reads penstock.audit.jsonl in the data folder and sends no request; it needs the
    appliance's user or root. docs/audit.md has the fields.

    \b
    penstock audit --follow
    penstock audit --who alice --since 2h
    penstock audit --event login-failed -o json
    """
    if follow and output not in (*_LINES, "jsonl"):
        raise usage("--follow prints lines or -o jsonl only")
    wanted = AuditFilter(
        who, since_text(time_of(since, time.time_ns() // 1_000_000)) if since else "", kind
    )
    with closing(AuditReader(data)) as reader:
        latest: list[Entry] = []
        for one in filter(wanted.keeps, reader.entries()):
            latest.append(one)
            if len(latest) >= 2 * lines:
                del latest[:-lines]
        _print(latest[-lines:], output)
        if not latest and output in _LINES:
            print_note("no matching entries")
        while follow:
            sys.stdout.flush()
            time.sleep(_EVERY_S)
            _print(filter(wanted.keeps, reader.news()), output)
    return OK


def _print(entries: Iterable[Entry], output: str) -> None:
    found = list(entries)
    if output in _LINES:
        for one in found:
            print(
                f"{plain(one['time'])} {plain(one['event']):13} {plain(entry_text(one))}".rstrip()
            )
    elif found or output != "jsonl":
        if output == "csv":  # whose rows have the same columns
            columns = dict.fromkeys(key for one in found for key in one)
            found = [{key: one.get(key) for key in columns} for one in found]
        emit(found, output, name="event")
