"""The grammar of offsets that consume and trim share, and what an offset means in a partition.

    start beginning earliest | end latest     the ends of what is there
    47  +2  -3                                an offset; behind the start; before the end, where
                                              consume counts records instead of offsets
    @TIME  s@TIME                             the first record that is not older
    e@TIME                                    stop there (consume)
    2h  1h30m  7d                             that long ago

TIME: ms (13 digits) or s since 1970, 2013-01-31, 2013-01-31T12:00:00Z (local time without a
zone), 12:00 (the last one that was), or a duration.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from console.model.asking.failure import UNREACHABLE, Failure, unknown_topic, usage

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from console.model.asking.link import Link

START: Final = "start"
END: Final = "end"
AT: Final = "offset"
TIME: Final = "time"
_WORDS: Final = {
    **dict.fromkeys(("start", "beginning", "earliest", "oldest", "begin"), START),
    **dict.fromkeys(("end", "latest", "newest"), END),
}
UNITS_MS: Final = {
    "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000,
}  # fmt: skip
_DURATION: Final = re.compile(r"(?:\d+(?:ms|s|m|h|d|w))+")
_DURATION_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_CLOCK: Final = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")
_GRAMMAR: Final = "start, end, 47, +2, -3, @2013-01-31T12:00:00Z, @1357038000000, 2h"


@dataclass(slots=True, frozen=True)
class Place:
    """kind: START, END, AT, TIME. number: added to START and END, the offset, or ms since 1970."""

    kind: str
    number: int = 0


@dataclass(slots=True, frozen=True)
class Bounds:
    """First and next offset of one partition, and where two places lie in it."""

    low: int
    high: int


def parse(text: str, now_ms: int) -> tuple[Place, bool]:
    """(place, whether it says where to stop). Raises Failure (USAGE)."""
    stop = text.startswith("e@")
    if stop or text.startswith("s@"):
        return Place(TIME, time_of(text[2:], now_ms)), stop
    if text.startswith("@"):
        return Place(TIME, time_of(text[1:], now_ms)), False
    if text in _WORDS:
        return Place(_WORDS[text]), False
    if text == "stored":
        raise usage("-o stored needs a consumer group: add -g GROUP, or name an offset")
    if re.fullmatch(r"\d+", text):
        return Place(AT, int(text)), False
    if re.fullmatch(r"\+\d+", text):
        return Place(START, int(text)), False
    if re.fullmatch(r"-\d+", text):
        return Place(END, int(text)), False
    if _DURATION.fullmatch(text):
        return Place(TIME, now_ms - duration_ms(text)), False
    raise usage(f"-o {text!r} is not an offset", f"for example {_GRAMMAR}")


def duration_ms(text: str) -> int:
    """`1h30m` in ms."""
    return sum(int(n) * UNITS_MS[unit] for n, unit in _DURATION_PART.findall(text))


def time_of(text: str, now_ms: int) -> int:
    """A time as a person types it, in ms since 1970: `2h` ago, `12:00`, seconds, ms, ISO 8601.
    Raises Failure."""
    if _DURATION.fullmatch(text.removeprefix("-")):
        return now_ms - duration_ms(text)
    if _CLOCK.fullmatch(text):
        return _last(text, now_ms)
    if text.isdigit():
        return int(text) if len(text) > 11 else int(text) * 1000
    try:
        return round(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError):
        raise usage(
            f"{text!r} is not a time", "for example @2013-01-31T12:00:00Z, @1357038000000, @2h"
        ) from None


def _last(clock: str, now_ms: int) -> int:
    """When a clock here showed that last."""
    now = datetime.fromtimestamp(now_ms / 1000).astimezone()
    hour, minute, second = map(int, [*clock.split(":"), "0"][:3])
    then = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return round((then if then <= now else then - timedelta(days=1)).timestamp() * 1000)


def partitions_of(
    link: "Link", topics: list[str], wanted: tuple[int, ...] = ()
) -> "list[TopicPartition]":
    """The partitions of `topics`, or those of them that are wanted. Raises Failure."""
    from confluent_kafka import TopicCollection, TopicPartition

    found = []
    admin = link.admin()
    answers = admin.describe_topics(TopicCollection(topics), request_timeout=link.timeout_s)
    for name, answer in answers.items():
        there = sorted(partition.id for partition in link.wait(answer, name).partitions)
        for number in wanted:
            if number not in there:
                raise no_partition(name, number, len(there))
        found += [TopicPartition(name, number) for number in wanted or there]
    return found


def no_partition(topic: str, number: int, count: int) -> Failure:
    """A topic has so many partitions and not this one."""
    return unknown_topic(f"{topic} has no partition {number}", f"it has {count}: 0 to {count - 1}")


Lost = dict[tuple[str, int], Failure]
"""Partition → why it did not say its offsets."""


def bounds(
    link: "Link", partitions: "list[TopicPartition]", lost: Lost | None = None
) -> "dict[tuple[str, int], Bounds]":
    """First and next offset of each. lost: takes those that the broker refuses, an offline one for
    example; without it the first of them raises Failure."""
    from confluent_kafka.admin import OffsetSpec

    low = _ask(link, partitions, OffsetSpec.earliest, lost)
    high = _ask(link, partitions, OffsetSpec.latest, lost)
    return {key: Bounds(low[key], high[key]) for key in low if key in high}


def resolve(
    link: "Link",
    partitions: "list[TopicPartition]",
    place: Place,
    known: "dict[tuple[str, int], Bounds]",
) -> dict[tuple[str, int], int]:
    """The offset in each partition that `place` means, within what is there; offsets given as such
    are taken as they are."""
    from confluent_kafka.admin import OffsetSpec

    if place.kind == TIME:
        found = _ask(link, partitions, lambda: OffsetSpec.for_timestamp(max(0, place.number)))
        return {key: known[key].high if at < 0 else at for key, at in found.items()}
    places = {}
    for one in partitions:
        edge = known[one.topic, one.partition]
        if place.kind == AT:
            places[one.topic, one.partition] = place.number
        elif place.kind == START:
            places[one.topic, one.partition] = min(edge.high, edge.low + place.number)
        else:
            places[one.topic, one.partition] = max(edge.low, edge.high + place.number)
    return places


def _ask(
    link: "Link",
    partitions: "list[TopicPartition]",
    spec: Callable[[], object],
    lost: Lost | None = None,
) -> dict[tuple[str, int], int]:
    asked = {(one.topic, one.partition): spec() for one in partitions}
    return {key: int(found.offset) for key, found in _listed(link, asked, lost).items()}


def stable_ends(
    link: "Link", places: "list[tuple[str, int]]"
) -> dict[tuple[str, int], tuple[int, int]]:
    """Partition → (last stable offset, next offset): what lies between waits for a transaction.
    Those that the broker refuses are left out."""
    from confluent_kafka.admin import OffsetSpec

    asked = dict.fromkeys(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    stable = _listed(link, dict(asked), {}, committed=True)
    ends = _listed(link, dict(asked), {})  # asked later: it is never the lower one
    return {
        key: (int(stable[key].offset), int(found.offset))
        for key, found in ends.items()
        if key in stable
    }


def _listed(
    link: "Link",
    wanted: dict[tuple[str, int], object],
    lost: Lost | None,
    *,
    committed: bool = False,
) -> dict[tuple[str, int], Any]:
    """The ListOffsets answer of each partition. lost: as in `bounds`. committed: with the isolation
    level read_committed.
    """
    from confluent_kafka import IsolationLevel, TopicPartition

    if not wanted:
        return {}
    asked = {TopicPartition(*key): spec for key, spec in wanted.items()}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    answers = link.admin().list_offsets(
        asked,  # type: ignore[arg-type]
        request_timeout=link.timeout_s,
        isolation_level=level,
    )
    found = {}
    for one, answer in answers.items():
        try:
            found[one.topic, one.partition] = link.wait(answer)
        except Failure as failure:
            if lost is None or failure.code == UNREACHABLE:
                raise
            lost[one.topic, one.partition] = failure
    return found


def since(link: "Link", wanted: "dict[tuple[str, int], int]") -> dict[tuple[str, int], int]:
    """Partition → the offset of its first record that is not older than so many ms since 1970, -1
    where all are. Those that the broker refuses are left out."""
    from confluent_kafka.admin import OffsetSpec

    asked = {key: OffsetSpec.for_timestamp(max(0, at_ms)) for key, at_ms in wanted.items()}
    return {key: int(found.offset) for key, found in _listed(link, asked, {}).items()}


def newest_ms(link: "Link", places: "list[tuple[str, int]]") -> dict[tuple[str, int], int]:
    """Partition → the newest timestamp in it, ms since 1970, -1 where none is (KIP-734). Those that
    the broker refuses are left out."""
    from confluent_kafka.admin import OffsetSpec

    newest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
    asked = dict.fromkeys(places, newest)
    return {key: int(found.timestamp) for key, found in _listed(link, asked, {}).items()}
