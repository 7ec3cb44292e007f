"""`penstock acl import`: the rules that `kafka-acls --list` has printed, added after they are
confirmed."""

import sys
from pathlib import Path
from typing import Final

import click

from appliance.authorization.standard import ANYBODY, DENY, AclRule
from console.commands.acl.change import tell_changes
from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.access import acls
from console.model.access.acl_listing import read_rules
from console.model.asking.failure import OK, unreadable
from console.model.asking.link import Link

_STDIN: Final = "-"


@click.command("import")
@click.argument("file")
@yes_option
@dry_run_option
@formatted
@connected
def import_list(link: Link, file: str, yes: bool, dry_run: bool, output: str) -> int:
    """Add the ACLs of FILE, as kafka-acls --list of Apache Kafka printed them; "-": standard input.

    ACLs that are there stay, and those of FILE are added as they are: principals, hosts, prefixes
    and what is denied. It is confirmed unless --yes is given. A line that is no ACL is an error,
    and nothing is added. super.users is a setting and in no list.

    \b
    kafka-acls.sh --bootstrap-server old:9092 --list > acls.txt
    penstock acl import acls.txt --dry-run
    penstock acl import acls.txt
    """
    wanted = read_rules(_text_of(file))
    there = set(acls.rules(link))
    missing = [one for one in wanted if one not in there]
    if missing and not dry_run:
        confirm(_plan(missing), yes=yes)
        acls.add(link, missing)
    done = "would be added" if dry_run else "added"
    tell_changes([(one, "exists" if one in there else done) for one in wanted], output)
    return OK


def _text_of(file: str) -> str:
    """The text of a file. Raises Failure (USAGE)."""
    if file == _STDIN:
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise unreadable(file, problem) from None


def _plan(missing: list[AclRule]) -> str:
    """The change in one sentence, with what is easily overlooked."""
    who = {one.principal for one in missing}
    denied = sum(one.permission == DENY for one in missing)
    everybody = [one for one in missing if one.principal == ANYBODY and one.permission != DENY]
    told = f"This adds {len(missing)} ACLs of {len(who)} principals, {denied} of them deny"
    return f"{told}, {len(everybody)} allow everybody ({ANYBODY})" if everybody else told
