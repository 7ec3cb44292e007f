"""The history of an appliance of this host over the last ten minutes and the last day, read from
its own file (`appliance/history`), whether it runs or not, without a request.

    past = history.read(data_dir)
    past.whole(SECONDS).rates("bytes_in")      Series of times and bytes per second
    past.topic("orders", MINUTES).rates(…)     the same of one topic
    past.clients()                             Client → Past[Use], second by second
    past.lags()                                (group, topic) → Series of records, minute by minute

Times are seconds of the wall clock; a Series never decreases in time. A moment in which a topic or
client did nothing is there with 0, as long as the appliance ran; where it did not run, there is
nothing.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.history.format import MINUTE, SECOND, UnknownHistory
from appliance.history.history_reader import HistoryReader, Many, Moment
from appliance.history.samples import ApiSample, ClientSample, ProcessSample, TopicSample, Whole
from appliance.history.samples import FolderSample as DiskSample
from console.model.asking.failure import Failure

SECONDS: Final = SECOND
"""One sample a second, for ten minutes."""
MINUTES: Final = MINUTE
"""One a minute, for a day."""

WHOLE_KEPT: Final = 600
TOPIC_KEPT: Final = 120
"""How many looks `Recent` remembers of all, and of each topic."""

N = TypeVar("N", bound=tuple[Any, ...])


@dataclass(slots=True, frozen=True)
class Series:
    """Values at times, the oldest first. times: seconds, wall clock, at the end of what a value is
    about."""

    times: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def since(self, at: float) -> "Series":
        """The part of the series that is not older than `at`."""
        first = next((n for n, when in enumerate(self.times) if when >= at), len(self.times))
        return Series(self.times[first:], self.values[first:])


@dataclass(slots=True, frozen=True)
class Past(Generic[N]):
    """Samples of one thing. spans: how many seconds each is about. told: named tuples
    (`appliance/history/samples.py`), amounts of the whole span."""

    times: tuple[float, ...]
    spans: tuple[float, ...]
    told: tuple[N, ...]

    def rates(self, field: str) -> Series:
        """One field of the samples, per second."""
        pairs = zip(self.told, self.spans, strict=True)
        return Series(self.times, tuple(getattr(one, field) / span for one, span in pairs))

    def levels(self, field: str) -> Series:
        """One field of the samples as it is: a latency, a size, a share of a CPU."""
        return Series(self.times, tuple(getattr(one, field) for one in self.told))

    def amounts(self, field: str) -> tuple[float, ...]:
        """One field of the samples as it is, without times."""
        return tuple(getattr(one, field) for one in self.told)


@dataclass(slots=True, frozen=True)
class Of(Generic[N]):
    """The same of several things. left_out: of how many others there was most traffic at a time
    than could be kept, so that nothing is known of them then."""

    of: Mapping[Any, Past[N]] = field(default_factory=dict)
    left_out: int = 0


class History:
    """One look at what was written down. Each method reads what it tells; nothing else is kept."""

    def __init__(self, data_dir: str) -> None:
        """Raises Failure: there is none."""
        try:
            self._reader = HistoryReader(OsDisk(), data_dir)
        except (UnknownHistory, StorageFailed) as why:
            raise Failure(
                f"its history is not available: {why}",
                "an appliance records it from its first minute on", name="NO_HISTORY",
            ) from None  # fmt: skip

    def close(self) -> None:
        """Give the file back."""
        self._reader.close()

    def whole(self, step: int, newest: int = 0) -> Past[Whole]:
        """All of the appliance. newest: so many samples at most, 0 for all."""
        return _past(self._reader.whole(step, newest))

    def topics(self, step: int, newest: int = 0) -> Of[TopicSample]:
        """Topic → what went through it, at every moment at which the appliance ran."""
        return self._filled(self._reader.topics(step, newest), step, newest, TopicSample())

    def topic(self, name: str, step: int, newest: int = 0) -> Past[TopicSample]:
        """One topic; nothing but zeros when it is not known."""
        found = self._reader.topics(step, newest)
        alone = Many({name: found.of.get(name, ())}, found.left_out)
        return self._filled(alone, step, newest, TopicSample()).of[name]

    def clients(self, newest: int = 0) -> Of[ClientSample]:
        """Client → what it did, second by second for ten minutes."""
        return self._filled(self._reader.clients(SECONDS, newest), SECONDS, newest, ClientSample())

    def lags(self) -> dict[tuple[str, str], Series]:
        """(group, topic) → records behind, minute by minute for a day, where it is known."""
        found = self._reader.lags(MINUTES).of
        return {
            who: Series(tuple(_at(one) for one in told), tuple(float(one.value) for one in told))
            for who, told in found.items()
        }

    def apis(self, step: int, newest: int = 0) -> dict[int, Past[ApiSample]]:
        """API key → what was asked and how long it took, when it was asked."""
        return {key: _past(told) for key, told in self._reader.apis(step, newest).of.items()}

    def processes(self, step: int, newest: int = 0) -> dict[tuple[int, int], Past[ProcessSample]]:
        """(kind, index) → what a process used."""
        return {key: _past(told) for key, told in self._reader.processes(step, newest).of.items()}

    def disks(self, step: int) -> dict[int, Past[DiskSample]]:
        """Number of the log folder → how full its disk was."""
        return {key: _past(told) for key, told in self._reader.disks(step).of.items()}

    def _filled(self, found: Many[Any, N], step: int, newest: int, nothing: N) -> Of[N]:
        """With `nothing` at the moments in which a thing did nothing."""
        moments = self._reader.whole(step, newest)
        times = tuple(_at(one) for one in moments)
        spans = tuple(_span(one) for one in moments)
        filled = {}
        for key, told in found.of.items():
            values = {one.at_ms: one.value for one in told}
            each = tuple(values.get(one.at_ms, nothing) for one in moments)
            filled[key] = Past(times, spans, each)
        return Of(filled, found.left_out)


def read(data_dir: str) -> History:
    """The history in a data folder. Raises Failure."""
    return History(data_dir)


def _past(moments: Sequence[Moment[N]]) -> Past[N]:
    return Past(
        tuple(_at(one) for one in moments),
        tuple(_span(one) for one in moments),
        tuple(one.value for one in moments),
    )


def _at(moment: Moment[Any]) -> float:
    return moment.at_ms / 1000


def _span(moment: Moment[Any]) -> float:
    return max(moment.span_ms, 1) / 1000


class Recent:
    """The last seconds of an appliance that runs: each look reads only what is new since the one
    before. whole: MB (10^6 bytes) in and out, and requests, per second; of_topics: MB/s in and out
    of each topic that had any, all at the same moments. seen_s: the second of the last one."""

    def __init__(self, data_dir: str) -> None:
        self._data_dir = data_dir
        self._seen_ms = 0
        self.whole: deque[tuple[float, float, float]] = deque(maxlen=WHOLE_KEPT)
        self.of_topics: dict[str, deque[tuple[float, float]]] = {}

    @property
    def seen_s(self) -> int:
        """Wall clock; 0 before the first."""
        return self._seen_ms // 1000

    def read_samples(self) -> None:
        """Where there is no history, or none yet, nothing is new."""
        newest = WHOLE_KEPT
        if self._seen_ms:
            newest = max(1, min(newest, int(time.time() - self._seen_ms / 1000) + 3))
        try:
            reader = HistoryReader(OsDisk(), self._data_dir)
        except (UnknownHistory, StorageFailed):
            return
        try:
            moments = [m for m in reader.whole(SECONDS, newest) if m.at_ms > self._seen_ms]
            topics = reader.topics(SECONDS, min(newest, TOPIC_KEPT)).of if moments else {}
        finally:
            reader.close()
        told = {
            name: {one.at_ms: (_mb_s(one, 0), _mb_s(one, 1)) for one in each}
            for name, each in topics.items()
        }
        for moment in moments:
            requests_s = moment.per_second(moment.value.requests)
            self.whole.append((_mb_s(moment, 0), _mb_s(moment, 1), requests_s))
            self._seen_ms = moment.at_ms
        for name in told:
            self.of_topics.setdefault(name, deque(maxlen=TOPIC_KEPT))
        for name, past in self.of_topics.items():
            known = told.get(name, {})
            past.extend(known.get(m.at_ms, (0.0, 0.0)) for m in moments[-TOPIC_KEPT:])


def _mb_s(moment: Moment[Any], field: int) -> float:
    return moment.per_second(moment.value[field]) / 1e6
