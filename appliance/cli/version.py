"""`penstock version`."""

import platform

import click

from appliance.cli.output import emit, formatted
from appliance.cli.root import VERSION


@click.command("version")
@formatted
def command(output: str) -> None:
    """Say which version this is.

    \b
    penstock version
    penstock version -o json
    """
    import confluent_kafka

    if output == "table":
        print(f"penstock {VERSION}")
        return
    row = {
        "name": "penstock",
        "version": VERSION,
        "python": platform.python_version(),
        "confluent_kafka": confluent_kafka.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
    }
    emit([row], output)
