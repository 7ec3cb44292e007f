"""The part of an answer that changes when something happens in the appliance: without times, and
without counts of our own asking. A source whose answers stay the same so is asked less often.
"""

from typing import Final

from console.model.cluster.cluster_watch import ClusterSeen
from console.model.groups.group_watch import GroupSeen, GroupsSeen
from console.model.jobs.job_watch import Jobs
from console.model.local.local import Facts
from console.model.local.remembered import Remembered

_TRAFFIC: Final = ("bytes_in", "bytes_out")


def still_facts(seen: Facts) -> object:
    """Topics, connections, lags and the states of processes; no rates of requests, no memory."""
    clients = [(one.key, one.throttled_by, one.produced_s, one.fetched_s) for one in seen.clients]
    processes = [(one.process, one.pid, one.state) for one in seen.processes]
    return (
        seen.topics, seen.lags, seen.started_ms, seen.listeners, seen.since_start, clients,
        processes,
    )  # fmt: skip


def still_past(seen: Remembered) -> object:
    """The last records written and read; None: some were, and the chart moves on."""
    last = seen.seconds.told[-1:]
    moved = any(getattr(one, name) for one in last for name in _TRAFFIC)
    return seen.at_s if moved else (len(last), len(seen.forecasts))


def still_groups(seen: GroupsSeen) -> object:
    """Groups with their members and how far they are."""
    counts = {name: (one.members, one.topics, one.lag) for name, one in seen.counts.items()}
    return seen.listed, counts, seen.lags


def still_group(seen: GroupSeen) -> object:
    """Its members and offsets; the age of what is unread grows by itself."""
    return seen.group, [(one.topic, one.partition, one.lag) for one in seen.positions]


def still_cluster(seen: ClusterSeen) -> object:
    """All but how far nodes have followed the metadata log, which grows while nothing happens."""
    nodes, quorum = seen.nodes.all, seen.nodes.quorum
    each = {key: (one.address, one.state, one.roles) for key, one in nodes.items()}
    leads = (quorum.leader, quorum.epoch, quorum.voters, quorum.observers)
    return each, leads, seen.voters, seen.health, seen.counts, seen.moves


def still_jobs(seen: Jobs) -> object:
    """Jobs as their runner told them last."""
    return seen.folder, seen.runner, seen.jobs
