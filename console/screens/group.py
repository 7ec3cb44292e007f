"""One group: how its lag goes, who is in it, what each member reads, and how far it is in each
partition."""

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from console.model.groups import group_changes
from console.model.groups.group_watch import GroupSeen, LagPast
from console.model.groups.groups import OTHER_KINDS, Member
from console.model.groups.lag import Position, total
from console.model.topics.expiry import cut, describe_risk
from console.screens.actions import ONE_GROUP, bindings
from console.screens.chart_view import ChartView
from console.screens.group_forms import seek_form
from console.screens.lag_chart import LagChart
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, Words
from console.show.figures import NOT_KNOWN, age, short, some

_WIDE: Final = 100
_WARNINGS: Final = 3
_MEMBERS: Final = (
    Column("MEMBER", 24),
    Column("HOST", 15),
    Column("STANDS", 9, right=True),
    Column("READS", 0),
    Column("SOFTWARE", 24, from_width=_WIDE),
    Column("ID", 48, from_width=160),
)
_POSITIONS: Final = (
    Column("TOPIC", 0),
    Column("PARTITION", 9, right=True),
    Column("COMMITTED", 12, right=True),
    Column("END", 12, right=True),
    Column("LAG", 7, right=True),
    Column("BEHIND", 10, right=True),
    Column("MOVED", 11, right=True, from_width=_WIDE),
    Column("MEMBER", 24, from_width=_WIDE),
)


class GroupView(ChartView):
    """Two tables, Tab goes from one to the other."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ONE_GROUP)
    DEFAULT_CSS = """
    GroupView #warnings { display: none; max-height: 3; padding: 0 1; }
    GroupView #warnings.there { display: block; }
    GroupView #charts { height: 4; }
    GroupView.tall #charts { height: 8; margin: 1 0; }
    GroupView #topic { display: none; }
    GroupView #topic.there { display: block; }
    GroupView #members { height: 1fr; }
    GroupView #positions { height: 2fr; border-top: solid $foreground 20%; }
    GroupView.large #warnings { max-height: 5; }
    GroupView.large #charts { height: 10; margin: 0; }
    GroupView.wide #charts { height: 12; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "warnings": "Attention", "all": "", "topic": "", "members": "Members  {}",
        "positions": "Partitions  {}",
    }  # fmt: skip

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Words(name="warnings")
        with Horizontal(id="charts"):
            yield LagChart(name="all")
            yield LagChart(name="topic")
        yield Rows(_MEMBERS, name="members", opens=False)
        yield Rows(_POSITIONS, name="positions", opens=False)

    def on_resize(self) -> None:
        """A higher chart where there is room."""
        self.set_class(self.size.height >= 32, "tall")

    def paint(self) -> None:
        seen = self._seen
        members, positions = self.query_one("#members", Rows), self.query_one("#positions", Rows)
        if seen is None:
            members.show_rows([], lambda key: (key,), empty=self.waiting())
            positions.show_rows([], lambda key: (key,), empty="")
            return
        self._summary(seen)
        self._warnings(seen)
        now_s, past = time.time(), seen.past
        known = {one.member_id: one for one in seen.group.members}
        stand = {key: _stands(one, seen, now_s) for key, one in known.items()}
        software = self._software()
        members.show_rows(
            list(known), lambda key: _member(known[key], stand[key], software),
            lambda key, n: _member_by(known[key], stand[key], software, n),
            empty="no member now",
        )  # fmt: skip
        places = {f"{one.topic} {one.partition}": one for one in seen.positions}
        positions.show_rows(
            list(places), lambda key: _position(places[key], past, now_s),
            lambda key, n: _by(places[key], past, n),
            empty=_nothing(seen),
        )  # fmt: skip
        self._charts(seen, places.get(positions.key or ""), now_s)

    @property
    def _seen(self) -> GroupSeen | None:
        seen = self.world.main(self.place).shown.value
        assert seen is None or isinstance(seen, GroupSeen)
        return seen

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another topic may be under the cursor."""
        event.stop()
        self.paint()

    def _software(self) -> dict[tuple[str, str], str]:
        """(client id, host) → what it is, as an appliance of this host heard it."""
        facts = self.world.facts.shown.value
        return {
            (one.client_id, one.address): f"{one.software} {one.version}"
            for one in (facts.clients if facts is not None else ())
            if one.software
        }

    def _summary(self, seen: GroupSeen) -> None:
        group = seen.group
        lag, seconds = total(seen.positions)
        behind = f", {age(seconds)} behind" if seconds else ""
        assignor = f"  assignor {group.assignor}" if group.assignor else ""
        self.query_one("#summary", Words).show_parts(
            (group.name, "bold"),
            f"  {group.state}  {some(len(group.members), 'member')}  lag {short(lag)}{behind}",
            (f"  {group.kind} protocol{assignor}", "dim"),
        )

    def _warnings(self, seen: GroupSeen) -> None:
        parts: list[Part] = []
        for one in seen.expiry.risks[:_WARNINGS]:
            parts += ["\n"] if parts else []
            parts.append((f"! {describe_risk(one)}", "yellow"))
        if not parts and seen.expiry.unknown:
            topics = ", ".join(map(cut, seen.expiry.unknown[:_WARNINGS]))
            words = f"when retention.bytes deletes unread records is not known from here: {topics}"
            parts.append((words, "dim"))
        warnings = self.query_one("#warnings", Words)
        warnings.set_class(bool(parts), "there")
        warnings.show_parts(*parts)

    def _charts(self, seen: GroupSeen, here: Position | None, now_s: float) -> None:
        past = seen.past
        self.query_one("#all", LagChart).show_lag("Lag", past.samples, past, now_s)
        several = len({one.topic for one in seen.positions}) > 1 and self.size.width >= _WIDE
        chart = self.query_one("#topic", LagChart)
        chart.set_class(several and here is not None, "there")
        if here is not None:
            chart.show_lag(here.topic, past.topics.get(here.topic, ()), past, now_s)

    # Changes ------------------------------------------------------------------------------------

    def action_offsets(self) -> None:
        """Where they shall go is asked."""
        seen = self._seen
        self.propose(seek_form(self.place.name, seen.positions if seen is not None else ()))

    def action_delete(self) -> None:
        """The whole group."""
        self.propose(group_changes.delete(self.place.name))

    def action_forget(self) -> None:
        """Proposes to delete the committed offsets of the topic under the cursor."""
        key = self.query_one("#positions", Rows).key
        if key is None:
            self.notify("it has committed nothing that could be deleted", markup=False)
        else:
            topic = key.rpartition(" ")[0]
            self.propose(group_changes.propose_deletion(self.place.name, topic))

    def action_remove(self) -> None:
        """The member under the cursor."""
        key = self.query_one("#members", Rows).key
        if key is None:
            self.notify("no member now", markup=False)
        else:
            self.propose(group_changes.remove(self.place.name, key))


def _nothing(seen: GroupSeen) -> str:
    if seen.group.kind in OTHER_KINDS:
        return f"a {seen.group.kind} group: Apache Kafka's own tools tell its members and offsets"
    return "it has committed nothing"


def _stands(one: Member, seen: GroupSeen, now_s: float) -> float | None:
    """For how long nothing that it reads has moved although there is something to read, in s;
    negative: at least so long; None: there is nothing to read."""
    mine = set(one.places)
    unread = [p for p in seen.positions if p.lag and (p.topic, p.partition) in mine]
    if not unread:
        return None
    moved = [seen.past.moved_s.get((p.topic, p.partition)) for p in unread]
    newest = max((at_s for at_s in moved if at_s is not None), default=None)
    return now_s - newest if newest is not None else min(0.0, seen.past.since_s - now_s)


def _since(seconds: float | None) -> Cell:
    if seconds is None:
        return NOT_KNOWN, "dim"
    return age(seconds) if seconds > 0 else (f"> {age(-seconds)}", "dim")


def _member(
    one: Member, stands: float | None, software: dict[tuple[str, str], str]
) -> tuple[Cell, ...]:
    name, host = one.instance_id or one.client_id, one.host.lstrip("/")
    told = software.get((one.client_id, host), NOT_KNOWN)
    return name, host, _since(stands), _reads(one.places), (told, "dim"), (one.member_id, "dim")


def _member_by(
    one: Member, stands: float | None, software: dict[tuple[str, str], str], column: int
) -> str | float:
    if column in (2, 3):
        return len(one.places) if column == 3 else abs(stands or 0.0)
    name, host = one.instance_id or one.client_id, one.host.lstrip("/")
    return (name, host, "", "", software.get((one.client_id, host), ""), one.member_id)[column]


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


def _moved_s(one: Position, past: LagPast) -> float | None:
    return past.moved_s.get((one.topic, one.partition))


def _position(one: Position, past: LagPast, now_s: float) -> tuple[Cell, ...]:
    at_s = _moved_s(one, past)
    moved = now_s - at_s if at_s is not None else min(0.0, past.since_s - now_s)
    return (
        one.topic,
        str(one.partition),
        NOT_KNOWN if one.committed is None else str(one.committed),
        NOT_KNOWN if one.end is None else str(one.end),
        (short(one.lag), "warn") if one.lag else short(one.lag),
        age(one.lag_s),
        _since(moved if one.committed is not None else None),
        one.client_id or ("nobody", "dim"),
    )


def _by(one: Position, past: LagPast, column: int) -> str | float:
    if column in (0, 7):
        return one.topic if column == 0 else one.client_id or ""
    values = (
        one.partition, one.committed, one.end, one.lag, one.lag_s, _moved_s(one, past),
    )  # fmt: skip
    value = values[column - 1]
    return -1 if value is None else value
