"""Clients that go on whatever happens to their broker, and how long they stood still: a producer
and a consumer of librdkafka, a producer of Java. Called by `restart.py`.
"""

import json
import random
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import confluent_kafka as ck

from benchmarks import kafka

EVERY_S = 0.005
SETTLE_S = 1.0
LIMIT_S = 60.0


class Ticks:
    """Moments at which something came."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._last = time.monotonic()
        self._longest = 0.0
        self.count = 0

    def tick(self) -> None:
        now = time.monotonic()
        self._longest = max(self._longest, now - self._last)
        self._last = now
        self.count += 1

    def begin(self) -> None:
        """Silence counts from here."""
        self._last, self._longest = time.monotonic(), 0.0

    def longest(self) -> float:
        """The longest silence since `begin`, in seconds."""
        return self._longest


class Clients:
    """All of them, each in a thread. Use as a context manager. ticks: what is acknowledged to each
    producer, and what is read."""

    def __init__(self, bootstrap: str, topics: Sequence[str], backoff_ms: int | None) -> None:
        """topics: one, and another one where a Java producer is to go on, too. backoff_ms:
        librdkafka's reconnect.backoff.max.ms; None: as it is by default."""
        self.acknowledged, self.read = Ticks("writer's silence"), Ticks("reader's silence")
        self.ticks = [self.acknowledged, self.read]
        self.problem = ""
        self._over = threading.Event()
        self._topic = topics[0]
        common: dict[str, str | int] = {"bootstrap.servers": bootstrap, "log_level": 0}
        if backoff_ms is not None:
            common["reconnect.backoff.ms"] = min(100, backoff_ms)
            common["reconnect.backoff.max.ms"] = backoff_ms
        self._producer = ck.Producer({**common, "enable.idempotence": True, "linger.ms": 0})
        self._consumer = ck.Consumer(
            {**common, "group.id": self._topic, "auto.offset.reset": "earliest"}
        )
        self._threads = [threading.Thread(target=one) for one in (self._write, self._follow)]
        self._java: JavaProducer | None = None
        if len(topics) > 1:
            self._java = JavaProducer(bootstrap, topics[1])
            self.ticks.insert(1, self._java.acknowledged)

    def __enter__(self) -> "Clients":
        for one in self._threads:
            one.start()
        try:
            self.go_on()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in self._threads:
            one.join()
        self._consumer.close()
        if self._java is not None:
            self.problem = self._java.end() or self.problem

    def begin(self) -> None:
        """Silence counts from here."""
        for one in self.ticks:
            one.begin()

    def go_on(self) -> None:
        """Wait until more is acknowledged and read, and for a while of that: of another length each
        time, since clients look for lost brokers once a second. Raises SystemExit."""
        goals = [(one, one.count + 50) for one in self.ticks]
        end = time.monotonic() + LIMIT_S
        while late := [one.name for one, goal in goals if one.count < goal]:
            if self.problem or time.monotonic() > end:
                raise SystemExit(self.problem or f"clients do not go on: {', '.join(late)}")
            time.sleep(EVERY_S)
        time.sleep(SETTLE_S + random.random())

    def _write(self) -> None:
        number = 0
        while not self._over.is_set():
            self._producer.produce(self._topic, b"%d" % number, partition=0, on_delivery=self._told)
            number += 1
            self._producer.poll(EVERY_S)
            time.sleep(EVERY_S)
        if self._producer.flush(LIMIT_S):
            self.problem = "records were never acknowledged"

    def _told(self, error: ck.KafkaError | None, _: ck.Message) -> None:
        if error is not None:
            self.problem = f"a record failed: {error}"
        self.acknowledged.tick()

    def _follow(self) -> None:
        self._consumer.subscribe([self._topic])
        while not self._over.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            if message.value() != b"%d" % self.read.count:
                self.problem = f"read {message.value()!r} where {self.read.count} follows"
            self.read.tick()


class JavaProducer:
    """Kafka's own producer, as it is by default: by VerifiableProducer, which tells of each record
    that is acknowledged and would retry nothing if it were not told to."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged = Ticks("Java writer's silence")
        self._failed = ""
        self._totals: dict[str, int] = {}
        command = kafka.java(
            "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", bootstrap,
            "--topic", topic, "--throughput", str(round(1 / EVERY_S)), "--acks", "-1",
            "--command-config", str(Path(__file__).parent / "kafka" / "as-by-default.properties"),
        )  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            match told.get("name"):
                case "producer_send_success":
                    self.acknowledged.tick()
                case "producer_send_error":
                    self._failed = f"a record of Java failed: {told.get('message')}"
                case "tool_data":
                    self._totals = told

    def end(self) -> str:
        """What went wrong, "" when nothing did."""
        self._process.terminate()
        self._process.wait(LIMIT_S)
        self._thread.join()
        sent, acknowledged = self._totals.get("sent"), self._totals.get("acked")
        if not self._failed and (sent is None or sent != acknowledged):
            return f"Java's producer sent {sent} records, {acknowledged} were acknowledged"
        return self._failed
