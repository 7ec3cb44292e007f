"""Topics: every topic with its size and its traffic of the last two minutes."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from console.model.cluster.cluster import Seen
from console.model.local.local import Facts
from console.model.local.stats import TopicRate
from console.screens import record_forms, topic_forms
from console.screens.actions import ALL_TOPICS, bindings
from console.screens.beside import PARTITIONS, show_partitions
from console.screens.busiest import SPARK, minutes
from console.screens.places import RECORDS, TAIL, TOPIC, TRASH, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import NOT_KNOWN, age, in_bytes, short, some

_WIDE: Final = 100
_WIDER: Final = 116
_UNKNOWN: Final = 2**62  # a time after all others, in ms
_COLUMNS: Final = (
    Column("TOPIC", 0),
    Column("PARTS", 6, right=True),
    Column("RECORDS", 7, right=True),
    Column("SIZE", 7, right=True),
    Column("IN/S", 8, right=True),
    Column("IN PAST", SPARK, from_width=_WIDE),
    Column("OUT/S", 8, right=True),
    Column("OUT PAST", SPARK, from_width=_WIDE),
    Column("OLDEST", 9, right=True, from_width=_WIDER),
    Column("GROUPS", 6, right=True, from_width=_WIDER),
    Column("LAG", 7, right=True, from_width=_WIDER),
    Column("REPLICAS", 8, right=True, from_width=_WIDE),
    Column("STATE", 9),
)


class TopicsView(View):
    """The list. Enter goes into a topic."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_TOPICS)
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"topics": "Topics  {}", "beside": ""}
    has_below: ClassVar[bool] = True
    summary_in: ClassVar[str] = "topics"
    DEFAULT_CSS = """
    TopicsView.wide #topics { width: 5fr; }
    TopicsView.wide #beside { width: 3fr; }
    """

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        with Container(classes="panes"):
            yield Rows(_COLUMNS, name="topics", marks=True)
            yield Rows(PARTITIONS, name="beside", opens=False, classes="beside")

    def paint(self) -> None:
        facts = self.world.facts.shown.value
        if facts is not None and not self.world.is_foreign:
            found, oldest = facts.topics, self.world.oldest.shown.value or {}
            self._paint(
                list(found),
                lambda name: _local(name, facts, oldest),
                lambda n, c: _by(n, facts, oldest, c),
                lambda names, c: _values(names, found, c),
            )
            return
        seen = self.world.topics.shown.value
        if seen is not None:
            self._paint(list(seen), lambda name: _foreign(seen[name]), lambda n, c: _of(seen[n], c))
            return
        self.query_one(Words).show_parts("")
        self.query_one(Rows).show_rows([], lambda key: (key,), empty=self.waiting())
        self._beside()

    def _paint(self, names: list[str], cells: Any, by: Any, values: Any = lambda *_: None) -> None:
        typed = self.filter_text
        shown = [name for name in names if (keeps(typed, name) if typed else name[:2] != "__")]
        hidden = len(names) - len(shown)
        said = some(len(shown), "topic")
        if typed:
            said = f"{len(shown)} of {len(names)} topics: /{typed}  (Esc shows all)"
        elif hidden:
            said += f", {hidden} internal: /__ shows them"
        if self.world.is_foreign:
            said += "; sizes and rates are known of an appliance of this host only"
        self.query_one(Words).show_parts((said, "dim"))
        empty = "no topic matches: Esc shows all" if typed else "no topic yet: n makes one"
        self.query_one(Rows).show_rows(shown, cells, by, empty=empty, values=values)
        self._beside()

    def _beside(self) -> None:
        """Shows the partitions of the topic under the cursor."""
        show_partitions(self, self.query_one("#beside", Rows), self.query_one(Rows).key)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another topic is under the cursor."""
        event.stop()
        if event.rows.id == "topics":
            self._beside()

    def action_browse(self) -> None:
        """The records of the topic under the cursor."""
        self._go(RECORDS)

    def action_tail(self) -> None:
        """Its end."""
        self._go(TAIL)

    def _go(self, kind: str) -> None:
        name = self.query_one(Rows).key
        if name is not None:
            self.post_message(self.Go(Place(kind, name)))

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """Into the topic."""
        event.stop()
        self.post_message(self.Go(Place(TOPIC, event.key)))

    def action_new(self) -> None:
        """Ask what it is to be."""
        self.propose(topic_forms.new_topic())

    def action_delete(self) -> None:
        """The topic under the cursor, or all that are marked."""
        marked = self.query_one(Rows).marked
        if len(marked) > 1:
            self.propose(topic_forms.delete_all(marked))
        elif (name := marked[0] if marked else self._under_cursor()) is not None:
            self.propose(topic_forms.delete(name, leaves=False))

    def action_produce(self) -> None:
        """A record for the topic under the cursor."""
        if (name := self._under_cursor()) is not None:
            self.propose(record_forms.produce(name, self.world.link.bootstrap))

    def _under_cursor(self) -> str | None:
        name = self.query_one(Rows).key
        if name is None:
            self.notify("there is no topic under the cursor", markup=False)
        return name

    def action_trash(self) -> None:
        """To what can be brought back."""
        self.post_message(self.Go(Place(TRASH)))


def _local(name: str, facts: Facts, oldest: Mapping[str, int]) -> tuple[Cell, ...]:
    one = facts.topics[name]
    past = facts.of_topics.get(name, ())
    groups, behind = _readers(name, facts)
    return (
        name,
        str(one.partitions),
        short(one.records),
        in_bytes(one.size_mb * 1e6),
        _rate(one.in_mb_s),
        (minutes([each[0] for each in past], facts.past_s), "chart"),
        _rate(one.out_mb_s),
        (minutes([each[1] for each in past], facts.past_s), "chart"),
        _age(oldest.get(name)),
        str(groups) if groups else ("0", "dim"),
        (short(behind), "warn" if behind else "") if groups else (NOT_KNOWN, "dim"),
        str(one.replicas) if one.replicas > 1 else ("1", "dim"),
        (f"{one.offline} offline", "bad") if one.offline else ("", ""),
    )


def _foreign(one: Seen) -> tuple[Cell, ...]:
    lost = (f"{one.leaderless} offline", "bad") if one.leaderless else ("", "")
    none: Cell = (NOT_KNOWN, "dim")
    return (
        one.name, str(one.partitions), none, none, none, "", none, "", none, none, none,
        str(one.replicas), lost,
    )  # fmt: skip


def _age(stamp_ms: int | None) -> Cell:
    return (NOT_KNOWN, "dim") if stamp_ms is None else age(time.time() - stamp_ms / 1000)


def _rate(mb_s: float) -> Cell:
    return in_bytes(mb_s * 1e6) if mb_s else ("0", "dim")


def _readers(name: str, facts: Facts) -> tuple[int, int]:
    """(how many groups have committed there, by how much the last one of them is behind)."""
    return facts.readers.get(name, (0, 0))


_OF_TOPIC: Final[dict[int, Callable[[TopicRate], str | float]]] = {
    0: attrgetter("topic"), 1: attrgetter("partitions"), 2: attrgetter("records"),
    3: attrgetter("size_mb"), 4: attrgetter("in_mb_s"), 5: attrgetter("in_mb_s"),
    6: attrgetter("out_mb_s"), 7: attrgetter("out_mb_s"), 11: attrgetter("replicas"),
    12: attrgetter("offline"),
}  # fmt: skip
"""By the number of the column: 10,000 rows are sorted while somebody waits."""


def _values(
    names: Sequence[str], found: Mapping[str, TopicRate], column: int
) -> Iterable[str | float] | None:
    of_topic = _OF_TOPIC.get(column)
    return map(of_topic, map(found.__getitem__, names)) if of_topic is not None else None


def _by(name: str, facts: Facts, oldest: Mapping[str, int], column: int) -> str | float:
    of_topic = _OF_TOPIC.get(column)
    if of_topic is not None:
        return of_topic(facts.topics[name])
    if column == 8:
        return _UNKNOWN - oldest.get(name, _UNKNOWN)
    return _readers(name, facts)[column - 9]


def _of(one: Seen, column: int) -> str | float:
    by: dict[int, str | float] = {0: one.name, 11: one.replicas, 12: one.leaderless}
    return by.get(column, one.partitions)
