"""`penstock metrics list`."""

import click

from console.flags.output import formatted
from console.model.asking.failure import OK
from console.show.output import emit


@click.command("list")
@formatted
def command(output: str) -> int:
    """List the exported metrics: name, type, labels, meaning.

    \b
    penstock metrics list -o wide
    """
    from appliance.exporter.exposition import FAMILIES

    rows = [
        {"name": one.name, "type": one.kind, "labels": list(one.labels), "meaning": one.meaning}
        for one in FAMILIES
    ]
    emit(rows, output, narrow=("name", "type", "meaning"))
    return OK
