"""Where to look for records: the grammar of the seek box and of `consume -o`, and what it means in
each partition.

    PLACE             from there on, in every partition
    PLACE..PLACE      and to before there; ..PLACE: from the start
    e@TIME            to before that time
    3:PLACE  0-3:…    in these partitions; when nothing else is said, only in them

Blanks or commas between them. PLACE is the grammar of `groups/offsets.py`: start, end, 47, +2, -3,
@TIME, 2h; `2h ago` too, and a blank instead of the T in `@2013-01-31 12:00`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from console.model.asking.failure import Failure, usage
from console.model.groups.offsets import (
    START,
    Bounds,
    Place,
    bounds,
    no_partition,
    parse,
    partitions_of,
    resolve,
)  # fmt: skip

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from console.model.asking.link import Link

Key = tuple[str, int]
"""A topic and a partition."""

GRAMMAR: Final = "start, end, 47, +2, -3, @2013-01-31 12:00, 2h ago, FROM..TO, 0:47"
_GLUE: Final = "\N{NO-BREAK SPACE}"
_FROM_START: Final = Place(START)
_UNIT: Final = r"(?:ms|seconds?|s|minutes?|min|m|hours?|h|days?|d|weeks?|w)"
_TOGETHER: Final = re.compile(
    rf"(?:\d+ *{_UNIT} *)+ ago\b|@\d{{4}}-\d\d-\d\d +\d\d:\d\d", re.IGNORECASE
)
_AGO: Final = re.compile(rf"((?:\d+{_UNIT})+)ago", re.IGNORECASE)
_PART: Final = re.compile(rf"(\d+)({_UNIT})", re.IGNORECASE)
_DATE: Final = re.compile(rf"(@\d{{4}}-\d\d-\d\d){_GLUE}+")
_NAMED: Final = re.compile(r"(\d+)(?:-(\d+))?:(.+)")


@dataclass(slots=True, frozen=True)
class Range:
    """first: where to begin. stop: before where to end, None for where the log ends."""

    first: Place = _FROM_START
    stop: Place | None = None


_ALL: Final = Range()


@dataclass(slots=True, frozen=True)
class Named:
    """The range for partitions `low` to `high`, both included."""

    low: int
    high: int
    range: Range


@dataclass(slots=True, frozen=True)
class Seek:
    """rest: of all partitions that are not named; None when only the named ones are looked at."""

    rest: Range | None = _ALL
    named: tuple[Named, ...] = ()

    def of(self, partition: int) -> Range | None:
        """The range for a partition; None when it is not read."""
        for one in self.named:
            if one.low <= partition <= one.high:
                return one.range
        return self.rest

    @property
    def has_stop(self) -> bool:
        """True if any range has an end."""
        ranges = [self.rest, *(one.range for one in self.named)]
        return any(one is not None and one.stop is not None for one in ranges)


@dataclass(slots=True, frozen=True)
class Span:
    """The offsets to read of one partition: first <= offset < stop. expired: how many requested
    offsets lie before the first one that exists.
    """

    first: int
    stop: int
    expired: int = 0


def parse_seek(text: str, now_ms: int) -> Seek:
    """The places in `text`; nothing means from the start. Raises Failure (USAGE), which quotes what
    is wrong."""
    first: Place | None = None
    stop: Place | None = None
    named: list[Named] = []
    glued = _TOGETHER.sub(lambda found: found[0].replace(" ", _GLUE), text)
    for item in re.findall(r"[^ \t,]+", glued):
        of = _NAMED.fullmatch(item)
        begin, end = _range(of[3] if of else item, now_ms)
        if of is None:
            if (begin and first) or (end and stop):
                raise _wrong(item, "one place to begin and one to end is enough")
            first, stop = begin or first, end or stop
            continue
        low, high = int(of[1]), int(of[2] or of[1])
        if any(one.low <= high and low <= one.high for one in named) or low > high:
            raise _wrong(item, "name each partition once, the smaller number first")
        named.append(Named(low, high, Range(begin or _FROM_START, end)))
    if first is None and stop is None and named:
        return Seek(None, tuple(named))
    return Seek(Range(first or _FROM_START, stop), tuple(named))


def _range(item: str, now_ms: int) -> tuple[Place | None, Place | None]:
    begin, dots, end = item.partition("..")
    first, is_stop = _place(begin, now_ms) if begin else (None, False)
    if not dots:
        return (None, first) if is_stop else (first, None)
    stop = _place(end, now_ms)[0] if end else None
    if is_stop or (first is None and stop is None):
        raise _wrong(item, "FROM..TO has a place at one side at least")
    return first, stop


def _place(item: str, now_ms: int) -> tuple[Place, bool]:
    text = _DATE.sub(r"\1T", item).replace(_GLUE, "")
    ago = _AGO.fullmatch(text)
    if ago:
        text = "".join(number + _short(unit.lower()) for number, unit in _PART.findall(ago[1]))
    try:
        return parse(text, now_ms)
    except Failure as wrong:
        raise _wrong(item, wrong.hint) from None


def _short(unit: str) -> str:
    return unit if unit == "ms" else unit[0]


def _wrong(item: str, why: str) -> Failure:
    told = item.replace(_GLUE, " ")
    return usage(f"-o {told!r} is not a place to look at", why or f"for example {GRAMMAR}")


def known_partitions(
    link: "Link", topics: list[str], wanted: Iterable[int], seek: Seek
) -> "list[TopicPartition]":
    """The partitions to look at: those that are wanted, all without a word, of those that the seek
    names. Raises Failure for a topic or a partition that is not there."""
    found = partitions_of(link, topics, tuple(wanted))
    for topic in topics:
        count = sum(one.topic == topic for one in found)
        for one in seek.named:
            if not wanted and one.high >= count:
                raise no_partition(topic, one.high, count)
    return [one for one in found if seek.of(one.partition) is not None]


def places(
    link: "Link", partitions: "list[TopicPartition]", seek: Seek
) -> tuple[dict[Key, int], dict[Key, int], dict[Key, Bounds]]:
    """(where to begin, before where to end where that was said, what is there). What is given as an
    offset is not moved into what is there, everything else lies within. Raises Failure."""
    known = bounds(link, partitions)
    by_first: dict[Place, list[TopicPartition]] = {}
    by_stop: dict[Place, list[TopicPartition]] = {}
    for one in partitions:
        said = seek.of(one.partition)
        assert said is not None, "a partition that is not looked at"
        by_first.setdefault(said.first, []).append(one)
        if said.stop is not None:
            by_stop.setdefault(said.stop, []).append(one)
    firsts: dict[Key, int] = {}
    stops: dict[Key, int] = {}
    for place, some in by_first.items():
        firsts |= resolve(link, some, place, known)
    for place, some in by_stop.items():
        stops |= resolve(link, some, place, known)
    return firsts, stops, known


def spans(link: "Link", partitions: "list[TopicPartition]", seek: Seek) -> dict[Key, Span]:
    """The spans to read, within what exists now. Raises Failure."""
    firsts, stops, known = places(link, partitions, seek)
    return {key: span(first, stops.get(key), known[key]) for key, first in firsts.items()}


def span(first: int, stop: int | None, edge: Bounds) -> Span:
    """Within what is there. stop: None for the end."""
    last = edge.high if stop is None else min(max(stop, edge.low), edge.high)
    begin = min(max(first, edge.low), last)
    gone = edge.low if stop is None else min(edge.low, stop)
    return Span(begin, last, max(0, gone - first))


def seek_of(spans: Mapping[Key, Span]) -> str:
    """The seek that looks at just these offsets of one topic: `0:100..250 1:30..99`."""
    return " ".join(
        f"{partition}:{one.first}..{one.stop}"
        for (_, partition), one in sorted(spans.items())
        if one.first < one.stop
    )
