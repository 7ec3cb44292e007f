"""`penstock group delete`: irrecoverable, so the name is typed (or the number of groups)."""

import click

from appliance.cli.complete import group_names
from appliance.cli.confirm import confirm_names, dry_run_option, yes_option
from appliance.cli.exits import OK, Failure
from appliance.cli.groups import committed, described, refuse_live
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.topic_create import finish, outcome


@click.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@yes_option
@dry_run_option
@formatted
@connected
def command(link: Link, names: tuple[str, ...], yes: bool, dry_run: bool, output: str) -> int:
    """Delete groups that nobody reads with, and what they have committed.

    \b
    penstock group delete billing
    penstock group delete old.1 old.2 --yes
    """
    wanted = list(dict.fromkeys(names))
    groups = described(link, wanted)
    offsets = committed(link, wanted)
    if dry_run:
        plan: list[Row] = [
            {
                "name": group.name,
                "state": group.state,
                "members": len(group.members),
                "offsets": len(offsets[group.name]),
                "status": "has members" if group.members else "would be deleted",
            }
            for group in groups
        ]
        emit(plan, output)
        return OK
    for group in groups:
        refuse_live(group, "it cannot be deleted")
    count = sum(map(len, offsets.values()))
    what = f"{', '.join(wanted[:10])}: {count} committed offset(s)"
    confirm_names(f"This deletes {what}", wanted, yes=yes, things="groups")
    answers = link.admin().delete_consumer_groups(wanted, request_timeout=link.timeout_s)
    rows = []
    for name in wanted:
        try:
            link.wait(answers[name], name)
            rows.append(outcome(name, "deleted", None))
        except Failure as failure:
            rows.append(outcome(name, "deleted", failure))
    return finish(rows, output)
