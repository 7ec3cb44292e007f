"""Open transactions and what they hold back: who reads with read_committed gets nothing behind the
first record of the oldest one in a partition (its last stable offset).

One that its partition knows as open and no coordinator does hangs: nobody ends it. That is said
only after both were asked again, because a transaction may end between two questions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from console.model.asking.link import Link
from console.model.groups.groups import Place, existing
from console.model.groups.offsets import stable_ends
from console.model.topics.ages import Ages
from console.model.topics.expiry import cut, span
from console.model.topics.topics import listed as all_topics
from console.model.transactions import producers as of_partitions
from console.model.transactions.producers import Producer
from console.model.transactions.transactions import (
    ENDING,
    ONGOING,
    Transaction,
    listed,
    still_there,
)

HANGING: Final = "hanging"
_LONG_S: Final = 60.0
_SLACK_S: Final = 15.0
_SEES_ALL: Final = "read_uncommitted"
_Suspects = dict[Place, list[Producer]]


@dataclass(slots=True, frozen=True)
class Held:
    """A partition of an open transaction. start: offset of its first record there, None when there
    is none. stable: the last stable offset; end: the next one that is written. records: from its
    first record to the end, which nobody gets with read_committed while it is open. seconds: age of
    its first record, None when that is not known."""

    topic: str
    partition: int
    start: int | None
    stable: int | None
    end: int | None
    records: int
    seconds: float | None = None


@dataclass(slots=True, frozen=True)
class Open:
    """One open transaction. name: its transactional id, "" when nobody says. state: HANGING when no
    coordinator knows it. coordinator: a broker's id. age_s: since it began, as its coordinator
    says."""

    name: str
    state: str
    producer_id: int
    epoch: int
    coordinator: int | None
    timeout_ms: int | None
    age_s: float | None
    held: tuple[Held, ...]

    @property
    def key(self) -> str:
        """Tells it from every other one."""
        where = self.held[0] if self.state == HANGING else None
        return f"{self.producer_id} {where.topic} {where.partition}" if where else self.name

    @property
    def hangs(self) -> bool:
        """True for a hanging transaction: no coordinator will end it."""
        return self.state == HANGING

    @property
    def records(self) -> int:
        """All that it holds back."""
        return sum(one.records for one in self.held)

    @property
    def seconds(self) -> float | None:
        """How old the oldest record is that it holds back; None when nothing is, or not known."""
        return max((one.seconds for one in self.held if one.seconds is not None), default=None)


class Watch:
    """Looks again and again. One thread at a time."""

    def __init__(self, link: Link, *, keeps: bool = True) -> None:
        """keeps: as of Ages."""
        self._link = link
        self._ages = Ages(link, keeps=keeps, isolation=_SEES_ALL)

    def read_transactions(
        self, now_s: float, topics: Iterable[str] | None = (), only: Iterable[str] | None = None
    ) -> tuple[Open, ...]:
        """Returns open transactions, hanging ones first, then the oldest. now_s: since 1970.
        topics: where hanging ones are searched; None: everywhere. only: only these ids. Raises
        Failure.
        """
        wanted = None if only is None else set(only)
        open_ids = [one for one in listed(self._link) if one.is_open]
        ids = [one for one in open_ids if wanted is None or one.name in wanted]
        known = [one for one in still_there(self._link, ids) if one.is_open]
        places = dict.fromkeys(place for one in known for place in one.places)
        places |= dict.fromkeys(_everywhere(self._link, topics))
        ends = stable_ends(self._link, list(places))
        stuck = [place for place, (stable, end) in ends.items() if stable < end]
        writers = _open_only(of_partitions.producers(self._link, stuck))
        suspects = unknown(writers, known) if topics is None or topics else {}
        lost = confirmed(self._link, suspects)
        found = [_open(one, now_s, writers, ends) for one in known] + [
            _hanging(place, one, ends) for place, every in lost.items() for one in every
        ]
        return self._aged(sorted(found, key=lambda one: (not one.hangs, -(one.age_s or 0.0))))

    def _aged(self, found: list[Open]) -> tuple[Open, ...]:
        spots = {
            ((one.topic, one.partition), one.start)
            for each in found
            for one in each.held
            if one.start is not None
        }
        ages = self._ages.of(spots) if spots else {}
        return tuple(_with_ages(one, ages) for one in found)


def confirmed(link: Link, suspects: _Suspects) -> _Suspects:
    """Those of some open transactions that no coordinator knows, and that are still open after that
    was asked. Raises Failure."""
    if not suspects:
        return {}
    known = still_there(link, [one for one in listed(link) if one.is_open])
    left = unknown(suspects, [one for one in known if one.is_open])
    now = of_partitions.producers(link, left)
    same = {
        place: [one for one in every if _is_among(one, now.get(place, []))]
        for place, every in left.items()
    }
    return {place: every for place, every in same.items() if every}


def _is_among(one: Producer, now: list[Producer]) -> bool:
    mark = (one.producer_id, one.epoch, one.start)
    return mark in {(p.producer_id, p.epoch, p.start) for p in now}


def _everywhere(link: Link, topics: Iterable[str] | None) -> list[Place]:
    if topics is not None:
        found = existing(link, list(topics))
        return [(name, number) for name, of in found.items() for number in of]
    return [(one.name, number) for one in all_topics(link).values() for number in one.partitions]


def _open_only(found: dict[Place, list[Producer]]) -> _Suspects:
    return {
        place: [one for one in every if one.start is not None] for place, every in found.items()
    }


def unknown(writers: _Suspects, known: list[Transaction]) -> _Suspects:
    """The open transactions that no coordinator knows. One that is ending may have its next
    producer id already; its markers end what is open there.
    """
    theirs = {(place, one.producer_id) for one in known for place in one.places}
    ending = {place for one in known if one.state in ENDING for place in one.places}
    left = {
        place: [one for one in every if (place, one.producer_id) not in theirs]
        for place, every in writers.items()
        if place not in ending
    }
    return {place: every for place, every in left.items() if every}


Ends = dict[Place, tuple[int, int]]


def _open(one: Transaction, now_s: float, writers: _Suspects, ends: Ends) -> Open:
    held = []
    for topic, number in one.places:
        mine = (of for of in writers.get((topic, number), ()) if of.producer_id == one.producer_id)
        held.append(_held((topic, number), next(mine, None), ends))
    age_s = None if one.started_ms is None else max(0.0, round(now_s - one.started_ms / 1000, 1))
    return Open(
        one.name, one.state, one.producer_id, one.epoch, one.coordinator, one.timeout_ms, age_s,
        tuple(held),
    )  # fmt: skip


def _hanging(place: Place, one: Producer, ends: Ends) -> Open:
    held = (_held(place, one, ends),)
    return Open("", HANGING, one.producer_id, one.epoch, None, None, None, held)


def _held(place: Place, writer: Producer | None, ends: Ends) -> Held:
    stable, end = ends.get(place, (None, None))
    start = writer.start if writer is not None else None
    records = max(0, end - start) if start is not None and end is not None else 0
    return Held(*place, start, stable, end, records)


def _with_ages(one: Open, ages: dict[tuple[Place, int], float]) -> Open:
    held = tuple(
        replace(of, seconds=ages.get(((of.topic, of.partition), of.start)))
        if of.start is not None
        else of
        for of in one.held
    )
    return replace(one, held=held)


def is_late(one: Open) -> bool:
    """True if the transaction needs attention: it hangs, or is open for a minute or half of its
    timeout.
    """
    if one.age_s is None:
        return one.hangs
    return one.age_s >= min(_LONG_S, (one.timeout_ms or 0) / 2000 or _LONG_S)


def is_overdue(one: Open) -> bool:
    """True if its coordinator should have ended it: brokers check every ten seconds."""
    if one.age_s is None or one.timeout_ms is None:
        return one.hangs
    return one.age_s >= one.timeout_ms / 1000 + _SLACK_S


def describe_held(one: Open) -> str:
    """The records that it holds back from readers, in a sentence. Cuts very long names."""
    most = max(one.held, key=lambda of: of.records)
    where = f"{cut(most.topic)}-{most.partition}"
    others = sum(of.records > 0 for of in one.held) - 1
    more = f" and {others} more partition{'s' if others > 1 else ''}" if others > 0 else ""
    behind = f", the oldest {span(one.seconds)} old" if one.seconds is not None else ""
    records = f"{one.records:,} record{'' if one.records == 1 else 's'}"
    held = f"{records} of {where}{more} from read_committed{behind}"
    if one.hangs:
        return f"a transaction of producer {one.producer_id}, which hangs, keeps {held}"
    state = "" if one.state == ONGOING else f" ({one.state})"
    return f"transaction {cut(one.name)}{state}, open for {span(one.age_s or 0.0)}, keeps {held}"
