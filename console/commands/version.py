"""`penstock version`."""

import platform

import click

from appliance.shell.version import current
from console.flags.output import formatted
from console.model.asking.version import compiled
from console.show.output import emit_one, print_note


@click.command("version")
@formatted
def command(output: str) -> None:
    """Show the version.

    \b
    penstock version
    penstock version -o json
    """
    import confluent_kafka

    if output == "table":
        print(f"penstock {current()}, hot modules {_hot_modules()}")
        if not compiled():
            print_note("slower: install a C compiler and Python's headers, then Penstock again")
        return
    row = {
        "name": "penstock",
        "version": current(),
        "hot_modules": _hot_modules(),
        "python": platform.python_version(),
        "confluent_kafka": confluent_kafka.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
    }
    emit_one(row, output)


def _hot_modules() -> str:
    return "compiled" if compiled() else "interpreted"
