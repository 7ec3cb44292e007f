"""How an appliance stands, on one screen of 80 columns, and as a row for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from console.model.cluster.cluster_watch import ClusterSeen
from console.model.local.local import Facts
from console.model.local.standing import NOT_SERVING, STATES, Standing
from console.model.local.stats import ProcessRate
from console.model.storage.disk import LogFolder
from console.model.storage.forecast import Forecast
from console.model.transactions.open_transactions import Open
from console.model.transactions.open_transactions import describe_held as told_open
from console.show.figures import age, in_bytes, moment_in_zone, short, some
from console.show.leads import full
from console.show.output import Row, plain, rows_of

_NOTICES: Final = 5
_PROCESSES: Final = 6
_GROUPS: Final = 3
_OPEN: Final = 3
_TOPICS: Final = 5
_WARNINGS: Final = 3
_KINDS: Final = 3
_NAME: Final = 40
_LABEL: Final = 11


def lines(one: Standing, version: str) -> list[str]:
    """Formats the status for a person; control characters are escaped."""
    parts: list[tuple[str, Sequence[str]]] = [
        ("", _head(one, version)),
        ("cluster", [_cluster(one.cluster)] if one.cluster else []),
    ]
    if one.facts is not None:
        parts += [
            ("listens", [", ".join(one.facts.listeners) or "nowhere"]),
            ("traffic", [_traffic(one.facts)]),
            ("clients", [_clients(one.facts)]),
            ("processes", list(_processes(one.facts.processes))),
            ("groups", [_groups(one)]),
        ]
    parts += [
        ("held back", _held(one.transactions)),
        ("disk", list(_disks(one))),
        ("warnings", list(_warnings(one))),
        ("not known", one.unknown),
    ]
    return [
        f"{label if not n else '':{_LABEL}}{plain(text)}".rstrip() if label else plain(text)
        for label, told in parts
        for n, text in enumerate(told)
    ]


def _head(one: Standing, version: str) -> list[str]:
    up = ""
    if one.facts is not None:
        started_s = one.facts.started_ms / 1000
        up = f", up {age(one.at_s - started_s)}, since {moment_in_zone(one.facts.started_ms)}"
    told = [f"penstock {version} at {one.asked}: {STATES[one.code]}{up}"]
    if one.lost is not None:
        told.append(f"! {one.lost.message}")
        told += [f"  {one.lost.hint}"] if one.lost.hint else []
    told += [f"! {each}" for each in one.missing]
    told += [f"! {each.what}" for each in one.notices[:_NOTICES] if each.what not in one.missing]
    return told + _more(len(one.notices), _NOTICES)


def _more(count: int, most: int) -> list[str]:
    return [f"and {count - most:,} more"] if count > most else []


def _cluster(seen: ClusterSeen) -> str:
    leader = seen.nodes.quorum.leader
    if not seen.several:
        return f"one node alone, {', '.join(map(str, seen.nodes.all))}; nothing is replicated"
    lives = len(seen.nodes.all) - len(seen.missing)
    leads = f"node {leader} leads" if leader is not None else "no node leads"
    voters = ", ".join(map(str, seen.voters))
    told = f"{lives} of {len(seen.nodes.all)} nodes; {leads} the metadata, voters {voters}"
    if seen.health is not None:
        told += f"; {seen.health.under_replicated} of {seen.health.partitions:,} under-replicated"
    return told


def _sums(facts: Facts) -> dict[str, float]:
    topics = facts.topics.values()
    return {
        "in_s": sum(one.in_mb_s for one in topics) * 1e6,
        "records_in_s": sum(one.records_in_s for one in topics),
        "out_s": sum(one.out_mb_s for one in topics) * 1e6,
        "fetches_s": sum(one.fetches_s for one in topics),
        "requests_s": sum(one.requests_s for one in facts.apis),
    }


def _traffic(facts: Facts) -> str:
    sums = _sums(facts)
    return (
        f"in {in_bytes(sums['in_s'])}/s, {short(sums['records_in_s'])} records/s;"
        f" out {in_bytes(sums['out_s'])}/s; {short(sums['requests_s'])} requests/s"
    )


def _clients(facts: Facts) -> str:
    told = some(len(facts.clients) + facts.clients_left_out, "connection")
    kinds = Counter(
        f"{one.software} {one.version}".strip() or "software not said" for one in facts.clients
    )
    if kinds:
        told += f": {', '.join(f'{name} ×{n}' for name, n in kinds.most_common(_KINDS))}"
    waiting = [one for one in facts.clients if one.throttled_by]
    if waiting:
        told += f"; {len(waiting)} throttled, e.g. {waiting[0].client_id[:_NAME]}"
    return told


def _processes(found: Sequence[ProcessRate]) -> Iterator[str]:
    """The sick first, then the busiest."""
    first = sorted(found, key=lambda one: (one.state == "ready", -one.cpu_percent, one.process))
    width = max((len(one.process) for one in first[:_PROCESSES]), default=0)
    for one in first[:_PROCESSES]:
        yield (
            f"{one.process:{width}} {one.state:8} {short(one.cpu_percent):>5} % CPU"
            f" {in_bytes(one.memory_mb * 1e6):>8}, {some(one.restarts, 'restart')}"
        )
    yield from _more(len(first), _PROCESSES)


def _groups(one: Standing) -> str:
    behind = [(group, lag) for group, lag in one.lags.items() if lag]
    if not behind:
        return f"{some(len(one.lags), 'group')}, none is behind"
    worst = ", ".join(f"{name[:_NAME]} by {lag:,}" for name, lag in behind[:_GROUPS])
    return f"{len(behind)} of {some(len(one.lags), 'group')} behind: {worst}"


def _held(found: Sequence[Open]) -> list[str]:
    first = sorted(found, key=lambda one: (not one.hangs, -(one.age_s or 0.0)))
    return [told_open(one) for one in first[:_OPEN]] + _more(len(first), _OPEN)


def _disks(one: Standing) -> Iterator[str]:
    for number, folder in enumerate(one.folders):
        known = one.forecasts.get(number) if one.facts is not None else None
        yield _disk(folder, known, is_ours=one.facts is not None)
        largest = [(name, size) for name, size in _largest(folder) if size]
        if largest:
            yield f"  {', '.join(f'{name[:_NAME]} {in_bytes(size)}' for name, size in largest)}"


def _disk(one: LogFolder, known: Forecast | None, *, is_ours: bool) -> str:
    if one.problem:
        return f"{one.path} is offline: {one.problem}"
    if one.total_bytes <= 0:
        return one.path
    used = 1 - one.free_bytes / one.total_bytes
    leads = f", {full(known)}" if is_ours else ""
    return f"{one.path}: {used:.0%} used, {in_bytes(one.free_bytes)} free{leads}"


def _largest(one: LogFolder) -> list[tuple[str, int]]:
    return sorted(one.of_topics.items(), key=lambda each: (-each[1], each[0]))[:_TOPICS]


def _warnings(one: Standing) -> Iterator[str]:
    for event in one.warnings[-_WARNINGS:]:
        ago = age(one.at_s - event.at_ms / 1000)
        yield f"{ago} ago {event.level} {event.process} {event.event} {event.told}"


def row(one: Standing, version: str) -> Row:
    """The same for programs: bytes, seconds, records, and no cut but the topics of a folder."""
    facts, seen = one.facts, one.cluster
    return {
        "state": STATES[one.code],
        "code": one.code,
        "version": version,
        "asked": one.asked,
        "problems": _problems(one),
        "data": facts.data_dir if facts else None,
        "started_ms": facts.started_ms if facts else None,
        "up_s": round(one.at_s - facts.started_ms / 1000, 1) if facts else None,
        "listeners": list(facts.listeners) if facts else None,
        "cluster": _cluster_row(seen) if seen else None,
        "traffic": {k: round(v, 3) for k, v in _sums(facts).items()} if facts else None,
        "connections": len(facts.clients) + facts.clients_left_out if facts else None,
        "throttled": sum(bool(each.throttled_by) for each in facts.clients) if facts else None,
        "processes": rows_of(facts.processes) if facts else None,
        "groups": [{"group": name, "lag": lag} for name, lag in one.lags.items()]
        if facts
        else None,
        "transactions": [_open(each) for each in one.transactions],
        "folders": [_folder(each, one.forecasts.get(n)) for n, each in enumerate(one.folders)],
        "warnings": [
            {
                "at_ms": each.at_ms, "level": each.level, "process": each.process,
                "event": each.event, "fields": dict(each.fields),
            }
            for each in one.warnings[-_WARNINGS:]
        ],
        "unknown": list(one.unknown),
    }  # fmt: skip


def _problems(one: Standing) -> list[Row]:
    serving = [one.lost.message] if one.lost is not None else []
    told: list[Row] = [
        {"level": STATES[NOT_SERVING], "what": each} for each in (*serving, *one.missing)
    ]
    return told + [{"level": each.level, "what": each.what} for each in one.notices]


def _cluster_row(seen: ClusterSeen) -> Row:
    return {
        "id": seen.nodes.cluster_id,
        "nodes": len(seen.nodes.all),
        "missing": [one.id for one in seen.missing],
        "leader": seen.nodes.quorum.leader,
        "voters": list(seen.voters),
        "under_replicated": seen.health.under_replicated if seen.health else 0,
        "offline": seen.health.offline if seen.health else 0,
    }


def _open(one: Open) -> Row:
    return {
        "name": one.name,
        "state": one.state,
        "producer_id": one.producer_id,
        "open_s": one.age_s,
        "held_back": one.records,
        "oldest_s": one.seconds,
    }


def _folder(one: LogFolder, known: Forecast | None) -> Row:
    return {
        "path": one.path,
        "problem": one.problem or None,
        "total_bytes": one.total_bytes,
        "free_bytes": one.free_bytes,
        "full_s": known.full_s if known else None,
        "known_s": known.known_s if known else None,
        "topics": dict(_largest(one)),
    }
