"""A search for records as a value: what was looked at in each partition, and what is left.

Whoever fetches (`fetching.py`) tells it what arrived; it says what of it is kept and which
partitions to go on with. It asks nobody and has no clock. Invariant: in each partition every offset
from the first one up to `at` was looked at or is not there, none behind it was; so it can be
stopped at any moment and go on from there.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from console.model.records.filters import Filter
from console.model.records.seeking import Key, Span

T = TypeVar("T")
ENDLESS: Final = (1 << 63) - 1
"""Where a span ends that follows the end of its partition."""
_SAMPLES: Final = 50
UNREADABLE: Final = ("(names that are not UTF-8)", None)
"""Stands for all headers of a record."""


@dataclass(slots=True, frozen=True)
class Progress:
    """How far a search is. records, data_bytes: looked at (keys and values). found: kept. at, of:
    offsets behind us and all of them, gaps included. expired: offsets that were asked for and are
    not there any more. held_back: offsets behind a transaction that is still open. records_s: the
    rate of the last seconds. eta_s: None while it cannot be told."""

    records: int = 0
    data_bytes: int = 0
    found: int = 0
    at: int = 0
    of: int = 0
    expired: int = 0
    held_back: int = 0
    records_s: float = 0.0
    eta_s: float | None = None

    @property
    def left(self) -> int:
        """Offsets that were not looked at."""
        return self.of - self.at


def headers_of(message: Any) -> list[tuple[str, bytes | None]]:
    """The headers of a message of confluent-kafka, which refuses to show any when a name is not
    UTF-8.
    """
    try:
        return message.headers() or []
    except UnicodeDecodeError:
        return [UNREADABLE]


class _Part:
    """A partition. quota: how much may be found in it until the next round; None: no limit."""

    __slots__ = ("at", "found", "held_back", "is_done", "quota", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.at = span.first
        self.found = 0
        self.quota: int | None = None
        self.held_back = 0
        self.is_done = span.first >= span.stop


class Scan(Generic[T]):
    """The search. made: makes what is kept of a message that passes the filter. limit: how much may
    be found until somebody says to go on, shared fairly between the partitions: a search of twelve
    partitions shows the first of each, not all of one. None: no limit.

    Messages are confluent-kafka's, or look like them: topic(), partition(), offset(), key(),
    value(), headers()."""

    def __init__(
        self,
        spans: Mapping[Key, Span],
        keep: Filter,
        made: Callable[[Any], T],
        limit: int | None = None,
    ) -> None:
        self._parts = {key: _Part(span) for key, span in spans.items() if keep.partition(key[1])}
        self._keep = keep
        self._made = made
        self._step = limit
        self._limit = limit
        self._records = 0
        self._bytes = 0
        self._found = 0
        self._expired = sum(one.span.expired for one in self._parts.values())
        self._samples: deque[tuple[float, int, int]] = deque(maxlen=_SAMPLES)

    @property
    def is_done(self) -> bool:
        """Everything was looked at."""
        return all(one.is_done for one in self._parts.values())

    @property
    def is_full(self) -> bool:
        """As much was found as may be until `go_on`."""
        return self._limit is not None and self._found >= self._limit

    def raise_limit(self) -> None:
        """As much again may be found."""
        if self._step is not None:
            self._limit = self._found + self._step

    def round(self) -> dict[Key, int]:
        """The partitions to fetch now, with the offset to begin at; none when it is over or
        full."""
        if self.is_full:
            return {}
        left = {key: one for key, one in self._parts.items() if not one.is_done}
        for one in left.values():
            if self._limit is not None:
                one.quota = one.found + -(-(self._limit - self._found) // len(left))
        return {key: one.at for key, one in left.items()}

    def wants(self, key: Key) -> bool:
        """True if this round is to fetch more of a partition."""
        one = self._parts[key]
        return not one.is_done and one.found != one.quota and not self.is_full

    def match_messages(self, messages: Iterable[Any]) -> list[T]:
        """Returns the matches among messages that have arrived."""
        found: list[T] = []
        keeps, everything = self._keep.keeps, not self._keep
        reads_headers, parts = self._keep.reads_headers, self._parts
        for message in messages:
            part = parts[message.topic(), message.partition()]
            offset = message.offset()
            if offset < part.at or part.is_done or part.found == part.quota or self.is_full:
                continue  # it came before we had said that we want no more
            if offset < part.span.stop:
                key, value = message.key(), message.value()
                self._records += 1
                self._bytes += (len(key) if key else 0) + (len(value) if value else 0)
                if everything or keeps(key, value, headers_of(message) if reads_headers else ()):
                    found.append(self._made(message))
                    part.found += 1
                    self._found += 1
            self._move(part, offset + 1)
        return found

    def _move(self, part: _Part, at: int) -> None:
        part.at = min(at, part.span.stop)
        part.is_done = part.at == part.span.stop

    def ended(self, key: Key, at: int) -> None:
        """A partition has nothing more: its next offset is `at`. What was there when the search
        began and is not given now lies behind an open transaction."""
        part = self._parts[key]
        if part.is_done or part.found == part.quota:
            return
        if part.span.stop == ENDLESS:
            part.at = at
            return
        if at >= part.at:
            self._move(part, at)
        if not part.is_done:
            part.held_back = part.span.stop - part.at
            part.is_done = True

    def edges(self, key: Key, low: int, high: int) -> None:
        """Applies the current bounds of a partition: records before `low` have expired, and a log
        that was truncated or made anew may end before the scan's position.
        """
        part = self._parts[key]
        if part.at > high:
            self.ended(key, high)
        if low > part.at and not part.is_done:
            self._expired += min(low, part.span.stop) - part.at
            self._move(part, low)

    def skip(self, key: Key, to: int) -> int:
        """Go on further ahead; how many offsets are not looked at."""
        part = self._parts[key]
        skipped = max(0, to - part.at)
        part.at += skipped
        return skipped

    @property
    def spans(self) -> dict[Key, Span]:
        """The span of each partition to examine in all."""
        return {key: one.span for key, one in self._parts.items()}

    def looked_at(self) -> dict[Key, Span]:
        """The span examined of each partition; may be called from another thread."""
        return {
            key: Span(one.span.first, one.at)
            for key, one in self._parts.items()
            if one.at > one.span.first
        }

    @property
    def positions(self) -> dict[Key, int]:
        """The next offset of each partition."""
        return {key: one.at for key, one in self._parts.items()}

    def progress(self, now_s: float) -> Progress:
        """How far it is. now_s: any clock that goes ahead."""
        parts = self._parts.values()
        held_back = sum(one.held_back for one in parts)
        at = sum(one.at - one.span.first for one in parts)
        of = sum(one.span.stop - one.span.first for one in parts) - held_back
        self._samples.append((now_s, at, self._records))
        then_s, at_then, records_then = self._samples[0]
        took_s = now_s - then_s
        told = Progress(self._records, self._bytes, self._found, at, of, self._expired, held_back)
        if took_s <= 0:
            return told
        rate = (at - at_then) / took_s
        return replace(
            told,
            records_s=(self._records - records_then) / took_s,
            eta_s=(of - at) / rate if rate > 0 else None,
        )

    def rested(self) -> None:
        """It stood still: the rate is measured anew."""
        self._samples.clear()
