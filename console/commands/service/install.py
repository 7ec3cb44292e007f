"""`penstock service install`."""

import click

from console.flags.confirm import dry_run_option
from console.flags.output import formatted
from console.flags.service import for_user
from console.model.failure import OK
from console.model.service import backing_up, installing, place
from console.show.output import emit, say


@click.command("install")
@for_user
@click.option(
    "--data", metavar="DIR",
    help="Its data folder.  [default: /var/lib/penstock; with --user ~/.local/state/penstock/data]",
)  # fmt: skip
@click.option(
    "--config", metavar="FILE",
    help="Its settings; written with comments where there is no such file."
    "  [default: /etc/penstock/server.properties; with --user ~/.config/penstock/…]",
)  # fmt: skip
@click.option("--jobs", is_flag=True, help="Also the service that runs derived streams.")
@click.option(
    "--socket", is_flag=True,
    help="systemd listens for it (penstock.socket), at the listeners of its settings: who connects"
    " while it restarts waits instead of being refused. A connection also starts what you stopped.",
)  # fmt: skip
@click.option(
    "--backup", metavar="WHERE",
    help="Also a backup every night (penstock-backup.timer), into a folder or s3://BUCKET/PREFIX.",
)  # fmt: skip
@click.option(
    "--keep", type=click.IntRange(1), metavar="N",
    help=f"Of the backups the newest N; older ones are forgotten.  [default: {backing_up.KEPT}]",
)  # fmt: skip
@click.option("--no-start", is_flag=True, help="Enable it, to be started with the next boot.")
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
    """Write the unit that starts this very installation, enable it and start it.

    Without --user it is a service of the host, by root, with a user of its own (penstock). A unit
    that this command wrote before is written anew and the service restarted: that is how to go on
    after an upgrade, and with --socket after a change of listeners. Changes of yours belong into
    `systemctl edit penstock`.

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
    say(f"{state}; data in {found.data}; penstock service status{flag} says how it is")
    if backups is not None:
        say(f"a backup every night in {backups.where}, the newest {backups.keep} are kept")
    if for_user:
        say("it ends when you log out, unless: loginctl enable-linger")
    return OK
