"""`penstock version`."""

import platform

import click

from appliance.cli.output import emit, formatted
from appliance.cli.root import VERSION


@click.command("version")
@formatted
def command(output: str) -> None:
    """Say which version this is."""
    import confluent_kafka

    if output == "table":
        print(f"penstock {VERSION}")
        return
    row = {
        "name": "penstock",
        "version": VERSION,
        "python": platform.python_version(),
        "confluent_kafka": confluent_kafka.version()[0],
        "librdkafka": confluent_kafka.libversion()[0],
    }
    emit([row], output)
