"""`penstock cluster status`."""

import click

from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import FAILED, OK
from console.model.asking.link import Link
from console.model.cluster import nodes, versions
from console.model.cluster.nodes import Node, Nodes
from console.model.cluster.versions import Told
from console.model.topics import partitions, replicas
from console.model.topics.partitions import Partition
from console.model.topics.replicas import Health
from console.show.figures import age, some
from console.show.output import Row, emit, print_note, rows_of, table
from console.show.replicas import describe_missing

_SHOWN = 20
"""Partitions of a table; the other forms have all of them."""


@click.command("status")
@formatted
@connected
@watched
def command(link: Link, output: str) -> int:
    """Show the nodes and their versions, the quorum, and replicas that are out of sync, with the
    reason.

    Exit code 0: every node runs and every replica is in sync; 1: degraded. A leader that is not the
    preferred one is not counted. Topics with a single replica are noted.

    \b
    penstock cluster status
    penstock cluster status -w
    penstock cluster status -o json
    """
    found = nodes.read_nodes(link)
    every = partitions.partitions(link)
    health = replicas.health(link, every, found.all)
    said = versions.read_versions(link, found)
    wrong, remarks = _wrong(found, health), _remarks(found, every)
    if output in ("table", "wide"):
        _print(found, said, health, wrong, wide=output == "wide")
        for remark in remarks:
            print(remark)
    elif output == "csv":
        emit(_nodes(found, said), output)
    else:
        emit([_row(found, said, health, wrong) | {"remarks": remarks}], output)
    return FAILED if wrong else OK


def _remarks(found: Nodes, every: list[Partition]) -> list[str]:
    """Remarks without harm: a cluster grown from one appliance has topics of that time."""
    if len(found.brokers) == 1:
        return []
    topics = {one.topic for one in every if len(one.replicas) == 1}
    if not topics:
        return []
    kept = "is" if len(topics) == 1 else "are"
    return [f"{some(len(topics), 'topic')} {kept} kept by one node only: penstock cluster grow"]


def _wrong(found: Nodes, health: Health) -> list[str]:
    """Everything that is degraded, each in a few words."""
    down = [one for one in found.all.values() if not one.lives]
    wrong = [f"node {one.id} is {one.state}" for one in down]
    if found.quorum.leader is None:
        wrong.append("the metadata quorum has no leader")
    counts = (
        (health.offline, "without a leader"),
        (health.under_min_isr, "under min ISR"),
        (health.under_replicated, "under-replicated"),
    )
    return wrong + [f"{some(count, 'partition')} {what}" for count, what in counts if count]


def _row(found: Nodes, said: Told, health: Health, wrong: list[str]) -> Row:
    (counts,) = rows_of([health])
    behind = counts.pop("behind")
    (quorum,) = rows_of([found.quorum])
    return {
        "name": found.cluster_id,
        "whole": not wrong,
        "degraded": wrong,
        "nodes": _nodes(found, said),
        "quorum": quorum,
        "partitions": counts,
        "behind": behind,
    }


def _nodes(found: Nodes, said: Told) -> list[Row]:
    return [
        row
        | {
            "state": said.state(one),
            "leads": one.id == found.quorum.leader,
            "version": said.versions.get(one.id),
        }
        for one, row in zip(found.all.values(), rows_of(found.all.values()), strict=True)
    ]


def _print(found: Nodes, said: Told, health: Health, wrong: list[str], *, wide: bool) -> None:
    if len(found.all) == 1 and not health.behind:
        print(_alone(found, health, wrong))
        return
    state = "; ".join(wrong) if wrong else "whole"
    print(f"cluster {found.cluster_id}: {some(len(found.all), 'node')}, {state}\n")
    table(
        ["node", "address", "rack", "roles", "state", "version", "heard", "behind", "for"],
        [_shown(one, found, said) for one in found.all.values()],
    )
    print(f"\nquorum       {_quorum(found)}")
    print(
        f"partitions   {health.partitions:,}: {health.under_replicated:,} under-replicated,"
        f" {health.under_min_isr:,} under min ISR, {health.offline:,} without a leader,"
        f" {health.not_preferred:,} not led by the preferred replica"
    )
    if health.behind:
        print()
        _print_behind(found, health, wide=wide)


def _alone(found: Nodes, health: Health, wrong: list[str]) -> str:
    """One appliance alone: there is nobody to replicate to."""
    (one,) = found.all.values()
    state = "; ".join(wrong) if wrong else "runs"
    return (
        f"one node alone, {one.id} at {one.address}: {state}, leads"
        f" {some(health.partitions - health.offline, 'partition')}; nothing is replicated"
    )


def _shown(one: Node, found: Nodes, said: Told) -> Row:
    roles = [*one.roles, "leader"] if one.id == found.quorum.leader else list(one.roles)
    silent = one.heard_s is not None and (one.heard_s >= 1 or not one.lives)
    return {
        "node": one.id,
        "address": one.address or None,
        "rack": one.rack,
        "roles": roles,
        "state": said.state(one),
        "version": said.versions.get(one.id),
        "heard": f"{age(one.heard_s)} ago" if silent else None if one.heard_s is None else "now",
        "behind": one.behind,
        "for": None if one.behind_s is None else age(one.behind_s),
    }


def _quorum(found: Nodes) -> str:
    quorum = found.quorum
    if quorum.leader is None:
        return "the metadata quorum has no leader"
    text = f"node {quorum.leader} leads in epoch {quorum.epoch}, {some(quorum.end, 'record')};"
    text += f" voters {', '.join(map(str, quorum.voters))}"
    if quorum.observers:
        text += f"; observers {', '.join(map(str, quorum.observers))}"
    return text


def _print_behind(found: Nodes, health: Health, *, wide: bool) -> None:
    shown = health.behind if wide else health.behind[:_SHOWN]
    rows: list[Row] = [
        {
            "partition": f"{one.topic}:{one.partition}",
            "leader": one.leader if one.leader >= 0 else None,
            "replicas": one.replicas,
            "isr": one.isr,
            "missing": "; ".join(
                describe_missing(each, found.all.get(each.node)) for each in one.missing
            ),
        }
        for one in shown
    ]
    table(["partition", "leader", "replicas", "isr", "missing"], rows)
    if len(health.behind) > len(shown):
        print_note(f"and {len(health.behind) - len(shown):,} more; -o wide shows all of them")
