"""`penstock token list`."""

import click

from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.access.acls import principal_of
from console.model.access.tokens import all_tokens
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.show.figures import moment_in_zone
from console.show.output import Row, emit


@click.command("list")
@click.argument("owners", nargs=-1, metavar="[OWNER]...")
@formatted
@connected
@watched
def command(link: Link, owners: tuple[str, ...], output: str) -> int:
    """List delegation tokens, those that end first before others. With OWNER: its tokens, and those
    that it may renew.

    Your own tokens are shown, and those that you may renew. Others take DESCRIBE on the token or
    DESCRIBE_TOKENS on its owner. No HMAC is shown.

    \b
    penstock token list --login loader
    penstock token list User:loader --command-config admin.properties -o json
    """
    found = all_tokens(link, [principal_of(one) for one in owners] or None)
    rows: list[Row] = [
        {
            "token": one.token,
            "owner": one.owner,
            "requester": one.requester,
            "renewers": ",".join(one.renewers),
            "issued": moment_in_zone(one.issued_ms),
            "expires": moment_in_zone(one.expires_ms),
            "at_most": moment_in_zone(one.max_ms),
        }
        for one in found
    ]
    emit(rows, output, name="token", empty="no token; penstock token create makes one")
    return OK
