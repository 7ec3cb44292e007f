"""Reads the facts from which `expiry.py` predicts records about to expire unread.

Of a broker whose log folders can be looked into here the segments are known, without asking it.
Of any other the settings, the age of the oldest unread record and, by timestamp, how many records
are old enough; what retention.bytes deletes there cannot be known, and that is said.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from console.model.asking.configs import TOPIC, values_of
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.groups.groups import Group, Place
from console.model.groups.lag import Position
from console.model.groups.offsets import newest_ms, since
from console.model.topics import segments
from console.model.topics.expiry import (
    LOST,
    Fate,
    Keep,
    Log,
    Risk,
    asked,
    by_topic,
    fate,
    fate_by_age,
    warned_s,
    warns,
)

_FRESH_S: Final = 60.0
_MOST: Final = 1000
"""Partitions that are looked at in one look, those with most unread first."""
_KEYS: Final = ("cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes")
Rate = Callable[[str, Place], float]
"""(group, partition) → records per second that the group reads there, 0.0 when it is not known."""


@dataclass(slots=True, frozen=True)
class Expiry:
    """risks: the most urgent first. unknown: topics of which it is not known when retention.bytes
    deletes what was not read."""

    risks: tuple[Risk, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class _Unread:
    """at: the first unread record that is still there."""

    group: Group
    position: Position
    at: int
    high: int

    @property
    def topic(self) -> str:
        return self.position.topic

    @property
    def place(self) -> Place:
        return self.position.topic, self.position.partition


class Retention:
    """Looks at groups of one Link. Settings of topics and where folders are, are kept for a minute.
    One thread at a time. find: the log folders of its broker that can be looked into here."""

    def __init__(
        self, link: Link, find: Callable[[Link], list[str]] = segments.folders_here
    ) -> None:
        self._link = link
        self._find = find
        self._keeps: dict[str, tuple[float, Keep]] = {}
        self._folders: tuple[float, list[str]] | None = None

    def predict_expiry(
        self,
        groups: Sequence[Group],
        where: Mapping[str, Sequence[Position]],
        rate: Rate = lambda group, place: 0.0,
    ) -> Expiry:
        """Predicts the expiry of unread records of groups at these positions. Raises Failure."""
        unread = sorted(_unread(groups, where), key=lambda one: one.at - one.high)[:_MOST]
        keeps = self._settings({one.topic for one in unread})
        unread = [one for one in unread if one.topic in keeps]
        logs = self._logs([one for one in unread if _deletes(keeps[one.topic])])
        hidden = [one for one in unread if one.place not in logs]
        fates = _by_segments(unread, logs, keeps) | _by_age(self._link, hidden, keeps)
        risks: list[Risk] = []
        for group in groups:
            mine = [
                (one.place, found)
                for one in unread
                if one.group is group and (found := fates.get((group.name, one.place))) is not None
                and warns(found, one.high - one.at, rate(group.name, one.place))
            ]  # fmt: skip
            risks += by_topic(group.name, len(group.members), mine + list(_lost(where[group.name])))
        risks.sort(key=lambda one: (one.by != LOST, one.in_s))
        unknown = {one.topic for one in hidden if keeps[one.topic].bytes >= 0}
        return Expiry(tuple(risks), tuple(sorted(unknown)))

    def _settings(self, topics: Iterable[str]) -> dict[str, Keep]:
        now = time.monotonic()
        old = [
            name
            for name in topics
            if name not in self._keeps or now - self._keeps[name][0] > _FRESH_S
        ]
        if old:
            found = values_of(self._link, TOPIC, old, _KEYS)
            self._keeps |= {name: (now, _keep(values)) for name, values in found.items()}
        return {name: self._keeps[name][1] for name in topics if name in self._keeps}

    def _logs(self, unread: list[_Unread]) -> dict[Place, Log]:
        """The segments of those partitions whose folders are here."""
        now = time.monotonic()
        if not unread:
            return {}
        if self._folders is None or now - self._folders[0] > _FRESH_S:
            self._folders = now, self._find(self._link)
        folders = self._folders[1]
        if not folders:
            return {}
        now_ms = time.time_ns() // 1_000_000
        logs: dict[Place, Log] = {}
        last: set[Place] = set()
        for one in unread:
            path = segments.folder_of(folders, one.place)
            if path is None:
                continue
            log = logs.get(one.place) or Log(one.high, tuple(segments.segments(path)), {})
            for number in asked(one.at, log):
                if number + 1 == len(log.segments):
                    last.add(one.place)  # written to: its index has no end yet
                elif number not in log.newest_ms:
                    stamp = segments.newest_ms(path, log.segments[number], now_ms)
                    log.newest_ms[number] = stamp
            logs[one.place] = log
        for place, stamp in newest_ms(self._link, sorted(last)).items():
            logs[place].newest_ms[len(logs[place].segments) - 1] = stamp
        return logs


def _keep(values: Mapping[str, str | None]) -> Keep:
    deletes = "delete" in (values.get("cleanup.policy") or "delete")
    ms, size, segment = (_number(values.get(key)) for key in _KEYS[1:])
    return Keep(ms, size, segment) if deletes else Keep(-1, -1, segment)


def _number(value: str | None) -> int:
    """-1, for ever, where a broker says no number."""
    return int(value) if value is not None and value.isdecimal() else -1


def _deletes(keep: Keep) -> bool:
    return keep.ms >= 0 or keep.bytes >= 0


def _unread(groups: Sequence[Group], where: Mapping[str, Sequence[Position]]) -> Iterable[_Unread]:
    for group in groups:
        for one in where[group.name]:
            if one.committed is not None and one.start is not None and one.end is not None:
                at = max(one.committed, one.start)
                if at < one.end:
                    yield _Unread(group, one, at, one.end)


def _lost(positions: Sequence[Position]) -> Iterable[tuple[Place, Fate]]:
    for one in positions:
        if one.committed is not None and one.start is not None and one.committed < one.start:
            gone = Fate(one.start - one.committed, 0.0, LOST, 0.0, exact=True)
            yield (one.topic, one.partition), gone


def _by_segments(
    unread: list[_Unread], logs: dict[Place, Log], keeps: dict[str, Keep]
) -> dict[tuple[str, Place], Fate]:
    now_ms = time.time_ns() // 1_000_000
    found = {}
    for one in unread:
        log = logs.get(one.place)
        each = fate(one.at, log, keeps[one.topic], now_ms) if log is not None else None
        if each is not None:
            found[one.group.name, one.place] = each
    return found


def _by_age(
    link: Link, unread: list[_Unread], keeps: dict[str, Keep]
) -> dict[tuple[str, Place], Fate]:
    """Predicts by age for partitions with unknown segments: counts records where the oldest unread
    one is old enough.
    """
    soon: list[_Unread] = []
    wanted: dict[Place, int] = {}
    now_ms = time.time_ns() // 1_000_000
    for one in unread:
        keep, age_s = keeps[one.topic], one.position.lag_s
        if keep.ms >= 0 and age_s is not None:
            warned = warned_s(keep.ms / 1000)
            if age_s >= keep.ms / 1000 - warned:
                soon.append(one)
                wanted[one.place] = now_ms - keep.ms + round(warned * 1000)
    ends = since(link, wanted) if wanted else {}
    found = {}
    for one in soon:
        end = ends.get(one.place, -1)
        count = (one.high if end < 0 else end) - one.at
        assert one.position.lag_s is not None
        each = fate_by_age(one.position.lag_s, max(1, count), keeps[one.topic])
        if each is not None:
            found[one.group.name, one.place] = each
    return found


def looked(link: Link, groups: Sequence[Group], where: Mapping[str, Sequence[Position]]) -> Expiry:
    """One look, for a command; nothing where the broker does not say enough."""
    try:
        return Retention(link).predict_expiry(groups, where)
    except Failure:
        return Expiry()
