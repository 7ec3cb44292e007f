"""`penstock cluster new-id`."""

import os

import click


@click.command("new-id")
def command() -> None:
    """Print a random id for a new cluster; all of its first nodes are started with it.

    \b
    penstock cluster new-id
    """
    from appliance.metadata.identity import new_uuid
    from appliance.wire.uuids import format_uuid

    print(format_uuid(new_uuid(os.urandom)))
