"""`penstock cluster join`."""

import os
import sys
from pathlib import Path

import click

from console.called import typed
from console.commands import up
from console.flags.private import private
from console.model.asking.failure import OK, usage
from console.model.secure import enrolment
from console.model.secure.folder import DEFAULT_FOLDER, SecureFolder
from console.model.storage.data_folder import DEFAULT_DATA
from console.show.output import print_note


@click.command("join")
@click.argument("token", metavar="TOKEN")
@click.option("--data", metavar="DIR", help=f"The data folder.  [default: ./{DEFAULT_DATA}]")
@click.option(
    "--folder",
    metavar="DIR",
    default=DEFAULT_FOLDER,
    help=f"Where certificates and settings are kept.  [default: ./{DEFAULT_FOLDER}]",
)
@click.option(
    "-o",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting; it is kept with the rest.",
)
@click.option("--no-start", is_flag=True, help="Write the files, and print how it is started.")
@private
@click.pass_context
def command(
    context: click.Context,
    token: str,
    data: str | None,
    folder: str,
    settings: tuple[str, ...],
    no_start: bool,
) -> int:
    """Get a certificate and start as a new node of the cluster that the token is of.

    penstock cluster invite --host NAME prints the token; it works once. The key is made here and
    stays here; the certificate comes over TLS of an authority that the token names. Settings are
    those of the node that invited, for this host. TOKEN may be -, for standard input.

    \b
    penstock cluster join TOKEN
    penstock cluster join TOKEN --data /srv/penstock
    """
    from appliance.metadata.identity import META_PROPERTIES
    from console.model.secure.inviting import join

    place = os.path.abspath(data or DEFAULT_DATA)
    if os.path.exists(os.path.join(place, META_PROPERTIES)):
        raise usage(f"{place} is the folder of another node", "choose another with --data")
    given = up.given(settings)
    parsed = enrolment.parse(sys.stdin.readline() if token == "-" else token)
    made = SecureFolder(Path(folder))
    cluster_id = join(parsed, made, given)
    print_note(f"made {made.path}: key, certificate, settings")
    if no_start:
        again = f"penstock up --config {made.settings} --data {place} --cluster-id {cluster_id}"
        print_note(f"start:   {typed(again)}")
        return OK
    done: int = context.invoke(
        up.command, data=data, config=str(made.settings), cluster_id=cluster_id
    )
    return done
