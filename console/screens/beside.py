"""The part beside a list in a wide window: the row under the cursor, looked into.

Each function fills a table that a list has at its right. What is shown is asked for by the world,
which is told what is under the cursor (`World.beside`).
"""

from typing import Final

from console.model.groups.group_watch import GroupSeen
from console.model.groups.lag import Position
from console.model.topics.topics import Partition
from console.screens.places import Place
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View
from console.screens.world import TopicSeen
from console.show.figures import NOT_KNOWN, age, meter, short

_METER: Final = 9
PARTITIONS: Final = (
    Column("PART", 4, right=True),
    Column("START", 12, right=True, from_width=60),
    Column("END", 12, right=True),
    Column("RECORDS", 7, right=True),
    Column("", _METER),
    Column("LEADER", 6, right=True),
    Column("IN SYNC", 0),
)
POSITIONS: Final = (
    Column("TOPIC", 0),
    Column("PART", 4, right=True),
    Column("LAG", 7, right=True),
    Column("", _METER),
    Column("BEHIND", 10, right=True),
    Column("MEMBER", 16, from_width=80),
)


def look_beside(view: View, rows: Rows, kind: str, name: str | None, title: str) -> object:
    """The last answer about the row under the cursor, None before one; the table says why then.
    kind, name: of its place, name is None without a row. title: of the table, `{name}` is put in.
    """
    world = view.world
    place = Place(kind, name) if view.has_beside and name is not None else None
    world.beside = place
    if place is None:
        rows.set_title("")
        rows.show_rows([], lambda key: (key,), empty="")
        return None
    rows.set_title(title.replace("{name}", place.name))
    shown = world.detail(place).shown
    if shown.value is None:
        words = shown.failure.message if shown.failure is not None else "asking …"
        rows.show_rows([], lambda key: (key,), empty=words)
    return shown.value


def show_partitions(view: View, rows: Rows, topic: str | None) -> None:
    """The partitions of a topic, with the records that each has as bars."""
    seen = look_beside(view, rows, "topic", topic, "Partitions  {}")
    if not isinstance(seen, TopicSeen):
        return
    found = {str(one.partition): one for one in seen.topic.partitions}
    most = max((one.records or 0 for one in found.values()), default=0)
    rows.show_rows(
        list(found), lambda key: _partition(found[key], most),
        lambda key, n: _partition_by(found[key], n),
    )  # fmt: skip


def show_positions(view: View, rows: Rows, group: str | None) -> None:
    """The partitions that a group reads or has committed, those with the greatest lag first."""
    seen = look_beside(view, rows, "group", group, "Lag by partition  {}")
    if not isinstance(seen, GroupSeen):
        return
    order = sorted(seen.positions, key=lambda one: (-(one.lag or 0), one.topic, one.partition))
    found = {f"{one.topic} {one.partition}": one for one in order}
    most = max((one.lag or 0 for one in order), default=0)
    rows.show_rows(
        list(found), lambda key: _position(found[key], most),
        lambda key, n: _position_by(found[key], n), empty="it has committed nothing",
    )  # fmt: skip


def _partition(one: Partition, most: int) -> tuple[Cell, ...]:
    lacks = len(one.isr) < len(one.replicas)
    start, end = (NOT_KNOWN if at is None else str(at) for at in (one.start, one.end))
    return (
        str(one.partition), start, end, short(one.records), (_share(one.records, most), "chart"),
        str(one.leader) if one.leader is not None else ("none", "bad"),
        (",".join(map(str, one.isr)), "warn" if lacks else ""),
    )  # fmt: skip


def _partition_by(one: Partition, column: int) -> int:
    """Numbers that are not known come last."""
    values = (
        one.partition, one.start, one.end, one.records, one.records, one.leader, len(one.isr),
    )  # fmt: skip
    value = values[column]
    return -1 if value is None else value


def _position(one: Position, most: int) -> tuple[Cell, ...]:
    style = "warn" if one.lag else ""
    return (
        one.topic, str(one.partition), (short(one.lag), style), (_share(one.lag, most), style),
        age(one.lag_s), one.client_id or ("nobody", "dim"),
    )  # fmt: skip


def _position_by(one: Position, column: int) -> str | float:
    values = (one.topic, one.partition, one.lag, one.lag, one.lag_s, one.client_id or "")
    value = values[column]
    return -1 if value is None else value


def _share(value: int | None, most: int) -> str:
    return meter(value / most, _METER) if value and most > 0 else ""
