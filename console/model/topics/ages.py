"""How old records are, by their own timestamps: one record is read from each place, once.

What was read is remembered: a place and an offset name the same record for as long as it is there.
So looking again costs nothing where nobody committed meanwhile, and else one record a partition.
"""

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from console.model.asking.link import Link
from console.model.groups.groups import Place

if TYPE_CHECKING:
    from confluent_kafka import Consumer

Spot = tuple[Place, int]
"""A topic and a partition, and an offset in it."""
_REMEMBERED: Final = 50_000


class Ages:
    """Ages of records of one Link. Threads may share one. keeps: whether the connection is kept for
    the next look, for whoever looks again and again. most, patience_s: records that are read in one
    look at most, and how long; what did not come is told in records alone, until the next one.
    isolation: read_uncommitted for records of open transactions, too."""

    def __init__(
        self,
        link: Link,
        *,
        keeps: bool = False,
        most: int = 1000,
        patience_s: float = 3.0,
        isolation: str = "read_committed",
    ) -> None:
        self._link = link
        self._keeps = keeps
        self._most = most
        self._patience_s = patience_s
        self._isolation = isolation
        self._stamps: dict[Spot, int | None] = {}
        self._consumer: Consumer | None = None
        self._one = threading.Lock()

    def of(self, spots: Iterable[Spot]) -> dict[Spot, float]:
        """Age in seconds of the first record at or behind each spot, of those that have one and
        could be read in time."""
        with self._one:
            wanted = dict.fromkeys(spots)
            left = [one for one in wanted if one not in self._stamps][: self._most]
            if left:
                self._read(left)
            now_ms = time.time() * 1000
            stamps = ((spot, self._stamps.get(spot)) for spot in wanted)
            return {
                spot: round(max(0.0, now_ms - stamp) / 1000, 1)
                for spot, stamp in stamps
                if stamp is not None
            }

    def _read(self, spots: list[Spot]) -> None:
        # A partition has one position at a time: of several spots in it the others wait a round.
        until = time.monotonic() + min(self._patience_s, self._link.timeout_s)
        consumer = self._consumer or self._link.consumer(
            fetch_wait_max_ms=50, max_partition_fetch_bytes=1, isolation_level=self._isolation
        )
        self._consumer = None
        try:
            while spots and time.monotonic() < until:
                now: dict[Place, int] = {}
                for place, at in spots:
                    now.setdefault(place, at)
                spots = [one for one in spots if now[one[0]] != one[1]]
                self._round(consumer, now, until)
            if self._keeps:
                consumer.unassign()
                self._consumer = consumer
        finally:
            if self._consumer is None:  # it is not kept, or it has failed
                consumer.close()
        for old in list(self._stamps)[: max(0, len(self._stamps) - _REMEMBERED)]:
            del self._stamps[old]

    def _round(self, consumer: "Consumer", now: dict[Place, int], until: float) -> None:
        from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, TopicPartition

        consumer.assign([TopicPartition(topic, n, at) for (topic, n), at in now.items()])
        while now and time.monotonic() < until:
            message = consumer.poll(0.05)
            if message is None or message.error():
                continue
            place = (str(message.topic()), int(message.partition() or 0))
            at = now.pop(place, -1)
            if at < 0:
                continue
            consumer.incremental_unassign([TopicPartition(*place)])
            kind, stamp = message.timestamp()
            known = kind != TIMESTAMP_NOT_AVAILABLE and stamp >= 0
            self._stamps[place, at] = stamp if known else None
