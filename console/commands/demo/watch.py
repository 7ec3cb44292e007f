"""Reads the derived topics while the jobs write them: a thread with one ordinary consumer.

It keeps the figures that are compared in the end and the delays that the chart shows. Called by
the demo's command; a topic that does not exist yet is read from the moment it does.
"""

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from console.commands.demo.figures import DERIVED, Found
from console.model.asking.link import Link
from console.model.asking.refusals import failure_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_LOOK_S: Final = 0.5
_BATCH: Final = 5000


class Watch:
    """`found` and `first_s` (of the first derived record, monotonic) may be read at any time."""

    def __init__(self, link: Link) -> None:
        self.found = {derived.topic: Found(derived) for derived in DERIVED}
        self.first_s: float | None = None
        self.failure: Exception | None = None
        self._link = link
        self._ends = threading.Event()
        self._known: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start_reading(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Returns when the thread has ended."""
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            consumer = self._link.consumer(
                fetch_wait_max_ms=100, queued_min_messages=10_000, fetch_message_max_bytes=1 << 20
            )
            try:
                self._read(consumer)
            finally:
                consumer.close()
        except Exception as problem:  # shown by the command, which waits for figures
            self.failure = problem

    def _read(self, consumer: "Consumer") -> None:
        looked = 0.0
        while not self._ends.is_set():
            if len(self._known) < len(self.found) and time.monotonic() - looked > _LOOK_S:
                self._look(consumer)
                looked = time.monotonic()
            if not self._known:
                self._ends.wait(_LOOK_S)
                continue
            for message in consumer.consume(_BATCH, 0.1):
                if (error := message.error()) is not None:
                    raise failure_of(error)
                self.found[message.topic() or ""].add(message.value() or b"null")
                if self.first_s is None:
                    self.first_s = time.monotonic()

    def _look(self, consumer: "Consumer") -> None:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        there = consumer.list_topics(timeout=self._link.timeout_s).topics
        new: list[Any] = [
            TopicPartition(topic, 0, OFFSET_BEGINNING)
            for topic in self.found
            if topic in there and topic not in self._known
        ]
        if new:
            consumer.incremental_assign(new)
            self._known |= {place.topic for place in new}
