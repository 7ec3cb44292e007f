"""`penstock service install`."""

import click

from console.flags.confirm import dry_run_option
from console.flags.output import formatted
from console.flags.service import for_user
from console.model.asking.failure import OK
from console.model.service import backing_up, installing, place
from console.show.output import emit, print_note


@click.command("install")
@for_user
@click.option(
    "--data", metavar="DIR",
    help="Data folder.  [default: /var/lib/penstock; with --user ~/.local/state/penstock/data]",
)  # fmt: skip
@click.option(
    "--config", metavar="FILE",
    help="Settings file; a commented one is written when it does not exist.  [default: "
         "/etc/penstock/server.properties; with --user ~/.config/penstock/…]",
)  # fmt: skip
@click.option("--jobs", is_flag=True, help="Also install the service that runs jobs.")
@click.option(
    "--socket", is_flag=True,
    help="Use socket activation (penstock.socket) for the listeners of the settings: "
         "connections wait during a restart instead of being refused. A connection also "
         "starts a stopped service.",
)  # fmt: skip
@click.option(
    "--backup", metavar="WHERE",
    help="Also back up every night (penstock-backup.timer) to a folder or s3://BUCKET/PREFIX.",
)  # fmt: skip
@click.option(
    "--keep", type=click.IntRange(1), metavar="N",
    help=f"Number of backups to keep.  [default: {backing_up.KEPT}]",
)  # fmt: skip
@click.option(
    "--no-start",
    is_flag=True,
    help="Enable the service without starting it; it starts at the next boot.",
)
@dry_run_option
@formatted
def command(
    for_user: bool,
    data: str | None,
    config: str | None,
    jobs: bool,
    socket: bool,
    backup: str | None,
    keep: int | None,
    no_start: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Write the unit for this installation, enable it and start it.

    Without --user it is a service of the host, which needs root and runs as the user penstock. An
    existing unit of this command is rewritten and the service restarted: do that after an upgrade,
    and with --socket after a change of listeners. Make your own changes with `systemctl edit
    penstock`.

    \b
    penstock service install --user
    sudo /opt/penstock/bin/penstock service install --data /srv/events
    penstock service install --socket
    penstock service install --backup /mnt/backups --keep 30
    penstock service install --user --dry-run
    """
    found = (place.of_user if for_user else place.of_host)(data, config)
    backups = backing_up.wished(backup, keep, found)
    if dry_run:
        for file in installing.files(found, place.program(), jobs, socket, backups):
            kept = file.keep and file.path.exists()
            print(f"# {file.path}{': stays as it is' if kept else ''}")
            print("" if kept else file.text)
        return OK
    written = installing.install(
        found, place.program(), jobs=jobs, start=not no_start, listens=socket, backups=backups
    )
    emit([{"written": str(path)} for path in written], output, name="written")
    state = "enabled" if no_start else "enabled and started"
    flag = " --user" if for_user else ""
    print_note(f"{state}; data in {found.data}; penstock service status{flag} says how it is")
    if backups is not None:
        print_note(f"a backup every night in {backups.where}, the newest {backups.keep} are kept")
    if for_user:
        print_note("it ends when you log out, unless: loginctl enable-linger")
    return OK
