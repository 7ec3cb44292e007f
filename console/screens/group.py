"""One group: who is in it, what each member reads, and how far it is in each partition."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from textual.app import ComposeResult

from console.model.groups import Member
from console.model.lag import Position, total
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.screens.world import GroupSeen
from console.show.figures import NOT_KNOWN, age, short, some

_WIDE: Final = 100
_MEMBERS: Final = (
    Column("MEMBER", 24),
    Column("HOST", 15),
    Column("READS", 0),
    Column("ID", 48, from_width=140),
)
_POSITIONS: Final = (
    Column("TOPIC", 0),
    Column("PARTITION", 9, right=True),
    Column("COMMITTED", 12, right=True),
    Column("END", 12, right=True),
    Column("LAG", 7, right=True),
    Column("BEHIND", 10, right=True),
    Column("MEMBER", 24, from_width=_WIDE),
)


class GroupView(View):
    """Two tables, Tab goes from one to the other."""

    DEFAULT_CSS = """
    GroupView #members { height: 1fr; }
    GroupView #positions { height: 2fr; border-top: solid $foreground 20%; }
    """

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_MEMBERS, name="members", opens=False, empty="nobody reads with it now")
        yield Rows(_POSITIONS, name="positions", opens=False, empty="it has committed nothing")

    def paint(self) -> None:
        seen = self.world.main(self.place).shown.value
        members, positions = self.query_one("#members", Rows), self.query_one("#positions", Rows)
        if seen is None:
            members.show([], lambda key: (key,), empty=self.waiting())
            positions.show([], lambda key: (key,), empty="")
            return
        assert isinstance(seen, GroupSeen)
        group = seen.group
        lag, seconds = total(seen.positions)
        behind = f", {age(seconds)} behind" if seconds else ""
        assignor = f"  assignor {group.assignor}" if group.assignor else ""
        self.query_one("#summary", Words).say(
            (group.name, "bold"),
            f"  {group.state}  {group.kind} protocol{assignor}",
            f"  {some(len(group.members), 'member')}  lag {short(lag)}{behind}",
        )
        known = {one.member_id: one for one in group.members}
        members.show(
            list(known), lambda key: _member(known[key]), lambda key, n: _member_by(known[key], n),
            empty="nobody reads with it now",
        )  # fmt: skip
        places = {f"{one.topic} {one.partition}": one for one in seen.positions}
        positions.show(
            list(places), lambda key: _position(places[key]), lambda key, n: _by(places[key], n),
            empty="it has committed nothing",
        )  # fmt: skip


def _member(one: Member) -> tuple[Cell, ...]:
    name = one.instance_id or one.client_id
    return name, one.host.lstrip("/"), _reads(one.places), (one.member_id, "dim")


def _member_by(one: Member, column: int) -> str | int:
    if column == 2:
        return len(one.places)
    return (one.instance_id or one.client_id, one.host, "", one.member_id)[column]


def _reads(places: Sequence[tuple[str, int]]) -> str:
    """`orders 0-3,7  payments 1`."""
    if not places:
        return "nothing"
    return "  ".join(
        f"{topic} {_spans([number for _, number in each])}"
        for topic, each in groupby(sorted(places), key=lambda place: place[0])
    )


def _spans(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for one in numbers:
        if spans and spans[-1][1] == one - 1:
            spans[-1][1] = one
        else:
            spans.append([one, one])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def _position(one: Position) -> tuple[Cell, ...]:
    return (
        one.topic,
        str(one.partition),
        NOT_KNOWN if one.committed is None else str(one.committed),
        NOT_KNOWN if one.end is None else str(one.end),
        (short(one.lag), "warn") if one.lag else short(one.lag),
        age(one.lag_s),
        one.client_id or ("nobody", "dim"),
    )


def _by(one: Position, column: int) -> str | float:
    if column in (0, 6):
        return one.topic if column == 0 else one.client_id or ""
    values = (one.partition, one.committed, one.end, one.lag, one.lag_s)
    value = values[column - 1]
    return -1 if value is None else value
