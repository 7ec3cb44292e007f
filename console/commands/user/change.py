"""`penstock user add` and `password`: the password is generated or read from a file, shown once."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from console.flags.connection import connected
from console.flags.credentials import read_password
from console.model.access import client_files, grants, users
from console.model.asking.failure import OK, Failure, usage
from console.model.asking.link import Link
from console.show.output import print_note

_DEFAULT: Final = ("SCRAM-SHA-512",)


def _of_password(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags that say which password, and how it is shown."""
    for option in (
        click.option(
            "--mechanism", "mechanisms", multiple=True, type=click.Choice(list(users.NUMBERS)),
            help="By which the user logs in; may be repeated.  [default: SCRAM-SHA-512]",
        ),
        click.option(
            "--form", type=click.Choice([*client_files.FORMS, "none"]), default="librdkafka",
            help="The properties that are printed.  [default: librdkafka]",
        ),
        click.option(
            "--new-password-file", "file", metavar="FILE",
            help="The file with the new password.  [default: one is generated]",
        ),
        click.option("--dry-run", "--dry", "dry_run", is_flag=True, help="Change nothing."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("add")
@click.argument("name")
@click.option(
    "--can",
    "rights",
    multiple=True,
    metavar="WHAT",
    help=f"Allow it by ACLs: {grants.KNOWN}; may be repeated. A * at the end: all names that begin"
    " so.",
)
@_of_password
@connected
def add(
    link: Link,
    name: str,
    rights: tuple[str, ...],
    mechanisms: tuple[str, ...],
    form: str,
    file: str | None,
    dry_run: bool,
) -> int:
    """Add a user, and print the properties of its clients with the password, once.

    The broker gets no password, only what is derived of it (SCRAM): it cannot be shown again. The
    properties are those of the listener that asks for a login; write them to a file that nobody
    else may read. Where ACLs are in force, --can says what the user may do; one that reads may take
    part in groups whose names begin with its own, unless group:GROUP names others. job:JOB allows
    what a job needs beside its sources and its sink.

    \b
    umask 077; penstock user add loader > loader.properties
    penstock user add loader --can write:orders --can read:orders > loader.properties
    penstock user add reader --form java > reader.properties
    penstock user add admin --new-password-file secret --form none
    """
    if users.user_named(link, name) is not None:
        raise Failure(
            f"user {name} is there already", f"penstock user password {name} changes its password",
            name="DUPLICATE_RESOURCE",
        )  # fmt: skip
    wanted = grants.read(rights, name)
    kinds = mechanisms or _DEFAULT
    return _put(link, name, kinds, form, file, dry_run=dry_run, wanted=wanted)


@click.command("password")
@click.argument("name")
@_of_password
@connected
def password(
    link: Link, name: str, mechanisms: tuple[str, ...], form: str, file: str | None, dry_run: bool
) -> int:
    """Change a user's password, and print the properties of its clients with it, once.

    It holds for new logins at once. Connections that have logged in stay open, until
    connections.max.reauth.ms where that is set.

    \b
    penstock user password loader > loader.properties
    """
    found = users.user_named(link, name)
    if found is None:
        raise Failure(
            f"there is no user {name}", f"penstock user add {name}", name="RESOURCE_NOT_FOUND"
        )
    known = tuple(one for one in found.mechanisms if one in users.NUMBERS)
    return _put(link, name, mechanisms or known or _DEFAULT, form, file, dry_run=dry_run)


def _put(
    link: Link,
    name: str,
    mechanisms: tuple[str, ...],
    form: str,
    file: str | None,
    *,
    dry_run: bool,
    wanted: Sequence[grants.Grant] = (),
) -> int:
    if not name or any(one in name for one in "\r\n"):
        raise usage("a user needs a name of one line")
    secret = users.generated_password() if file is None else read_password(file)
    if form == "none" and file is None:
        raise usage("--form none shows no password", "--new-password-file FILE says which it is")
    at = client_files.place(link)
    listed = ", ".join(mechanisms)
    rights = f" and may {', '.join(map(str, wanted))}" if wanted else ""
    if dry_run:
        print_note(f"user {name} would log in by {listed}{rights}")
        return OK
    grants.allow(link, name, wanted)
    users.set_password(link, name, secret, mechanisms)
    print_note(f"user {name} logs in by {listed}{rights}")
    if at is None:
        print_note(
            "no listener asks for a login yet: listeners with SASL_SSL or SASL_PLAINTEXT in"
            " listener.security.protocol.map do"
        )
        at = client_files.Place("HOST:PORT", "SASL_SSL")
    if form != "none":
        click.echo(client_files.FORMS[form](at, max(mechanisms), name, secret), nl=False)
    return OK
