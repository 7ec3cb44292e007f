"""Records that retention deletes before a group has read them: how many, where, and when. Decided
here from what is known of a partition; `retention.py` asks for that.

Whole segments go, as in Apache Kafka: by retention.ms when the newest record of one is too old, by
retention.bytes when what comes behind it is enough. Where the segments are not known (another
host's) only the age of the oldest unread record is: it can be deleted from then on, and goes when
the segment around it does.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from console.model.topics.segments import Segment

BY_TIME: Final = "retention.ms"
BY_SIZE: Final = "retention.bytes"
LOST: Final = "lost"
_WARNED: Final = 0.25
"""Somebody is told when this part of the time that records are kept is left."""
_WARNED_MOST_S: Final = 2 * 86_400.0
_LONG: Final = 100
_RATED: Final = 10
"""Segments that say how fast a partition is written."""


@dataclass(slots=True, frozen=True)
class Keep:
    """How a topic's records are kept. ms, bytes: -1 for ever; both are when it does not delete."""

    ms: int
    bytes: int
    segment_bytes: int


@dataclass(slots=True, frozen=True)
class Log:
    """The known part of a partition's log. high: the next offset. newest_ms: number of a segment →
    its newest timestamp, of those that `asked` names; -1 when there is none.
    """

    high: int
    segments: tuple[Segment, ...]
    newest_ms: dict[int, int]


@dataclass(slots=True, frozen=True)
class Fate:
    """The expiry of unread records of one partition. records: how many expire. in_s: when; 0: at
    any moment. by: the setting that causes it. kept_s: retention time in all. exact: the segments
    are known; otherwise they expire at that time at the earliest.
    """

    records: int
    in_s: float
    by: str
    kept_s: float
    exact: bool


@dataclass(slots=True, frozen=True)
class Risk:
    """Unread records of a group in one topic that are about to be deleted, or (by: LOST) that
    already were. partitions: in which, the first to lose some first. in_s, by, exact: of that
    one."""

    group: str
    topic: str
    partitions: tuple[int, ...]
    records: int
    in_s: float
    by: str
    exact: bool
    members: int


def asked(at: int, log: Log) -> list[int]:
    """The numbers of the segments whose newest timestamp `fate` goes by."""
    if not log.segments:
        return []
    return sorted({_number(at, log), max(0, len(log.segments) - _RATED)} - {-1})


def _number(at: int, log: Log) -> int:
    """The number of the segment that holds an offset, -1 when there is none."""
    return bisect_right(log.segments, at, key=lambda one: one.base) - 1


def fate(at: int, log: Log, keep: Keep, now_ms: int) -> Fate | None:
    """The expiry of the records from `at` on, the first unread one; None when no known setting
    deletes them.
    """
    every, number = log.segments, _number(at, log)
    if number < 0 or at >= log.high:
        return None
    is_last = number + 1 == len(every)
    behind = log.high if is_last else every[number + 1].base
    found = []
    newest = log.newest_ms.get(number, -1)
    if keep.ms >= 0 and newest >= 0:
        left_s = max(0.0, (newest + keep.ms - now_ms) / 1000)
        found.append((left_s, BY_TIME, keep.ms / 1000))
    rate = _bytes_s(log, now_ms)
    if keep.bytes >= 0 and rate:
        to_go = keep.bytes - sum(one.size for one in every[number + 1 :])
        if is_last:  # it is full, and another one begun, before it goes
            to_go += max(0, keep.segment_bytes - every[number].size)
        found.append((max(0, to_go) / rate, BY_SIZE, keep.bytes / rate))
    if not found:
        return None
    in_s, by, kept_s = min(found)
    return Fate(behind - at, in_s, by, kept_s, exact=True)


def _bytes_s(log: Log, now_ms: int) -> float:
    """How fast it is written, by what came behind one of its last segments; 0.0: not known."""
    shown = log.segments[-_RATED:]
    first_ms = log.newest_ms.get(len(log.segments) - len(shown), -1)
    span_ms = now_ms - first_ms
    if len(shown) < 2 or first_ms < 0 or span_ms <= 0:
        return 0.0
    return sum(one.size for one in shown[1:]) * 1000 / span_ms


def fate_by_age(age_s: float, records: int, keep: Keep) -> Fate | None:
    """Where segments are not known. age_s: of the oldest unread record. records: those that are
    old enough when somebody is warned."""
    if keep.ms < 0:
        return None
    kept_s = keep.ms / 1000
    return Fate(records, max(0.0, kept_s - age_s), BY_TIME, kept_s, exact=False)


def warned_s(kept_s: float) -> float:
    """How long before they go somebody is told."""
    return min(kept_s * _WARNED, _WARNED_MOST_S)


def warns(one: Fate, unread: int, reads_s: float) -> bool:
    """True if the expiry deserves a warning: it comes soon, and before the group has read the
    records. reads_s: records per second that it reads, 0.0 when unknown.
    """
    if one.in_s > warned_s(one.kept_s):
        return False
    return not (reads_s > 0 and min(one.records, unread) / reads_s < one.in_s)


def by_topic(group: str, members: int, found: Sequence[tuple[tuple[str, int], Fate]]) -> list[Risk]:
    """One risk for each topic and setting, the most urgent first."""
    risks = []
    ordered = sorted(found, key=lambda one: (one[0][0], one[1].by, one[1].in_s, one[0][1]))
    for (topic, by), each in groupby(ordered, key=lambda one: (one[0][0], one[1].by)):
        same = list(each)
        first = same[0][1]
        risks.append(
            Risk(
                group=group, topic=topic, partitions=tuple(place[1] for place, _ in same),
                records=sum(one.records for _, one in same), in_s=first.in_s, by=by,
                exact=first.exact, members=members,
            )
        )  # fmt: skip
    return sorted(risks, key=lambda one: (one.by != LOST, one.in_s))


def describe_risk(one: Risk) -> str:
    """In a sentence. Names that are very long are cut."""
    group, topic = cut(one.group), cut(one.topic)
    where = f"{topic}-{one.partitions[0]}" if len(one.partitions) == 1 else topic
    some = f"{one.records:,} record{'' if one.records == 1 else 's'}"
    if len(one.partitions) > 1:
        where += f" ({len(one.partitions)} partitions, first {one.partitions[0]})"
    if one.by == LOST:
        return f"group {group} has not read {some} of {where} that are deleted"
    if one.exact:
        when = f"in about {span(one.in_s)}" if one.in_s >= 1 else "at any moment"
        return f"group {group} loses {some} of {where} {when}: {one.by}"
    when = f"in {span(one.in_s)} at the earliest" if one.in_s >= 1 else "at any moment"
    return f"group {group} can lose {some} of {where} {when}: {one.by}"


def cut(name: str) -> str:
    """A name as a sentence has room for it."""
    return name if len(name) <= _LONG else f"{name[: _LONG - 1]}…"


def span(seconds: float) -> str:
    """50 s, 40 min, 5 h, 2 d."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length or (seconds >= length and unit == "min"):
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
