"""`penstock profile list`, `add`, `use` and `remove`."""

import re
from pathlib import Path
from typing import Final

import click

from console.flags.output import formatted
from console.model.asking import profiles
from console.model.asking.failure import OK, usage
from console.model.asking.profiles import Profile
from console.show.output import emit, print_note

_PORT: Final = re.compile(r":\d+\s*$")


@click.command("list")
@formatted
def list_(output: str) -> int:
    """List the profiles and mark the one in use.

    \b
    penstock profile list
    """
    known = profiles.read()
    rows = [
        {"name": name, "bootstrap": one.bootstrap, "command_config": one.command_config or None,
         "data": one.data or None, "used": name == known.used}
        for name, one in sorted(known.named.items())
    ]  # fmt: skip
    emit(rows, output, empty="there is no profile yet; penstock profile add NAME HOST:PORT")
    return OK


@click.command("add")
@click.argument("name")
@click.argument("bootstrap", metavar="HOST:PORT[,...]")
@click.option("--command-config", metavar="FILE", help="Client properties: TLS, SASL.")
@click.option(
    "--data",
    metavar="DIR",
    help="Its data folder, for an appliance of this host.",
)
@click.option("--use", is_flag=True, help="Use this profile by default.")
def add(name: str, bootstrap: str, command_config: str | None, data: str | None, use: bool) -> int:
    """Add a profile for an appliance or a cluster; an existing one is replaced.

    \b
    penstock profile add prod a.example.org:9092,b.example.org:9092 --use
    penstock profile add secure a.example.org:9093 --command-config client.properties
    penstock profile add here localhost:9092 --data /var/lib/penstock
    """
    from penstock.reach import DEFAULT_PORT, address_of

    try:
        for server in bootstrap.split(","):
            address_of(server)
            if not _PORT.search(server):
                raise usage(f"{server!r} names no port", f"for example {server}:{DEFAULT_PORT}")
    except ValueError as wrong:
        raise usage(str(wrong)) from None
    known = profiles.read()
    config = str(Path(command_config).absolute()) if command_config else ""
    folder = str(Path(data).absolute()) if data else ""
    known.named[name] = Profile(bootstrap, config, folder)
    known.used = name if use else known.used
    profiles.write_profiles(known)
    print_note(f"{name} is {bootstrap}{', and in use' if known.used == name else ''}")
    return OK


@click.command("use")
@click.argument("name", required=False)
@click.option("--none", "nobody", is_flag=True, help="Use no profile: the appliance of this host.")
def use(name: str | None, nobody: bool) -> int:
    """Select the profile that is used by default.

    \b
    penstock profile use prod
    penstock profile use --none
    """
    if bool(name) == nobody:
        raise usage("name a profile, or say --none: one of the two")
    known = profiles.read()
    if name:
        known.find_profile(name)
    known.used = name or ""
    profiles.write_profiles(known)
    return OK


@click.command("remove")
@click.argument("name")
def remove(name: str) -> int:
    """Remove a profile; the appliance itself does not change.

    \b
    penstock profile remove prod
    """
    known = profiles.read()
    known.find_profile(name)
    del known.named[name]
    known.used = "" if known.used == name else known.used
    profiles.write_profiles(known)
    return OK
