"""Where `group seek` shall go: the grammar of --to, files of offsets, and which partitions.

It is the grammar of offsets (`offsets.py`) with one difference: +N and -N count from what the group
has committed, because here there is such a thing. start+N and end-N count from the ends.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from console.model.asking.change import STALE
from console.model.asking.failure import Failure, unknown_topic, unreadable, usage
from console.model.asking.link import Link
from console.model.groups.groups import (
    Place,
    commit,
    committed,
    described,
    edges,
    existing,
    refuse_live,
)
from console.model.groups.offsets import AT, END, START, Bounds, no_partition, parse, resolve
from console.model.groups.offsets import Place as Where
from console.model.topics.topics import missing

_SHIFT: Final = "shift"


@dataclass(slots=True, frozen=True)
class Move:
    """A committed offset before and after; before and delta are None where nothing was."""

    topic: str
    partition: int
    before: int | None
    after: int
    delta: int | None


@dataclass(slots=True, frozen=True)
class Target:
    """kind: that of an offset's place, or _SHIFT. number: as there, or records from the committed
    offset."""

    kind: str
    number: int


def read_to(text: str) -> Target:
    """Raises Failure (USAGE)."""
    if re.fullmatch(r"[+-]\d+", text):
        return Target(_SHIFT, int(text))
    from_end = re.fullmatch(r"(start|end)([+-]\d+)", text)
    if from_end:
        return Target(START if from_end[1] == "start" else END, int(from_end[2]))
    try:
        where, stop = parse(text, time.time_ns() // 1_000_000)
    except Failure as wrong:
        raise usage(
            f"--to {text!r} is not a place to go to",
            "for example start, end, 47, +5, -5, start+5, end-5, @2013-01-31T12:00:00Z, 2h",
        ) from wrong
    if stop:
        raise usage("--to e@TIME says where to stop, which has no meaning here")
    return Target(where.kind, where.number)


def plan(
    link: Link,
    name: str,
    topics: tuple[str, ...],
    *,
    to: Target | None = None,
    to_group: str | None = None,
    given: dict[Place, int] | None = None,
) -> list[Move]:
    """The new offsets of a group, within what exists: at `to`, at another group's, or as `given`,
    by a file for example. topics: as in `chosen`. Raises Failure.
    """
    before = committed(link, [name])[name]
    if to is not None:
        places = chosen(topics, list(before), lambda names: existing(link, names))
        wanted = targets(link, to, places, before)
    else:
        if to_group is not None:
            described(link, [to_group])
            given = committed(link, [to_group])[to_group]
        assert given is not None, "nothing says where to"
        wanted = _within(link, topics, given)
    return [
        Move(*place, before.get(place), at, at - before[place] if place in before else None)
        for place, at in sorted(wanted.items())
    ]


def _within(link: Link, topics: tuple[str, ...], given: dict[Place, int]) -> dict[Place, int]:
    places = chosen(topics, list(given), lambda names: existing(link, names))
    known = edges(link, places)
    for topic, number in places:
        if (topic, number) not in known:
            hint = "penstock topic list -o wide shows the existing topics"
            raise unknown_topic(f"{topic} has no partition {number}", hint)
    return {
        place: min(max(given[place], known[place].low), known[place].high)
        for place in places
        if place in given
    }


def commit_moves(link: Link, name: str, moves: list[Move]) -> None:
    """Commit the plan. Raises Failure, also when somebody has begun to read meanwhile;
    STALE when a committed offset is not any more what the plan says it was: it is made and
    shown again then."""
    now = committed(link, [name])[name]
    other = [one for one in moves if now.get((one.topic, one.partition)) != one.before]
    if other:
        first = other[0]
        at = now.get((first.topic, first.partition))
        raise Failure(
            f"{name} has moved since the plan was made: {first.topic} partition {first.partition}"
            f" was at {_offset(first.before)} and is at {_offset(at)}",
            "look at the plan again",
            name=STALE,
        )
    try:
        commit(link, name, {(one.topic, one.partition): one.after for one in moves})
    except Failure as failure:
        if failure.name in ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP"):
            refuse_readers(link, name, may_be_new=True)
        raise


def is_there(link: Link, name: str, moves: list[Move]) -> bool:
    """True if the group's offsets are those of the plan. Raises Failure."""
    now = committed(link, [name])[name]
    return all(now.get((one.topic, one.partition)) == one.after for one in moves)


def _offset(at: int | None) -> str:
    return "no offset" if at is None else str(at)


def refuse_readers(link: Link, name: str, *, may_be_new: bool) -> None:
    """Raises Failure when the group has members: they would go on from where they are and overwrite
    what was set. may_be_new: a group that is not there is well."""
    try:
        (group,) = described(link, [name])
    except Failure as failure:
        if failure.name != "GROUP_ID_NOT_FOUND" or not may_be_new:
            raise
    else:
        refuse_live(group, "its offsets cannot be moved")


def targets(
    link: Link, target: Target, places: list[Place], before: dict[Place, int]
) -> dict[Place, int]:
    """The offset in each place, within what is there. Raises Failure."""
    from confluent_kafka import TopicPartition

    known = edges(link, places)
    there = [place for place in places if place in known]
    if target.kind == _SHIFT:
        unknown = [place for place in there if place not in before]
        if unknown:
            raise usage(
                f"{unknown[0][0]} partition {unknown[0][1]} has no committed offset to count from",
                "start+N and end-N count from the ends",
            )
        found = {place: before[place] + target.number for place in there}
    elif target.kind in (START, END, AT):
        found = {place: _from_edge(target, known[place]) for place in there}
    else:
        asked = [TopicPartition(*place) for place in there]
        found = resolve(link, asked, Where(target.kind, target.number), known)
    return {place: min(max(at, known[place].low), known[place].high) for place, at in found.items()}


def _from_edge(target: Target, edge: Bounds) -> int:
    base = {START: edge.low, END: edge.high, AT: 0}[target.kind]
    return base + target.number


def chosen(
    asked: tuple[str, ...], known: list[Place], find: Callable[[list[str]], dict[str, list[int]]]
) -> list[Place]:
    """The places that -t names; without -t those that are known. find: partitions of topics.
    Raises Failure."""
    if not asked:
        return known
    wanted: dict[str, list[int] | None] = {}
    for item in asked:
        topic, colon, numbers = item.partition(":")
        if colon and not re.fullmatch(r"\d+(,\d+)*", numbers):
            raise usage(f"-t {item!r} is not TOPIC or TOPIC:P,…", "for example -t orders:0,2")
        wanted[topic] = [int(n) for n in numbers.split(",")] if colon else None
    there = find(list(wanted))
    places = []
    for topic, named in wanted.items():
        if topic not in there:
            raise missing(topic)
        for number in there[topic] if named is None else named:
            if number not in there[topic]:
                raise no_partition(topic, number, len(there[topic]))
            places.append((topic, number))
    return places


def read_file(path: str) -> dict[Place, int]:
    """TOPIC PARTITION OFFSET lines, split by blanks or commas; CSV with titles and JSON as our own
    commands print it. Raises Failure (USAGE)."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise unreadable(path, problem) from None
    found: dict[Place, int] = {}
    for line, (topic, partition, offset) in enumerate(_triples(path, text), 1):
        if not (partition.isdecimal() and offset.isdecimal() and topic):
            raise usage(
                f"{path}, row {line}: {topic} {partition} {offset} is not TOPIC PARTITION OFFSET"
            )
        found[topic, int(partition)] = int(offset)
    return found


_OFFSET_COLUMNS: Final = ("offset", "after", "committed")


def _triples(path: str, text: str) -> Iterator[tuple[str, str, str]]:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            rows = json.loads(text)
        except ValueError as wrong:
            raise usage(f"{path} is not JSON: {wrong}") from None
        yield from _named(path, list(_flat(rows)))
        return
    lines = [re.split(r"[,\s]+", line.strip()) for line in text.splitlines() if line.strip()]
    if lines and "partition" in lines[0]:
        yield from _named(
            path,
            [dict(zip(lines[0], _cells(line), strict=False)) for line in text.splitlines()[1:]],
        )
        return
    for line in lines:
        if len(line) != 3:
            raise usage(f"{path}: {' '.join(line)[:200]!r} is not TOPIC PARTITION OFFSET")
        yield line[0], line[1], line[2]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _flat(value: object) -> Iterator[dict[str, object]]:
    """The rows of partitions, however deep our own output has them."""
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        if "partition" in value and "topic" in value:
            yield value
        else:
            for item in value.values():
                yield from _flat(item)


def _named(path: str, rows: list[dict[str, object]]) -> Iterator[tuple[str, str, str]]:
    for row in rows:
        if not any(value not in ("", None) for value in row.values()):
            continue
        name = next((one for one in _OFFSET_COLUMNS if one in row), None)
        if name is None or "topic" not in row or "partition" not in row:
            raise usage(f"{path} needs topic, partition and offset (or committed) in each row")
        if row[name] not in ("", None):  # nothing was committed there
            yield str(row["topic"]), str(row["partition"]), str(row[name])
