"""Rules for notices to the operator, worst first, over values that were already read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.config.listeners import in_url
from console.model.access.certificates import AT_ONCE_S, Shown
from console.model.access.certificates import describe_problem as told_time
from console.model.asking.failure import Failure
from console.model.cluster.cluster import Seen
from console.model.cluster.cluster_watch import ClusterSeen
from console.model.jobs.jobs import Status
from console.model.local.local import Facts
from console.model.storage.disk import LogFolder
from console.model.storage.forecast import SOON_S, Forecast
from console.model.topics.expiry import LOST, Risk, cut, describe_risk
from console.model.transactions.open_transactions import Open, is_late, is_overdue
from console.model.transactions.open_transactions import describe_held as told_open

BAD: Final = "bad"
WARN: Final = "warn"
NOTE: Final = "note"
_ORDER: Final = (BAD, WARN, NOTE)
_LITTLE: Final = 0.10  # of a disk
_TOO_LITTLE: Final = 0.02  # the appliance keeps 1 %, and twice that to take records again
_LATELY_S: Final = 300.0
_NAMED: Final = 3
_MOST: Final = 500  # characters of a cause
_GB: Final = 10**9
_MB: Final = 10**6
_ROOM: Final = "make room on it, or keep less: retention.ms, retention.bytes"
_STORAGE: Final = "KAFKA_STORAGE_ERROR"
_NODES: Final = "nodes"


@dataclass(slots=True, frozen=True)
class Notice:
    """level: BAD, something does not work; WARN, it may soon not; NOTE, a guess. remedy: what
    to do, a sentence or a command. place: what there is to look at: topics, groups, clients, log,
    nodes; "" for nothing."""

    level: str
    what: str
    remedy: str
    place: str = ""


def attention(
    lost: Failure | None,
    facts: Facts | None,
    folders: Sequence[LogFolder],
    topics: dict[str, Seen],
    risks: Sequence[Risk] = (),
    jobs: Sequence[Status] = (),
    forecasts: Mapping[int, Forecast] | None = None,
    transactions: Sequence[Open] = (),
    nodes: ClusterSeen | None = None,
    certificates: Sequence[Shown] = (),
    now_s: float = 0.0,
) -> list[Notice]:
    """lost: why the broker does not answer. facts: of an appliance of this host; topics: of any
    other. risks: what is about to be deleted before a group has read it. jobs: those that should
    run and do not. forecasts: of folders, by their number. transactions: those that are open.
    nodes: of a cluster. certificates: what listeners with TLS show; now_s: since 1970, for them."""
    found = []
    if lost is not None:
        found.append(Notice(BAD, lost.message, lost.hint))
    found += of_cluster(nodes)
    if nodes is None or not nodes.several or facts is not None:
        found += _offline(facts, topics)
    found += [notice for one in folders for notice in _folder(one)]
    found += _jobs(jobs)
    for number, forecast in (forecasts or {}).items():
        if number < len(folders):
            found += _filling(folders[number], forecast)
    if facts is not None:
        found += _processes(facts)
        refused = sum(one.errors.get(_STORAGE, 0) for one in facts.apis)
        if refused:
            what = f"{refused} answers of the last seconds were {_STORAGE}"
            found.append(Notice(BAD, what, "a disk is full or fails; its events say which", "log"))
    found += _certificates(certificates, now_s)
    found += _unread(risks)
    found += _transactions(transactions)
    return sorted(found, key=lambda one: _ORDER.index(one.level))


def of_cluster(seen: ClusterSeen | None) -> list[Notice]:
    """Notices about nodes and replicas, worst first; none of a single broker."""
    if seen is None or not seen.several:
        return []
    found, health = [], seen.health
    if seen.nodes.quorum.leader is None:
        what = f"the metadata quorum has no leader: no majority{_of_voters(seen)}"
        found.append(
            Notice(BAD, what, "bring controllers back; partitions with a leader are served", _NODES)
        )
    if health is not None and health.offline:
        what = f"{_partitions(health.offline)} without a leader: not written, not read"
        found.append(Notice(BAD, what, "bring back a node that has them", _NODES))
    if health is not None and health.under_min_isr:
        what = f"{_partitions(health.under_min_isr)} under min.insync.replicas: acks=all is refused"
        found.append(Notice(BAD, what, "bring back the nodes that are missing", _NODES))
    if seen.missing:
        named = ", ".join(str(one.id) for one in seen.missing[:_NAMED])
        more = f" and {len(seen.missing) - _NAMED} more" if seen.missing[_NAMED:] else ""
        several = "s" if len(seen.missing) > 1 else ""
        what = f"node{several} {named}{more} missing"
        found.append(Notice(WARN, what, "start it, or see why it is away", _NODES))
    if health is not None and health.under_replicated:
        what = f"{_partitions(health.under_replicated)} under-replicated"
        found.append(Notice(WARN, what, "which, why, and how far they are", _NODES))
    return found


def _of_voters(seen: ClusterSeen) -> str:
    return f" of the voters {', '.join(map(str, seen.voters))}" if seen.voters else ""


def _partitions(count: int) -> str:
    return f"{count:,} partition{'s' if count > 1 else ''}"


def _certificates(shown: Sequence[Shown], now_s: float) -> list[Notice]:
    """Those that end soon. Who shows none is told by its events."""
    found = []
    for one in shown:
        if one.certificate is not None and (wrong := told_time(one.certificate, now_s)):
            lasts = one.certificate.begins_s <= now_s < one.certificate.ends_s - AT_ONCE_S
            name, host, port = one.listener
            what = f"the certificate of {name or 'the listener'} at {in_url(host)}:{port} {wrong}"
            remedy = "renew it: a file that changes is read again without a restart"
            found.append(Notice(WARN if lasts else BAD, what, remedy))
    return found


def _unread(risks: Sequence[Risk]) -> list[Notice]:
    """The most urgent of each group. What a group without members lost is old news: it may never
    come back, and its own view tells it."""
    first: dict[str, Risk] = {}
    for one in risks:
        if one.members or one.by != LOST:
            first.setdefault(one.group, one)
    return [
        Notice(
            BAD if one.by == LOST else WARN,
            describe_risk(one),
            f"or :group {cut(one.group)}",
            "groups",
        )
        for one in first.values()
    ]


def _transactions(opened: Sequence[Open]) -> list[Notice]:
    """Those that hold records back and should have ended: read_committed readers wait for them."""
    late = [one for one in opened if one.records and is_late(one)]
    found = [
        Notice(BAD if is_overdue(one) else WARN, told_open(one), "D aborts it", "txns")
        for one in late[:_NAMED]
    ]
    if late[_NAMED:]:
        more = f"{len(late) - _NAMED} more transactions are open for long"
        found.append(Notice(WARN, more, "look at them", "txns"))
    return found


def _offline(facts: Facts | None, topics: dict[str, Seen]) -> list[Notice]:
    if facts is not None:
        sick = {one.topic: one.offline for one in facts.topics.values() if one.offline}
    else:
        sick = {one.name: one.leaderless for one in topics.values() if one.leaderless}
    if not sick:
        return []
    names = sorted(sick)
    shown = ", ".join(names[:_NAMED]) + (
        f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
    )
    count = sum(sick.values())
    what = f"{count} partition{'s' if count > 1 else ''} offline: {shown}"
    return [Notice(BAD, what, "penstock topic describe says why", "topics")]


def _folder(one: LogFolder) -> list[Notice]:
    if one.problem:
        return [Notice(BAD, f"log folder {one.path} is offline: {one.problem}", "look at its disk")]
    if one.total_bytes <= 0 or one.free_bytes >= one.total_bytes * _LITTLE:
        return []
    level = BAD if one.free_bytes < one.total_bytes * _TOO_LITTLE else WARN
    share = one.free_bytes / one.total_bytes
    what = f"the disk of {one.path} has {share:.0%} free ({one.free_bytes / _GB:.1f} GB)"
    return [Notice(level, what, _ROOM, "topics")]


def _filling(one: LogFolder, forecast: Forecast) -> list[Notice]:
    if forecast.full_s is None or forecast.full_s >= SOON_S or one.problem:
        return []
    rate = f"{forecast.slope * 60 / _MB:,.0f} MB/min of all programs"
    what = (
        f"the disk of {one.path} would be full in {_span(forecast.full_s)} at the rate of the last"
        f" {_span(forecast.known_s)}: {rate}"
    )
    return [Notice(NOTE, what, _ROOM, "topics")]


def _span(seconds: float) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _jobs(sick: Sequence[Status]) -> list[Notice]:
    told = [one for one in sick if one.cause]
    if len(told) <= _NAMED:
        what = [f"job {one.job} is {one.state}: {(one.cause or '')[:_MOST]}" for one in told]
        return [
            Notice(BAD, one, by.remedy or "", "jobs") for one, by in zip(what, told, strict=True)
        ]
    names = ", ".join(one.job for one in told[:_NAMED])
    what_all = f"{len(told)} jobs do not run: {names} and {len(told) - _NAMED} more"
    return [Notice(BAD, what_all, told[0].remedy or "", "jobs")]


def _processes(facts: Facts) -> list[Notice]:
    found = []
    for one in facts.processes:
        since = facts.replaced_s.get(one.process)
        if one.state != "ready":
            what = f"{one.process} is {one.state}"
            found.append(
                Notice(BAD, what, "it is started again by itself; events say why it ended", "log")
            )
        elif since is not None and since < _LATELY_S:
            what = f"{one.process} was replaced {since:.0f} s ago"
            found.append(Notice(WARN, what, "its last events say why it ended", "log"))
    return found
