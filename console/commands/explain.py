"""`penstock explain`."""

import click

from console.called import typed
from console.flags.output import formatted
from console.model.asking.explaining import Explained, everything, explain
from console.model.asking.failure import OK
from console.show.output import Row, emit, plain, rows_of

_NARROW = ("name", "code", "kind", "meaning")


def _names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    begun = incomplete.lower()
    return [one.name for one in everything() if one.name.lower().startswith(begun)]


@click.command("explain", context_settings={"ignore_unknown_options": True})
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_names)
@formatted
def command(names: tuple[str, ...], output: str) -> int:
    """Explain an error or an event of the log, and what to do about it.

    NAME is the word in brackets after a failure, or an event's name in the log: a Kafka error by
    name or number, a failure of a command, an event. Without a name all of them are listed.

    \b
    penstock explain NOT_ENOUGH_REPLICAS
    penstock explain 14 disk-nearly-full
    penstock explain -o json
    """
    found = [explain(one) for one in names] if names else everything()
    if names and output in ("table", "wide"):
        print("\n\n".join("\n".join(_lines(one)) for one in found))
    else:
        rows: list[Row] = rows_of(found)
        emit(rows, output, narrow=_NARROW)
    return OK


def _lines(one: Explained) -> list[str]:
    kind = one.kind if one.code is None else f"{one.kind}, code {one.code}"
    told = [f"{one.name} ({kind}{'; clients try again by themselves' if one.again else ''})"]
    told.append(plain(one.meaning))
    if one.remedy:
        told.append(typed(f"What to do: {one.remedy}"))
    told.append(f"More: {one.page}")
    return told
