"""`penstock cluster grow`."""

from dataclasses import dataclass

import click

from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.model.asking.link import Link
from console.model.cluster import features
from console.model.topics import new_topics, replica_changes
from console.show.moving import follow
from console.show.output import emit, print_note
from console.show.planned import facts_told, rows_planned

_REPLICAS = 3


@click.command("grow")
@click.argument("replicas", type=click.IntRange(1), default=_REPLICAS, metavar="[N]")
@yes_option
@dry_run_option
@formatted
@connected
def command(link: Link, replicas: int, yes: bool, dry_run: bool, output: str) -> int:
    """Raise the replication factor of every topic to N (3), internal topics included.

    For a cluster that began as a single appliance, whose topics have one replica. Preferred leaders
    are spread over the nodes; leadership moves within minutes. The default for new topics is raised
    as well, unless it is set already. From three nodes on, eligible leader replicas are enabled
    (KIP-966). The command waits until all replicas are in sync; Ctrl-C stops only the waiting.
    `topic replicas set` changes a single topic.

    \b
    penstock cluster grow --dry-run
    penstock cluster grow 3
    """
    rules = _rules(link, replicas)
    try:
        change = replica_changes.growing(link, replicas)
    except Failure as failure:
        if failure.name != replica_changes.NOTHING:
            raise
        if rules.describe_rules and not dry_run:
            confirm(rules.describe_rules, yes=yes)
            rules.apply(link)
        print_note(rules.describe_rules or failure.hint)
        emit([], output)
        return OK
    plan, facts = (
        rows_planned(change),
        "; ".join(filter(None, (facts_told(change), rules.describe_rules))),
    )
    if dry_run:
        print_note(facts)
        emit([row | {"status": "would be"} for row in plan], output, name="partition")
        return OK
    confirm(facts, yes=yes)
    rules.apply(link)
    change.apply(link)
    follow(link, {str(row[0]).rpartition(":")[0] for row in change.rows})
    emit([row | {"status": replica_changes.DONE} for row in plan], output, name="partition")
    return OK


@dataclass(slots=True, frozen=True)
class _Rules:
    """Further rules for the cluster. defaults: settings for all nodes. eligible: whether eligible
    leader replicas begin to be kept.
    """

    replicas: int
    defaults: dict[str, str]
    eligible: bool

    @property
    def describe_rules(self) -> str:
        keys = ", ".join(f"{key}={value}" for key, value in self.defaults.items())
        told = []
        if keys:
            told.append(f"new topics get {self.replicas} replicas, too ({keys}, for all nodes)")
        if self.eligible:
            told.append(f"eligible leader replicas enabled ({features.ELR}=1)")
        return "; ".join(told)

    def apply(self, link: Link) -> None:
        """In this order: the feature takes min.insync.replicas as it is for all nodes, and fixes
        it. Raises Failure."""
        if self.defaults:
            new_topics.set_defaults(link, self.defaults)
        if self.eligible:
            features.raise_to(link, features.ELR, 1)
            print_note(f"eligible leader replicas are enabled now ({features.ELR}=1)")


def _rules(link: Link, replicas: int) -> _Rules:
    defaults = new_topics.missing(link, replicas) if replicas > 1 else {}
    lacks = not new_topics.keeps_eligible(link, replicas)
    why_not = features.refusal(link, features.ELR, 1) if lacks else ""
    if why_not:
        print_note(f"eligible leader replicas stay disabled: {why_not}")
    return _Rules(replicas, defaults, lacks and not why_not)
