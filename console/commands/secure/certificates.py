"""`penstock secure init`, `client` and `server`."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from console.flags.private import private
from console.model.asking.failure import OK
from console.model.secure.folder import DEFAULT_FOLDER, Client, SecureFolder
from console.model.secure.server_settings import ADMIN, PORTS
from console.show.output import print_note

_DAY: Final = "%Y-%m-%d"


def _in_folder(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--folder",
        metavar="DIR",
        default=DEFAULT_FOLDER,
        help=f"Where authority and certificates are kept.  [default: ./{DEFAULT_FOLDER}]",
    )(command)


_named = click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    required=True,
    help="A name or address of this host by which clients know it; may be repeated, the first one"
    " is what clients are told.",
)


@click.command("init")
@_named
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, 65536 - PORTS),
    default=9093,
    show_default=True,
    help="The port of the listener in TLS; other nodes come by the next two.",
)
@click.option(
    "--logins/--certificates",
    default=True,
    help="Clients log in with a password, and ACLs are in force; or each has a certificate.  "
    "[default: --logins]",
)
@_in_folder
@private
def init(hosts: tuple[str, ...], port: int, logins: bool, folder: str) -> int:
    """Create an authority, a server's certificate, settings with a TLS listener, and an admin.

    Clients have one listener, SASL_SSL, where they log in: the user admin may do everything, and
    penstock user add adds users with their rights. With --certificates the listener requires a
    certificate of this authority from every client instead, and commands of this host connect to
    localhost:9092.

    Copy what you need of server.properties to settings that you have already. ca.key signs new
    certificates: keep it safe, or on another host.

    \b
    penstock secure init --host edge.example.org
    penstock secure init --host edge.example.org --certificates
    penstock secure init --host edge.example.org --host 192.0.2.7 --port 9443
    """
    made = SecureFolder(Path(folder))
    admin = made.create(hosts, port, _now(), logins=logins)
    print_note(f"made {made.path}: authority, certificate of the server, settings")
    _say_client(ADMIN, admin, ends=not logins)
    print_note(f"start:   penstock up --config {made.settings}")
    print_note(f"try:     penstock topic list --command-config {admin.librdkafka}")
    if logins:
        print_note("users:   penstock user add NAME --can write:TOPIC > NAME.properties")
    else:
        print_note("clients: penstock secure client NAME")
    return OK


@click.command("client")
@click.argument("name")
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Where the client connects to.  [default: the TLS listener in server.properties]",
)
@_in_folder
@private
def client(name: str, bootstrap: str | None, folder: str) -> int:
    """Make a client's certificate and its properties, for librdkafka and for Java.

    It is the principal User:NAME. One that is there already gets a new certificate; the one before
    is good until it ends. java.properties holds everything in one file; client.properties, for
    librdkafka, kcat and penstock, names files beside it.

    \b
    penstock secure client loader
    kcat -F penstock-secure/clients/loader/client.properties -L
    """
    made = SecureFolder(Path(folder))
    _say_client(name, made.add_client(name, bootstrap or made.bootstrap(), _now()))
    return OK


@click.command("server")
@_named
@click.option(
    "--out",
    metavar="FILE",
    help="Write key and certificate there: for another node.  [default: server.pem in the folder]",
)
@_in_folder
@private
def server(hosts: tuple[str, ...], out: str | None, folder: str) -> int:
    """Renew the server's certificate, or make that of another node of the cluster.

    A running appliance reads a renewed certificate within ten seconds; nobody is disconnected.

    \b
    penstock secure server --host edge.example.org
    penstock secure server --host b.example.org --out b.pem
    """
    made = SecureFolder(Path(folder))
    written = made.renew_server(hosts, _now(), Path(out) if out else None)
    print_note(f"wrote {written}: key and certificate for {', '.join(hosts)}")
    return OK


def _say_client(name: str, made: Client, *, ends: bool = True) -> None:
    until = f", good until {made.ends.strftime(_DAY)}" if ends else ""
    print_note(f"made {made.folder}: client {name}{until}")
    print_note(f"         librdkafka, kcat, penstock: {made.librdkafka}")
    print_note(f"         Java:                       {made.java}")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
