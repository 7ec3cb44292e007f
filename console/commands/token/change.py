"""`penstock token create`, `renew` and `expire`. Only `create` shows a token's HMAC, once."""

import json
from collections.abc import Callable
from typing import Final

import click

from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.units import Seconds
from console.model.access import client_files, tokens
from console.model.access.acls import principal_of
from console.model.access.tokens import Token
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.show.figures import moment_in_zone
from console.show.output import print_note

_MECHANISM: Final = "SCRAM-SHA-512"
_LEAST_S: Final = 0.001


def _as_java(link: Link, token: Token) -> str:
    at = client_files.place(link) or client_files.Place("HOST:PORT", "SASL_SSL")
    return client_files.java(at, _MECHANISM, token.token, token.hmac, by_token=True)


def _as_json(link: Link, token: Token) -> str:
    return json.dumps(token._asdict(), indent=2) + "\n"


_FORMS: Final[dict[str, Callable[[Link, Token], str]]] = {"java": _as_java, "json": _as_json}


@click.command("create")
@click.option("--owner", metavar="USER", help="Whose token it is.  [default: yours]")
@click.option(
    "--renewer",
    "renewers",
    metavar="USER",
    multiple=True,
    help="Who may renew it beside its owner; may be repeated.",
)
@click.option(
    "--lifetime",
    "lifetime_s",
    metavar="TIME",
    type=Seconds(_LEAST_S),
    help="Its longest life, renewals included.  [default: delegation.token.max.lifetime.ms]",
)
@click.option(
    "--form",
    type=click.Choice(list(_FORMS)),
    default="java",
    help="What is printed: properties for Java's clients, or the token as JSON.  [default: java]",
)
@dry_run_option
@connected
def create(
    link: Link,
    owner: str | None,
    renewers: tuple[str, ...],
    lifetime_s: float | None,
    form: str,
    dry_run: bool,
) -> int:
    """Create a delegation token, and print the properties of a client that logs in by it, once.

    Whoever has the token is its owner until it ends: after delegation.token.expiry.time.ms, unless
    it is renewed. Write it to a file that nobody else may read. It takes a connection with a login
    or a client certificate, and for another owner CREATE_TOKENS on that user.

    \b
    umask 077; penstock token create --login loader > worker.properties
    penstock token create --owner loader --renewer scheduler --lifetime 2d --login admin
    penstock token create --form json --login loader > token.json
    """
    who = None if owner is None else principal_of(owner)
    may_renew = [principal_of(one) for one in renewers]
    if dry_run:
        print_note(f"a token of {who or 'yours'} would be created")
        return OK
    token = tokens.create_token(link, who, may_renew, _ms(lifetime_s, tokens.DEFAULT))
    print_note(
        f"token {token.token} of {token.owner} ends {moment_in_zone(token.expires_ms)},"
        f" renewed {moment_in_zone(token.max_ms)} at the latest"
    )
    click.echo(_FORMS[form](link, token), nl=False)
    return OK


@click.command("renew")
@click.argument("ids", nargs=-1, required=True, metavar="TOKEN...")
@click.option(
    "--for",
    "period_s",
    metavar="TIME",
    type=Seconds(_LEAST_S),
    help="How long it lives from now on, at most its longest life.  "
    "[default: delegation.token.expiry.time.ms]",
)
@dry_run_option
@connected
def renew(link: Link, ids: tuple[str, ...], period_s: float | None, dry_run: bool) -> int:
    """Let tokens live longer: as their owner, or as a renewer that was named when they were
    created.

    Connections that have logged in by a token end when it would have ended at their login; clients
    that know KIP-368 log in again before.

    \b
    penstock token renew LbKx1uN2QmWcJ0nYx5cVYQ --login loader
    penstock token renew LbKx1uN2QmWcJ0nYx5cVYQ --for 12h --login scheduler
    """
    found = [tokens.find_token(link, one) for one in dict.fromkeys(ids)]
    for one in found:
        if dry_run:
            print_note(f"token {one.token} of {one.owner} would be renewed")
            continue
        ends_ms = tokens.renew_token(link, one, _ms(period_s, tokens.DEFAULT))
        print_note(f"token {one.token} of {one.owner} ends {moment_in_zone(ends_ms)}")
    return OK


@click.command("expire")
@click.argument("ids", nargs=-1, required=True, metavar="TOKEN...")
@click.option(
    "--in",
    "period_s",
    metavar="TIME",
    type=Seconds(0),
    help="When it ends, from now on.  [default: at once]",
)
@yes_option
@dry_run_option
@connected
def expire(
    link: Link, ids: tuple[str, ...], period_s: float | None, yes: bool, dry_run: bool
) -> int:
    """End tokens: nobody logs in by them any more.

    Connections that have logged in by a token stay until it would have ended, as with Apache Kafka.
    An ended token cannot be renewed.

    \b
    penstock token expire LbKx1uN2QmWcJ0nYx5cVYQ --login loader
    penstock token expire LbKx1uN2QmWcJ0nYx5cVYQ --in 10m --login loader --yes
    """
    found = [tokens.find_token(link, one) for one in dict.fromkeys(ids)]
    for one in found:
        print_note(f"{'would be ended' if dry_run else 'is ended'}: token {one.token}, {one.owner}")
    if dry_run:
        return OK
    confirm("End these tokens", yes=yes)
    for one in found:
        ends_ms = tokens.expire_token(link, one, _ms(period_s, tokens.AT_ONCE))
        ends = "has ended" if ends_ms < 0 else f"ends {moment_in_zone(ends_ms)}"
        print_note(f"token {one.token} of {one.owner} {ends}")
    return OK


def _ms(seconds: float | None, default: int) -> int:
    return default if seconds is None else round(seconds * 1000)
