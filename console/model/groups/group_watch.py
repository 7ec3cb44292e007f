"""Groups of one Link, looked at again and again: how far they are, how that went since they were
first looked at or, of an appliance of this host, in the last day as it wrote it down itself; and
what is about to expire before they read it.

Answers are frozen values. Of many groups so many are looked at in one look; for what is about to
expire all of them have their turn.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from appliance.base.errors import StorageFailed
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.groups import groups, lag
from console.model.groups.groups import Group, Listed, Place
from console.model.groups.lag import Position
from console.model.groups.trend import Past, Sample
from console.model.local import history
from console.model.local.history import Series
from console.model.topics.ages import Ages
from console.model.topics.expiry import Risk
from console.model.topics.retention import Expiry, Retention

MOST_COUNTED: Final = 300
"""Of so many groups members and lag are asked; of more, names and states only."""
_IN_TURN: Final = 100
_AGES: Final = 300
_AGES_S: Final = 1.0
_REMEMBERED: Final = 1000
_KEPT_S: Final = 60.0
Lags = Mapping[tuple[str, str], Series]


@dataclass(slots=True, frozen=True)
class LagPast:
    """The known lag of a group: in all, and of each topic. since_s: start of the samples, wall
    clock. kept: older ones come from the appliance's history. moved_s: partition → when its
    committed offset was last seen to move.
    """

    since_s: float = 0.0
    samples: tuple[Sample, ...] = ()
    topics: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    moved_s: Mapping[Place, float] = field(default_factory=dict)
    kept: bool = False


@dataclass(slots=True, frozen=True)
class GroupCount:
    """The figures of a group in the list, beside its name and state. samples: its lag as seen.
    reads: topic → records behind there, as far as they are known."""

    members: int
    topics: int
    lag: int | None
    lag_s: float | None = None
    samples: tuple[Sample, ...] = ()
    reads: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class GroupsSeen:
    """Every group, and what was counted of those that were asked for. lags: of each partition the
    lag of the group that is farthest behind."""

    listed: list[Listed]
    counts: dict[str, GroupCount]
    lags: Mapping[Place, int] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class GroupSeen:
    """One group as its own view shows it."""

    group: Group
    positions: list[Position]
    past: LagPast = field(default_factory=LagPast)
    expiry: Expiry = field(default_factory=Expiry)


class KeptLags:
    """The lags in the history of an appliance of this host, minute by minute; read once a minute.
    One thread at a time. read: a data folder → (group, topic) → records behind.
    """

    def __init__(self, data_dir: Callable[[], str], read: Callable[[str], Lags]) -> None:
        self._data_dir = data_dir
        self._read = read
        self._looked_s = float("-inf")
        self._lags: Lags = {}

    def of(self, name: str, until_s: float) -> LagPast:
        """The lag of a group up to then; nothing where nothing is known."""
        folder, now = self._data_dir(), time.monotonic()
        if folder and now - self._looked_s >= _KEPT_S:
            self._looked_s, self._lags = now, self._read(folder)
        altogether: dict[float, int] = {}
        topics = {}
        for (group, topic), told in self._lags.items():
            if group == name:
                pairs = zip(told.times, told.values, strict=True)
                topics[topic] = tuple((at, round(lag)) for at, lag in pairs if at < until_s)
                for at, lag in topics[topic]:
                    altogether[at] = altogether.get(at, 0) + lag
        return LagPast(until_s, tuple(sorted(altogether.items())), topics)


def _kept_lags(folder: str) -> Lags:
    try:
        past = history.read(folder)
    except Failure:
        return {}
    try:
        return past.lags()
    except StorageFailed:
        return {}
    finally:
        past.close()


class GroupWatch:
    """Looks at the groups of a Link. Threads may share one. data_dir: of the appliance behind it
    when it is one of this host, else ""."""

    def __init__(self, link: Link, data_dir: Callable[[], str] = lambda: "") -> None:
        self._link = link
        self._kept = KeptLags(data_dir, _kept_lags)
        self._ages = Ages(link, keeps=True, most=_AGES, patience_s=_AGES_S)
        self._retention = Retention(link)
        self._pasts: dict[str, Past] = {}
        self._risks: dict[str, tuple[Risk, ...]] = {}
        self._last = ""
        self._one = threading.Lock()

    def one(self, name: str) -> GroupSeen:
        """One group. Raises Failure."""
        try:
            (found,) = groups.described(self._link, [name])
        except Failure as failure:
            other = None
            if failure.name == "GROUP_ID_NOT_FOUND":
                other = groups.other(self._link, name)
            if other is None:
                raise
            return GroupSeen(other, [])
        positions = lag.places(self._link, [found], ages=self._ages)[name]
        with self._one:
            self._note(name, positions)
            expiry = self._retention.predict_expiry([found], {name: positions}, self._reads_s)
            self._risks[name] = expiry.risks
            return GroupSeen(found, positions, self._past(name, positions), expiry)

    def many(self, wanted: Callable[[str], bool]) -> GroupsSeen:
        """Every group, counted where no more are wanted than can be. Raises Failure."""
        found = groups.listed(self._link)
        names = [one.name for one in found if one.is_told and wanted(one.name)]
        if len(names) > MOST_COUNTED:
            return GroupsSeen(found, {})
        there = groups.still_there(self._link, names)
        where = lag.places(self._link, there, ages=self._ages)
        counts = {}
        with self._one:
            for one in there:
                positions = where[one.name]
                self._note(one.name, positions)
                counts[one.name] = GroupCount(
                    len(one.members),
                    len({place.topic for place in positions}),
                    *lag.total(positions),
                    tuple(self._pasts[one.name].all),
                    _by_topic(positions),
                )
        told = (((one.topic, one.partition), one.lag) for all_ in where.values() for one in all_)
        return GroupsSeen(found, counts, worst_lags(told))

    def risks(self) -> tuple[Risk, ...]:
        """Records about to expire unread, of all groups as last examined; each call examines the
        next groups in turn. Raises Failure.
        """
        names = [one.name for one in groups.listed(self._link) if one.is_told]
        turn = [name for name in names if name > self._last][:_IN_TURN]
        self._last = turn[-1] if len(turn) == _IN_TURN else ""
        there = groups.still_there(self._link, turn)
        where = lag.places(self._link, there, ages=self._ages)
        with self._one:
            for name, positions in where.items():
                self._note(name, positions)
            found = self._retention.predict_expiry(there, where, self._reads_s).risks
            for name in turn:
                self._risks[name] = tuple(one for one in found if one.group == name)
            known = set(names)
            for name in [one for one in self._risks if one not in known]:
                del self._risks[name]
            every = [one for each in self._risks.values() for one in each]
        return tuple(sorted(every, key=lambda one: (one.in_s, one.group)))

    def _note(self, name: str, positions: list[Position]) -> None:
        now_s = time.time()
        past = self._pasts.pop(name, None) or Past(now_s)
        self._pasts[name] = past
        past.add_sample(now_s, positions)
        if len(self._pasts) > _REMEMBERED:
            del self._pasts[next(iter(self._pasts))]

    def _reads_s(self, name: str, place: Place) -> float:
        past = self._pasts.get(name)
        return past.reads_s(place, time.time()) if past is not None else 0.0

    def _past(self, name: str, positions: list[Position]) -> LagPast:
        past = self._pasts[name]
        places = [(one.topic, one.partition) for one in positions]
        moved = {place: past.moved_s(place) for place in places}
        before = self._kept.of(name, past.since_s)
        return LagPast(
            past.since_s,
            (*before.samples, *past.all),
            {topic: (*before.topics.get(topic, ()), *each) for topic, each in past.topics.items()},
            {place: at_s for place, at_s in moved.items() if at_s is not None},
            kept=bool(before.samples),
        )


def worst_lags(told: Iterable[tuple[Place, int | None]]) -> dict[Place, int]:
    """(topic, partition) → the greatest lag that is told of it. told: of each group."""
    found: dict[Place, int] = {}
    for place, behind in told:
        found[place] = max(found.get(place, 0), behind or 0)
    return found


def _by_topic(positions: list[Position]) -> dict[str, int]:
    lags: dict[str, int] = {}
    for one in positions:
        lags[one.topic] = lags.get(one.topic, 0) + (one.lag or 0)
    return lags
