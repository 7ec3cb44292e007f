"""`penstock version`."""

import platform
from importlib.util import find_spec

import click

from console.flags.output import formatted
from console.root import VERSION
from console.show.output import emit


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
        print(f"penstock {VERSION}, hot modules {_hot_modules()}")
        return
    row = {
        "name": "penstock",
        "version": VERSION,
        "hot_modules": _hot_modules(),
        "python": platform.python_version(),
        "confluent_kafka": confluent_kafka.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
    }
    emit([row], output)


def _hot_modules() -> str:
    """Whether the installation could compile them: see setup.py."""
    found = find_spec("appliance.wire.batch")
    assert found is not None and found.origin is not None
    return "interpreted" if found.origin.endswith(".py") else "compiled"
