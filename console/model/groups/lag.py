"""Where groups are in each partition: committed, end, lag in records and in seconds, and who reads.

Seconds: how old the oldest record is that the group has not read, by the record's own timestamp and
against now. Not against the newest record's: a group that stopped is behind by what its reader
would get next, and for that it does not matter whether somebody still writes. It takes one record
from each partition that has some to read (`topics/ages.py`), so it is asked for no longer than a
moment; what did not come in that time is not known.
"""

from dataclasses import dataclass

from console.model.asking.link import Link
from console.model.groups.groups import Group, Place, committed, edges
from console.model.groups.offsets import Bounds
from console.model.topics.ages import Ages, Spot


@dataclass(slots=True, frozen=True)
class Position:
    """Where a group is in one partition. committed: None when it has committed nothing there.
    start, end: first and next offset. lag: in records; lag_s: in seconds. member, client_id, host:
    who reads it."""

    topic: str
    partition: int
    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    lag_s: float | None
    member: str | None
    client_id: str | None
    host: str | None


def places(
    link: Link, groups: list[Group], *, seconds: bool = True, ages: Ages | None = None
) -> dict[str, list[Position]]:
    """Group → where it is in each partition that it committed or reads. ages: of whoever looks
    again and again."""
    offsets = committed(link, [group.name for group in groups])
    readers = {group.name: _readers(group) for group in groups}
    wanted = {group.name: sorted({*offsets[group.name], *readers[group.name]}) for group in groups}
    known = edges(link, [place for found in wanted.values() for place in found])
    unread = _unread(offsets, known) if seconds else {}
    old = (ages or Ages(link)).of(unread)
    return {
        name: [
            _position(
                place, offsets[name].get(place), known.get(place), old, readers[name].get(place)
            )
            for place in found
        ]
        for name, found in wanted.items()
    }


def _readers(group: Group) -> dict[Place, tuple[str, str, str]]:
    return {
        place: (member.member_id, member.client_id, member.host)
        for member in group.members
        for place in member.places
    }


def _unread(offsets: dict[str, dict[Place, int]], known: dict[Place, Bounds]) -> dict[Spot, None]:
    """Where the oldest unread records lie."""
    return {
        (place, max(at, known[place].low)): None
        for found in offsets.values()
        for place, at in found.items()
        if place in known and max(at, known[place].low) < known[place].high
    }


def _position(
    place: Place,
    at: int | None,
    edge: Bounds | None,
    ages: dict[Spot, float],
    reader: tuple[str, str, str] | None,
) -> Position:
    lag = seconds = None
    if at is not None and edge is not None:
        first = max(at, edge.low)
        lag = max(0, edge.high - first)
        seconds = ages.get((place, first)) if lag else 0
    member, client_id, host = reader or (None, None, None)
    return Position(
        topic=place[0],
        partition=place[1],
        committed=at,
        start=edge.low if edge else None,
        end=edge.high if edge else None,
        lag=lag,
        lag_s=seconds,
        member=member,
        client_id=client_id,
        host=host.lstrip("/") if host is not None else None,
    )


def total(positions: list[Position]) -> tuple[int | None, float | None]:
    """Lag in records of all partitions together, and the longest in seconds; None: not known."""
    lags = [one.lag for one in positions if one.lag is not None]
    seconds = [one.lag_s for one in positions if one.lag_s is not None]
    return (sum(lags) if lags else None), max(seconds, default=None)
