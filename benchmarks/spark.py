"""Spark on an appliance and on Apache Kafka: the same jobs, one session, in alternation.

    python -m benchmarks.spark                     both brokers, started here, default settings
    python -m benchmarks.spark --records 200000 --repeat 1 --seconds 5      a short look

Rows per second of a batch read, of a stream that reads what is there (AvailableNow), and from topic
to topic; milliseconds from a record's creation until it is read from a derived topic; memory of the
brokers. What is read and derived is counted: a wrong count ends the run. Both acknowledge from the
page cache, as Kafka does by default; with --durable both flush first.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine, procstat, tables
from benchmarks.kafka import Kafka, fetch
from penstock.local import Appliance
from spark_local.engine import jars, session

PARTITIONS = 2
SETTLE_S = 20.0
RATES = (100, 10_000)
WARM_ROUNDS = {"throughput": 1, "latency": 3}
"""Rounds that do not count. Micro-batches at 10,000 records/s go on getting shorter, from 1,000 to
220 ms, until the JVM has translated what they run."""


class Broker(NamedTuple):
    name: str
    bootstrap: str
    pid: int


class WrongCount(Exception):
    """Rows are missing, or there are too many: the figures would mean nothing."""


@contextlib.contextmanager
def brokers(folder: Path, *, durable: bool) -> Iterator[list[Broker]]:
    """Both, in fresh folders, for as long as the context lasts."""
    ours = Appliance(
        folder / "penstock" / "data", {"log.flush.policy": "group" if durable else "os"}
    )
    kafka = Kafka(folder / "kafka", heap="1g")
    if durable:
        kafka.settings["log.flush.interval.messages"] = "1"
    with ours, kafka:
        yield [
            Broker("penstock", ours.bootstrap, ours.pid),
            Broker("kafka", kafka.bootstrap, kafka.pid),
        ]


def create(broker: Broker, *topics: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1) for topic in topics]
    for answer in admin.create_topics(new).values():
        answer.result(SETTLE_S)


def fill(broker: Broker, topic: str, records: int, size: int) -> None:
    """`records` values of `size` bytes that do not compress to nothing."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "batch.size": 1 << 18,
         "queue.buffering.max.messages": 1_000_000}
    )  # fmt: skip
    values = [os.urandom(size // 2).hex().encode() for _ in range(1000)]
    for number in range(records):
        while True:
            try:
                producer.produce(topic, values[number % 1000], partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise WrongCount(f"{broker.name} did not take the records")


def count(broker: Broker, topic: str) -> int:
    """Records of a topic: the ends of its partitions, from which nothing was deleted."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench"})
    try:
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, p), SETTLE_S)[1]
            for p in range(PARTITIONS)
        )
    finally:
        consumer.close()


class Jobs:
    """The measured jobs, on one Spark session. Each returns seconds."""

    def __init__(self, spark: Any, place: Path, records: int) -> None:
        self._spark = spark
        self._place = place
        self._records = records
        self._runs = 0

    def read(self, broker: Broker) -> float:
        """A batch that reads the topic and drops the rows."""
        rows = self._source(self._spark.read, broker, "load")
        began = time.perf_counter()
        rows.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    def sum_lengths(self, broker: Broker) -> float:
        """A batch that looks at every value."""
        from pyspark.sql import functions as f

        rows = self._source(self._spark.read, broker, "load")
        began = time.perf_counter()
        found = rows.agg(f.count("*"), f.sum(f.length("value"))).collect()[0]
        took = time.perf_counter() - began
        if found[0] != self._records:
            raise WrongCount(f"{broker.name}: {found[0]} rows of {self._records} were read")
        return took

    def available_now(self, broker: Broker) -> float:
        """A stream over what is there."""
        rows = self._source(self._spark.readStream, broker, "load")
        return self._stream(rows.writeStream.format("noop"))

    def topic_to_topic(self, broker: Broker) -> float:
        """A stream from what is there into another topic."""
        self._runs += 1
        target = f"derived-{self._runs}"
        create(broker, target)
        rows = self._source(self._spark.readStream, broker, "load").select("key", "value")
        took = self._stream(sink(rows, broker, target))
        if (found := count(broker, target)) != self._records:
            raise WrongCount(f"{broker.name}: {found} rows of {self._records} were derived")
        return took

    def _source(self, reader: Any, broker: Broker, topic: str) -> Any:
        reader = reader.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()

    def _stream(self, writer: Any) -> float:
        self._runs += 1
        place = str(self._place / f"checkpoint-{self._runs}")
        began = time.perf_counter()
        query = writer.option("checkpointLocation", place).trigger(availableNow=True).start()
        query.awaitTermination()
        took = time.perf_counter() - began
        rows = sum(one["numInputRows"] for one in query.recentProgress)
        if rows != self._records:
            raise WrongCount(f"{rows} rows of {self._records} were streamed")
        return took


def sink(rows: Any, broker: Broker, topic: str) -> Any:
    """Rows to a topic, with the connector's own settings."""
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    return writer.option("topic", topic)


def throughput(jobs: Jobs, peers: list[Broker], records: int, repeat: int) -> list[list[str]]:
    """A row of the table for each job: rows/s of both and the ratio."""
    rows = []
    for name, job in (
        ("batch read to noop", jobs.read),
        ("batch sum(length(value))", jobs.sum_lengths),
        ("stream AvailableNow to noop", jobs.available_now),
        ("stream topic to topic", jobs.topic_to_topic),
    ):
        rates = alternate(peers, lambda peer, job=job: records / job(peer), repeat)
        rows.append([name, *compared(rates), "≥ 1.0"])
        print(*rows[-1], sep="  ", flush=True)
    return rows


def alternate(
    peers: list[Broker],
    measure: Callable[[Broker], float],
    repeat: int,
    warm: int = WARM_ROUNDS["throughput"],
) -> list[list[float]]:
    """`warm` rounds that do not count, then `repeat` rounds; each begins with another peer."""
    values: list[list[float]] = [[] for _ in peers]
    for round_ in range(warm + repeat):
        order = list(range(len(peers)))
        for at in order if round_ % 2 else reversed(order):
            value = measure(peers[at])
            if round_ >= warm:
                values[at].append(value)
    return values


def compared(values: list[list[float]]) -> list[str]:
    """Both as text and the ratio of their medians."""
    return [tables.spread(values[0]), tables.spread(values[1]), tables.ratio(*values)]


def latency(spark: Any, place: Path, peers: list[Broker], seconds: float, repeat: int) -> list[Any]:
    """Rows of the table: ms from creation to reading the derived record, at fixed rates."""
    rows = []
    warm = WARM_ROUNDS["latency"]
    for rate in RATES:
        found: dict[str, list[tuple[float, float]]] = {peer.name: [] for peer in peers}
        runs = iter(range(1000))

        def measure(peer: Broker, rate: int = rate, found: Any = found, runs: Any = runs) -> float:
            name = f"latency-{rate}-{next(runs)}"
            found[peer.name].append(one_latency(spark, place, peer, name, rate, seconds))
            return 0.0

        alternate(peers, measure, repeat, warm)
        for at, quantile in enumerate(("p50", "p99")):
            values = [[run[at] for run in found[peer.name][warm:]] for peer in peers]
            rows.append(
                [f"topic to topic, {rate:,} records/s, {quantile} ms", *compared(values), "≤ 1.0"]
            )
            print(*rows[-1], sep="  ", flush=True)
    return rows


def one_latency(
    spark: Any, place: Path, broker: Broker, name: str, rate: int, seconds: float
) -> tuple[float, float]:
    """(p50, p99) in ms of one run. The first two seconds do not count."""
    source, target = f"{name}-in", f"{name}-out"
    create(broker, source, target)
    rows = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
        .select("key", "value")
    )  # fmt: skip
    query = sink(rows, broker, target).option("checkpointLocation", str(place / name)).start()
    ages: list[tuple[float, float]] = []
    total = int(rate * seconds)
    reader = threading.Thread(target=read_ages, args=(broker, target, total, ages))
    try:
        reader.start()
        write_at(broker, source, rate, total)
        reader.join(SETTLE_S + seconds)
    finally:
        query.stop()
        reader.join()
    if len(ages) != total:
        raise WrongCount(f"{broker.name}: {len(ages)} of {total} records came at {rate}/s")
    counted = sorted(age for sent, age in ages if sent > 2.0)
    quantiles = statistics.quantiles(counted, n=100)
    return quantiles[49], quantiles[98]


def write_at(broker: Broker, topic: str, rate: int, total: int) -> None:
    """Open loop: each record carries the time at which it was meant to be sent, µs."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1})
    began = time.time()
    for number in range(total):
        meant = began + number / rate
        while (wait := meant - time.time()) > 0:
            producer.poll(min(wait, 0.01))
        value = f"{number / rate:.6f} {meant * 1e6:.0f}".ljust(100)
        producer.produce(topic, value.encode(), partition=number % PARTITIONS)
    producer.flush(SETTLE_S)


def read_ages(broker: Broker, topic: str, total: int, out: list[tuple[float, float]]) -> None:
    """(seconds since the beginning, age in ms) of each derived record."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "bench", "fetch.wait.max.ms": 100}
    )
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    silent_since = time.monotonic()
    while len(out) < total and time.monotonic() - silent_since < SETTLE_S:
        for message in consumer.consume(1000, 0.1):
            now = time.time()
            sent, meant = message.value().split()
            out.append((float(sent), now * 1000 - float(meant) / 1000))
            silent_since = time.monotonic()
    consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--records", type=int, default=1_000_000, help="of 100 bytes")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=12, help="of each latency run")
    parser.add_argument("--durable", action="store_true", help="acknowledged means on disk")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    fetch()
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as temporary:
        place = Path(temporary)
        spark = session.start_session("local[2]", place / "spark")
        try:
            with brokers(place, durable=options.durable) as peers:
                rows = measure(spark, place, peers, options)
        finally:
            spark.stop()
    head = ("Spark's job", "penstock", "kafka", "ratio", "goal")
    print(f"\n{machine.state()}; medians (range)\n")
    print(tables.render(head, rows, markdown=options.markdown))


def measure(spark: Any, place: Path, peers: list[Broker], options: argparse.Namespace) -> list[Any]:
    """All rows of the table."""
    for peer in peers:
        create(peer, "load")
        fill(peer, "load", options.records, 100)
    jobs = Jobs(spark, place, options.records)
    rows = throughput(jobs, peers, options.records, options.repeat)
    rows += latency(spark, place, peers, options.seconds, options.repeat)
    memory = [[procstat.memory(peer.pid).pss / (1 << 20)] for peer in peers]
    rows.append(["memory of the broker afterwards, MiB", *compared(memory), "≤ 0.2"])
    return rows


if __name__ == "__main__":
    main()
