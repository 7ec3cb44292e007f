"""The flow of records between topics, jobs and consumer groups as one graph, made of what the
console knows already. Nothing is asked here.

Producers are not in it: an appliance counts what a client writes, not into which topics.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from console.model.jobs.jobs import Status

TOPIC: Final = "topic"
JOB: Final = "job"
GROUP: Final = "group"
OUTSIDE: Final = "other"
"""A file, a folder or a table of a database, as a job names it."""
_ORDER: Final = (TOPIC, JOB, GROUP, OUTSIDE)


class Part(NamedTuple):
    """One node of the graph: a TOPIC, JOB, GROUP or OUTSIDE by its name."""

    kind: str
    name: str


class Edge(NamedTuple):
    """One neighbour of a part. lag: records that the reader is behind there, None when nobody
    counted them, or nobody reads."""

    part: Part
    lag: int | None = None


@dataclass(slots=True, frozen=True)
class Topology:
    """sources: part → where its records come from; targets: part → where they go; each sorted, and
    every edge is in both. parts: all there are; those with edges first, topics before jobs before
    groups. missing: topics that a job or group names and that do not exist.
    """

    parts: tuple[Part, ...] = ()
    sources: Mapping[Part, tuple[Edge, ...]] = field(default_factory=dict)
    targets: Mapping[Part, tuple[Edge, ...]] = field(default_factory=dict)
    missing: frozenset[Part] = frozenset()


def connect_parts(
    topics: Iterable[str],
    jobs: Mapping[str, Status],
    lags: Mapping[tuple[str, str], int],
    groups: Iterable[str] = (),
) -> Topology:
    """The graph of these. topics: those that exist. lags: (group, topic) → records behind. groups:
    further groups, of which nobody knows what they read. A job commits as the group of its name:
    that group is the job, and has no node of its own.
    """
    existing = {Part(TOPIC, name) for name in topics}
    edges: dict[tuple[Part, Part], int | None] = {}
    for name, job in jobs.items():
        here = Part(JOB, name)
        for source in _named(job.reads):
            edges[source, here] = None
        for target in _named([job.writes]):
            edges[here, target] = None
    for (group, topic), behind in lags.items():
        edges[Part(TOPIC, topic), Part(JOB if group in jobs else GROUP, group)] = behind
    sources: dict[Part, list[Edge]] = {}
    targets: dict[Part, list[Edge]] = {}
    for (begin, end), lag in edges.items():
        targets.setdefault(begin, []).append(Edge(end, lag))
        sources.setdefault(end, []).append(Edge(begin, lag))
    connected = sources.keys() | targets.keys()
    rest = existing | {Part(JOB, name) for name in jobs}
    rest |= {Part(GROUP, name) for name in groups if name not in jobs}
    return Topology(
        parts=(*sorted(connected, key=_place), *sorted(rest - connected, key=_place)),
        sources={part: _sorted(found) for part, found in sources.items()},
        targets={part: _sorted(found) for part, found in targets.items()},
        missing=frozenset(one for one in connected - existing if one.kind == TOPIC),
    )


def _named(told: object) -> list[Part]:
    """The parts that a job reads or writes, `topic orders` or `file /a/b` as its runner says. The
    topic of states may hold anything."""
    texts = told if isinstance(told, list) else []
    return [_part(one) for one in texts if isinstance(one, str) and one]


def _part(text: str) -> Part:
    kind, space, name = text.partition(" ")
    if kind == TOPIC and name:
        return Part(TOPIC, name)
    return Part(OUTSIDE, text) if space else Part(TOPIC, text)


def _place(part: Part) -> tuple[int, str]:
    return _ORDER.index(part.kind), part.name


def _sorted(edges: list[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted(edges, key=lambda one: _place(one.part)))
