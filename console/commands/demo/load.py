"""Writes the data set through confluent-kafka: topics, tables, then the streams in their order.

`load` writes the year as fast as it goes, `replay` writes it again and again at a multiple of the
speed at which it happened.
"""

import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from console.commands.demo.data import TABLES, Content, events, records
from console.model.asking.failure import Failure
from console.model.asking.link import Link

if TYPE_CHECKING:
    from confluent_kafka import Producer

SILENCE_S: Final = 30.0
_BATCH: Final = 2000
_MIB: Final = 1 << 20
_TURN_S: Final = 0.05
_YEAR = re.compile(rb'"(?:time_hour":"|year":)(\d{4})')

Advance = Callable[[str, int], None]
"""(topic, records more)"""


def create(link: Link) -> None:
    """The topics. Raises Failure; one that exists already is one."""
    from confluent_kafka.admin import NewTopic

    compacted = {"cleanup.policy": "compact"}
    topics = [
        NewTopic(t.topic, num_partitions=1, config={} if t.stream else compacted) for t in TABLES
    ]
    for answer in link.admin().create_topics(topics, request_timeout=SILENCE_S).values():
        try:
            link.wait(answer)
        except Failure as failure:
            if failure.name == "TOPIC_ALREADY_EXISTS":
                failure.hint = "the demo needs an empty folder: choose another with --data"
            raise


def load(link: Link, source: Path, advance: Advance) -> dict[str, Content]:
    """Write everything. Topic → what was sent. Raises Failure when a record was not taken."""
    writer = _Writer(link, advance)
    load_tables(writer, source)
    writer.all((topic, key, value) for _, topic, key, value in events(source))
    writer.finish()
    return writer.sent


def load_tables(writer: "_Writer", source: Path) -> None:
    """The tables, which have no time."""
    for table in TABLES:
        if not table.stream:
            writer.all((table.topic, key, value) for key, value in records(table, source))


def replay(
    link: Link,
    source: Path,
    speed: float,
    advance: Advance,
    go_on: Callable[[], bool],
    clock: Callable[[datetime], None],
) -> None:
    """Write the streams at `speed` times the pace of their events while `go_on()`: a year after a
    year, the years counting up. clock: told what time it is there. Raises Failure."""
    writer = _Writer(link, advance, linger_ms=5)
    load_tables(writer, source)
    year = events(source)
    rounds = 0
    while go_on():
        began, first = time.monotonic(), year[0][0]
        at = 0
        while at < len(year) and go_on():
            now = first + (time.monotonic() - began) * speed / 60
            there = datetime.fromtimestamp(min(now, year[-1][0]) * 60, UTC)
            clock(there.replace(year=there.year + rounds))
            end = at
            while end < len(year) and year[end][0] <= now:
                end += 1
            writer.all((topic, key, _later(value, rounds)) for _, topic, key, value in year[at:end])
            at = end
            writer.poll(_TURN_S)
        rounds += 1
    writer.finish()


def _later(value: bytes, years: int) -> bytes:
    """The record so many years later."""
    if not years:
        return value

    def shifted(match: re.Match[bytes]) -> bytes:
        whole, year = match[0], match[1]
        return whole[: -len(year)] + b"%d" % (int(year) + years)

    return _YEAR.sub(shifted, value)


class _Writer:
    """An idempotent producer that waits when it is full and remembers what was refused."""

    def __init__(self, link: Link, advance: Advance, linger_ms: int = 20) -> None:
        self.sent = {table.topic: Content() for table in TABLES}
        self._producer: Producer = link.producer(linger_ms=linger_ms, batch_size=_MIB, acks="all")
        self._advance = advance
        self._failures: list[Any] = []

    def all(self, rows: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Every (topic, key, value), in order."""
        produce, delivered = self._producer.produce, self._delivered
        count, topic = 0, ""
        for topic, key, value in rows:
            self.sent[topic].add(key, value)
            while True:
                try:
                    produce(topic, value, key, on_delivery=delivered)
                    break
                except BufferError:
                    self.poll(0.1)
            count += 1
            if count % _BATCH == 0:
                self.poll(0)
                self._advance(topic, _BATCH)
        self.poll(0)
        self._advance(topic, count % _BATCH)

    def poll(self, seconds: float) -> None:
        """Let the producer tell what became of records. Raises Failure."""
        self._producer.poll(seconds)
        if self._failures:
            self._give_up(0)

    def finish(self) -> None:
        """Wait until everything is acknowledged. Raises Failure."""
        left = self._producer.flush(SILENCE_S)
        if self._failures or left:
            self._give_up(left)

    def _give_up(self, left: int) -> None:
        cause = f": {self._failures[0].str()}" if self._failures else ""
        raise Failure(f"{len(self._failures) + left} records were not acknowledged{cause}")

    def _delivered(self, error: Any, _: Any) -> None:
        if error:
            self._failures.append(error)
