"""Lag over time: what was seen of it, and where it leads.

Of so many samples at most: when there are more, every second one of the older half goes, so that
the last minutes stay exact and the first hours stay at all. Nothing here asks anybody or has a
clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.model.groups.groups import Place
from console.model.groups.lag import Position

_MOST: Final = 240
_WINDOW_S: Final = 300.0
"""A trend is about the last five minutes: offsets are committed every few seconds, and what came
before has little to say about when it will be done."""
_LEAST_S: Final = 10.0
_LEAST: Final = 3
_MARK_S, _MARKS = 15.0, 20
_NOISE: Final = 0.02
"""Of the lag: what changed by less in all the window has not changed."""

Sample = tuple[float, int]
"""When, in s by the wall clock, and the lag in records."""


@dataclass(slots=True, frozen=True)
class Trend:
    """grows_s: records per second that the lag grows by; negative: it shrinks; 0: neither. over_s:
    the span that was looked at. drains_s: until nothing is left; None: never, as it goes."""

    grows_s: float
    over_s: float
    drains_s: float | None


def trend(samples: Sequence[Sample]) -> Trend | None:
    """The trend of the last five minutes, by least squares; None while there are too few
    samples.
    """
    if not samples:
        return None
    newest_s, lag = samples[-1]
    recent = [one for one in samples if newest_s - one[0] <= _WINDOW_S]
    over_s = newest_s - recent[0][0]
    if len(recent) < _LEAST or over_s < _LEAST_S:
        return None
    if not lag:
        return Trend(0.0, over_s, 0.0)
    mean_s = sum(at for at, _ in recent) / len(recent)
    mean = sum(value for _, value in recent) / len(recent)
    spread = sum((at - mean_s) ** 2 for at, _ in recent)
    slope = sum((at - mean_s) * (value - mean) for at, value in recent) / spread
    if abs(slope) * over_s < max(1.0, mean * _NOISE):
        return Trend(0.0, over_s, None)
    return Trend(slope, over_s, lag / -slope if slope < 0 else None)


def columns(samples: Sequence[Sample], count: int, now_s: float, span_s: float) -> list[float]:
    """The samples of the last `span_s` seconds as so many columns of equal time, the newest last:
    the greatest of each, and where nothing was seen what was seen before. -1: nothing was seen up
    to then."""
    assert count > 0 and span_s > 0
    found = [-1.0] * count
    begin = now_s - span_s
    before = -1.0
    for at, value in samples:
        if at < begin:
            before = float(value)
        elif at <= now_s:
            number = min(count - 1, int((at - begin) / span_s * count))
            found[number] = max(found[number], float(value))
    for number, seen in enumerate(found):
        before = found[number] = seen if seen >= 0 else before
    return found


class Past:
    """Samples of one group: its lag, that of each topic, how fast each partition is read, and when
    its committed offset was last seen to move. since_s: of the first sample.
    """

    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        self.all: list[Sample] = []
        self.topics: dict[str, list[Sample]] = {}
        self._moved: dict[Place, tuple[int, float]] = {}
        self._marks: dict[Place, list[tuple[float, int]]] = {}

    def add_sample(self, now_s: float, positions: Sequence[Position]) -> None:
        """It was looked at. A partition without a committed offset has no lag, and is no sample."""
        lags: dict[str, int] = {}
        for one in positions:
            if one.lag is not None:
                lags[one.topic] = lags.get(one.topic, 0) + one.lag
            if one.committed is not None:
                self._note_place((one.topic, one.partition), one.committed, now_s)
        if lags:
            _keep(self.all, (now_s, sum(lags.values())))
        for topic in self.topics.keys() - lags.keys():
            del self.topics[topic]
        for topic, lag in lags.items():
            _keep(self.topics.setdefault(topic, []), (now_s, lag))

    def _note_place(self, place: Place, committed: int, now_s: float) -> None:
        before = self._moved.get(place)
        if before is None:
            self._moved[place] = (committed, -1.0)
        elif before[0] != committed:
            self._moved[place] = (committed, now_s)
        marks = self._marks.setdefault(place, [])
        if marks and committed < marks[-1][1]:  # going back is not reading
            marks.clear()
        if not marks or now_s - marks[-1][0] >= _MARK_S:
            marks.append((now_s, committed))
            del marks[: max(0, len(marks) - _MARKS)]

    def moved_s(self, place: Place) -> float | None:
        """When its committed offset was last seen to move, by the wall clock; None: never since
        `since_s`."""
        at_s = self._moved.get(place, (0, -1.0))[1]
        return at_s if at_s >= 0 else None

    def reads_s(self, place: Place, now_s: float) -> float:
        """Records per second that are read of a partition; 0.0 while that is not known."""
        marks, now = self._marks.get(place), self._moved.get(place)
        if not marks or now is None or now_s - marks[0][0] < _LEAST_S:
            return 0.0
        return max(0.0, (now[0] - marks[0][1]) / (now_s - marks[0][0]))


def _keep(samples: list[Sample], one: Sample) -> None:
    samples.append(one)
    if len(samples) > _MOST:
        half = _MOST // 2
        samples[:half] = samples[:half:2]
