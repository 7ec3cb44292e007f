"""One topic: its traffic, its partitions, and its settings with what each is for."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical

from console.model.asking.configs import Setting
from console.model.topics.copies import Copy, Placed
from console.model.topics.topics import Partition
from console.screens import record_forms, topic_forms
from console.screens.actions import ONE_TOPIC, bindings
from console.screens.places import RECORDS, TAIL, Place
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.screens.world import TopicSeen
from console.show.figures import NOT_KNOWN, in_bytes, short, some, spark

_WIDE: Final = 92
_OWN: Final = "topic"
_PARTITIONS: Final = (
    Column("PARTITION", 9, right=True),
    Column("START", 14, right=True),
    Column("END", 14, right=True),
    Column("RECORDS", 9, right=True),
    Column("LEADER", 6, right=True),
    Column("REPLICAS", 12, from_width=_WIDE),
    Column("IN SYNC", 12, from_width=_WIDE),
    Column("ELR", 10, from_width=130),
    Column("", 0),
)
_COPIES: Final = (
    Column("NODE", 9, right=True),
    Column("REPLICA", 14),
    Column("END", 14, right=True),
    Column("BEHIND", 9, right=True),
    Column("BYTES", 9, right=True),
    Column("", 0),
)
_SETTINGS: Final = (
    Column("SETTING", 34),
    Column("VALUE", 20),
    Column("SOURCE", 0),
    Column("DEFAULT", 40, from_width=120),
)


class TopicView(View):
    """Tables, Tab goes from one to the other: the partitions, in a cluster the replicas of the one
    under the cursor, the settings; below, what the setting under the cursor does."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ONE_TOPIC)
    DEFAULT_CSS = """
    TopicView #partitions { height: 2fr; }
    TopicView #copies { height: 5; border-top: solid $foreground 20%; }
    TopicView #settings { height: 3fr; border-top: solid $foreground 20%; }
    TopicView #about { height: 3; padding: 0 1; color: $text-muted; }
    TopicView #of-partitions { height: 2fr; }
    TopicView #of-settings { height: 3fr; }
    TopicView.large #copies { height: 7; }
    TopicView.large #about { height: 5; }
    TopicView.with-copies #of-partitions { height: 4fr; }
    TopicView.with-copies #partitions { min-height: 4; }
    TopicView.wide #of-partitions { height: 1fr; width: 1fr; }
    TopicView.wide #of-settings { height: 1fr; width: 1fr; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "partitions": "Partitions  {}", "copies": "Replicas of the partition  {}",
        "settings": "Settings  {}", "about": "This setting",
    }  # fmt: skip

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        with Container(classes="panes"):
            with Vertical(id="of-partitions"):
                yield Rows(_PARTITIONS, name="partitions", opens=False)
                yield Rows(_COPIES, name="copies", opens=False)
            with Vertical(id="of-settings"):
                yield Rows(_SETTINGS, name="settings")
                yield Words(name="about")

    def on_mount(self) -> None:
        """All settings are shown at first."""
        self._only_own = False

    def action_changed(self) -> None:
        """Only what was set for this topic, or everything."""
        self._only_own = not self._only_own
        self.paint()

    def action_produce(self) -> None:
        """A record for it."""
        self.propose(record_forms.produce(self.place.name, self.world.link.bootstrap))

    def action_delete(self) -> None:
        """With all that is in it."""
        self.propose(topic_forms.delete(self.place.name, leaves=True))

    def action_trim(self) -> None:
        """Its oldest records."""
        self.propose(topic_forms.trim(self.place.name))

    def action_add_partitions(self) -> None:
        """More of them."""
        if (seen := self._seen()) is not None:
            count = seen.topic.partition_count
            self.propose(topic_forms.add_partitions(self.place.name, count))

    def action_replicas(self) -> None:
        """On how many nodes, or on which."""
        if (seen := self._seen()) is not None:
            self.propose(topic_forms.replicas(self.place.name, seen.topic.replicas))

    def action_edit(self) -> None:
        """The setting under the cursor."""
        seen, key = self._seen(), self.query_one("#settings", Rows).key
        for one in seen.settings if seen is not None else ():
            if one.key == key:
                self.propose(topic_forms.edit_setting(self.place.name, one))

    def action_edit_all(self) -> None:
        """All that was set for this topic."""
        if (seen := self._seen()) is not None:
            self.propose(topic_forms.edit_settings(self.place.name, seen.settings))

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Into a setting."""
        event.stop()
        self.action_edit()

    def _seen(self) -> TopicSeen | None:
        seen = self.world.main(self.place).shown.value
        if seen is None:
            self.notify("nothing is known of this topic yet", markup=False)
        return seen

    def action_browse(self) -> None:
        """Its records."""
        self.post_message(self.Go(Place(RECORDS, self.place.name)))

    def action_tail(self) -> None:
        """Its end."""
        self.post_message(self.Go(Place(TAIL, self.place.name)))

    def paint(self) -> None:
        seen = self.world.main(self.place).shown.value
        if seen is None:
            self.query_one("#partitions", Rows).show_rows(
                [], lambda key: (key,), empty=self.waiting()
            )
            self.query_one("#settings", Rows).show_rows([], lambda key: (key,))
            self.query_one("#copies", Rows).display = False
            return
        assert isinstance(seen, TopicSeen)
        self._summary(seen)
        parts = {str(one.partition): one for one in seen.topic.partitions}
        self.query_one("#partitions", Rows).show_rows(
            list(parts),
            lambda key: _partition(parts[key], seen.placed.get(int(key))),
            lambda key, n: _by(parts[key], n),
        )
        self._copies(seen)
        own = {one.key: one for one in seen.settings if one.source == _OWN}
        rest = {} if self._only_own else {one.key: one for one in seen.settings}
        found = own | rest  # what was set here comes first
        self.query_one("#settings", Rows).show_rows(
            list(found), lambda key: _setting(found[key]), lambda key, n: _words(found[key])[n],
            empty="nothing is set for this topic: c shows all settings",
        )  # fmt: skip
        self._about(found)

    def _copies(self, seen: TopicSeen) -> None:
        rows, key = self.query_one("#copies", Rows), self.query_one("#partitions", Rows).key
        here = seen.placed.get(int(key)) if key is not None else None
        found = {str(one.node): one for one in here.copies} if here is not None else {}
        rows.display = bool(seen.placed)
        self.set_class(rows.display, "with-copies")
        rows.show_rows(
            list(found), lambda key: _copy(found[key]), lambda key, n: _copy_by(found[key], n)
        )

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another setting or partition is under the cursor."""
        event.stop()
        self.paint()

    def _summary(self, seen: TopicSeen) -> None:
        topic = seen.topic
        words = f"{some(topic.partition_count, 'partition')}  {short(topic.records)} records"
        facts = self.world.facts.shown.value
        rate = facts.topics.get(topic.name) if facts is not None else None
        past = facts.of_topics.get(topic.name, ()) if facts is not None else ()
        past = past if self.size.width >= _WIDE else ()  # a line has room for one of the two
        self.query_one("#summary", Words).show_parts(
            (topic.name, "bold"), f"  {words}",
            f"  {in_bytes(rate.size_mb * 1e6)}" if rate else "",
            f"   in {in_bytes(rate.in_mb_s * 1e6)}/s " if rate else "",
            (spark([one[0] for one in past], min(len(past), 16)), "cyan"),
            f"  out {in_bytes(rate.out_mb_s * 1e6)}/s " if rate else "",
            (spark([one[1] for one in past], min(len(past), 16)), "green"),
        )  # fmt: skip

    def _about(self, found: dict[str, Setting]) -> None:
        one = found.get(self.query_one("#settings", Rows).key or "")
        about = self.query_one("#about", Words)
        if one is None:
            about.show_parts("")
            return
        default = f"  default {one.default}" if one.default is not None else ""
        about.show_parts((one.key, "bold"), f"  {one.type}{default}\n", topic_forms.meaning(one))


def _copy(one: Copy) -> tuple[Cell, ...]:
    state, style = (
        ("leads", "good")
        if one.leads
        else ("in sync", "good")
        if one.in_sync
        else ("folder offline", "bad")
        if one.offline and one.lives
        else ("node missing", "bad")
        if not one.lives
        else ("catching up", "warn")
    )
    return (
        str(one.node), (state, style), NOT_KNOWN if one.end is None else str(one.end),
        (short(one.behind), "warn" if one.behind and not one.in_sync else ""),
        in_bytes(one.bytes), ("eligible leader", "dim") if one.eligible else "",
    )  # fmt: skip


def _copy_by(one: Copy, column: int) -> int:
    """Numbers that are not known come last."""
    values = (-one.node, one.in_sync, one.end, one.behind, one.bytes, one.eligible)
    value = values[column]
    return -1 if value is None else int(value)


def _partition(one: Partition, placed: Placed | None) -> tuple[Cell, ...]:
    known = [NOT_KNOWN if value is None else str(value) for value in (one.start, one.end)]
    lacks = len(one.isr) < len(one.replicas)
    elr = placed.partition.elr if placed is not None else ()
    return (
        str(one.partition),
        *known,
        short(one.records),
        str(one.leader) if one.leader is not None else ("none", "bad"),
        ",".join(map(str, one.replicas)),
        (",".join(map(str, one.isr)), "warn" if lacks else ""),
        ",".join(map(str, elr)),
        (one.problem, "bad") if one.problem else "",
    )


def _by(one: Partition, column: int) -> int:
    """Numbers that are not known come last."""
    leader = -1 if one.leader is None else one.leader
    values = (
        one.partition, one.start, one.end, one.records, leader, len(one.replicas), len(one.isr), 0,
        bool(one.problem),
    )  # fmt: skip
    value = values[column]
    return -1 if value is None else int(value)


def _words(one: Setting) -> tuple[str, ...]:
    value = "(secret)" if one.sensitive else one.value
    return (
        one.key,
        NOT_KNOWN if value is None else value,
        one.source,
        NOT_KNOWN if one.default is None else one.default,
    )


def _setting(one: Setting) -> tuple[Cell, ...]:
    style = "" if one.source == _OWN else "dim"
    key, value, source, default = _words(one)
    return (key, "warn" if style == "" else ""), value, (source, style), (default, "dim")
