"""`penstock topic create`."""

import click

from console.flags.complete import topic_settings
from console.flags.confirm import dry_run_option
from console.flags.connection import connected, key_values
from console.flags.output import formatted
from console.model.asking.link import Link
from console.model.asking.setting_values import in_units
from console.model.topics import topics
from console.show.outcomes import show_outcomes

PARTITIONS = click.IntRange(1, topics.PARTITIONS_MOST)


@click.command("create")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-p", "--partitions", type=PARTITIONS, metavar="N", help="Number of partitions.")
@click.option(
    "-r", "--replicas", "--replication-factor", "replicas", type=click.IntRange(1), metavar="N",
    help="Replication factor; at most the number of nodes.",
)  # fmt: skip
@click.option(
    "-c", "--config", "--topic-config", "configs", metavar="KEY=VALUE", multiple=True,
    help="A topic setting; may be repeated.", shell_complete=topic_settings,
)  # fmt: skip
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic exists already.")
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Create topics. Options that are not given follow the broker's settings.

    \b
    penstock topic create orders payments -p 3
    penstock topic create latest -c cleanup.policy=compact --if-not-exists
    """
    settings = in_units(key_values(configs, "-c"))
    outcomes = topics.create(
        link, names, partitions=partitions, replicas=replicas, settings=settings, dry_run=dry_run
    )
    status = dict.fromkeys(outcomes, "would be created" if dry_run else "created")
    for name, failure in outcomes.items():
        if failure is not None and if_not_exists and failure.name == "TOPIC_ALREADY_EXISTS":
            outcomes[name], status[name] = None, "exists"
    there = [
        name
        for name, failure in outcomes.items()
        if failure is None and (not dry_run or status[name] == "exists")
    ]
    counts = topics.partition_counts(link, there, may_be_missing=True)
    if planned := [
        name for name, failure in outcomes.items() if not failure and name not in counts
    ]:
        counts |= dict.fromkeys(planned, partitions or topics.default_partitions(link))
    more = {name: {"partitions": counts.get(name)} for name in outcomes}
    return show_outcomes(outcomes, status, output, more)
