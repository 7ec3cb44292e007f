"""An open-loop latency client: records are due at fixed times, late ones count from when they were.

    python -m benchmarks.compare.openloop --broker HOST:PORT --topic T --rate 1000 --seconds 10

Two processes, one producer and one consumer (both librdkafka), share the monotonic clock. A record
carries its number and the time it was due; the consumer checks that each number came exactly once.
Prints one line of JSON: microseconds as HdrHistograms saw them. Rate 0: as fast as it can.
"""

import argparse
import json
import multiprocessing
import sys
import threading
import time
from array import array
from multiprocessing.connection import Connection
from struct import Struct

import confluent_kafka as ck
from hdrh.histogram import HdrHistogram

MARK = Struct("<qq")  # number, due (ns)
MOST_US = 600_000_000
LIMIT_S = 60.0
SWITCH_S = 0.0002
MOST_AT_ONCE = 200_000


def histogram(nanoseconds: array) -> dict[str, float]:
    """Percentiles in microseconds, at three significant figures."""
    seen = HdrHistogram(1, MOST_US, 3)
    for value in nanoseconds:
        seen.record_value(max(1, min(MOST_US, value // 1000)))
    return {
        "count": len(nanoseconds),
        "mean": seen.get_mean_value(),
        "p50": seen.get_value_at_percentile(50),
        "p99": seen.get_value_at_percentile(99),
        "p999": seen.get_value_at_percentile(99.9),
        "p9999": seen.get_value_at_percentile(99.99),
        "max": seen.get_max_value(),
    }


def consume(options: argparse.Namespace, talk: Connection) -> None:
    """Read until the producer has said how many there are and all came, or nothing comes."""
    sys.setswitchinterval(SWITCH_S)
    consumer = ck.Consumer({
        "bootstrap.servers": options.broker, "group.id": options.topic,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    consumer.assign([ck.TopicPartition(options.topic, i, 0) for i in range(options.partitions)])
    consumer.poll(0.5)
    talk.send("ready")
    took, numbers, due_counts = array("q"), array("q"), None
    quiet = time.monotonic()
    while due_counts is None or len(numbers) < due_counts:
        message = consumer.poll(0.2)
        if due_counts is None and (message is None or not len(numbers) % 64) and talk.poll():
            due_counts = talk.recv()
        if message is None or message.error():
            if time.monotonic() - quiet > LIMIT_S:
                break
            continue
        now = time.monotonic_ns()
        quiet = now / 1e9
        number, due = MARK.unpack_from(message.value())
        took.append(now - due)
        numbers.append(number)
    consumer.close()
    exact = due_counts is not None and sorted(numbers) == list(range(due_counts))
    talk.send((histogram(took[options.skip :]), exact, len(numbers)))


class Producing:
    """The producer's half: sends what is due, notes when each record was acknowledged."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.producer = ck.Producer({
            "bootstrap.servers": options.broker, "acks": options.acks,
            "linger.ms": options.linger, "enable.idempotence": options.acks == "all",
            "queue.buffering.max.messages": 1_000_000,
        })  # fmt: skip
        self.tail = bytes(33 + i % 90 for i in range(max(0, options.size - MARK.size)))
        self.took, self.late = array("q"), array("q")
        self.failed = 0
        self.over = threading.Event()

    def done(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is not None:
            self.failed += 1
            return
        self.took.append(time.monotonic_ns() - MARK.unpack_from(message.value())[1])

    def serve(self) -> None:
        while not self.over.is_set():
            self.producer.poll(0.1)

    def run(self) -> tuple[int, float]:
        """Returns records sent and the seconds it took until all were acknowledged."""
        server = threading.Thread(target=self.serve, daemon=True)
        server.start()
        rate, begun = self.options.rate, time.monotonic_ns()
        count = int(rate * self.options.seconds)
        sent = self._paced(count, begun, 1e9 / rate) if rate else self._flat_out(begun)
        self.producer.flush(LIMIT_S)
        passed = (time.monotonic_ns() - begun) / 1e9
        self.over.set()
        server.join()
        return sent, passed

    def _paced(self, count: int, begun: int, step: float) -> int:
        produce, clock, tail = self.producer.produce, time.monotonic_ns, self.tail
        topic, partitions, done = self.options.topic, self.options.partitions, self.done
        for number in range(count):
            due = begun + int(number * step)
            if (ahead := due - clock()) > 0:
                time.sleep(ahead / 1e9)
            self.late.append(clock() - due)
            produce(topic, MARK.pack(number, due) + tail, partition=number % partitions,
                    on_delivery=done)  # fmt: skip
        return count

    def _flat_out(self, begun: int) -> int:
        produce, clock, tail = self.producer.produce, time.monotonic_ns, self.tail
        topic, partitions, done = self.options.topic, self.options.partitions, self.done
        number, end = 0, begun + int(self.options.seconds * 1e9)
        while (now := clock()) < end:
            if number - len(self.took) > MOST_AT_ONCE:
                time.sleep(0.001)
                continue
            produce(topic, MARK.pack(number, now) + tail, partition=number % partitions,
                    on_delivery=done)  # fmt: skip
            number += 1
        return number


def run(options: argparse.Namespace) -> dict[str, object]:
    """Both halves, to the end."""
    sys.setswitchinterval(SWITCH_S)
    fresh = multiprocessing.get_context("spawn")
    talk, theirs = fresh.Pipe()
    reader = fresh.Process(target=consume, args=(options, theirs), daemon=True)
    reader.start()
    if not talk.poll(LIMIT_S):
        raise SystemExit("the consumer did not come up")
    talk.recv()
    half = Producing(options)
    for _ in range(3):
        half.producer.list_topics(options.topic, timeout=10)
    sent, passed = half.run()
    talk.send(sent)
    if not talk.poll(2 * LIMIT_S):
        raise SystemExit("the consumer did not end")
    through, exact, received = talk.recv()
    reader.join()
    if half.failed or not exact:
        raise SystemExit(f"{half.failed} of {sent} not acknowledged, {received} received, "
                         f"each once: {exact}")  # fmt: skip
    skip = options.skip
    return {
        "sent": sent, "seconds": passed, "records_s": sent / passed, "e2e": through,
        "ack": histogram(half.took[skip:]), "late": histogram(half.late[skip:]),
    }  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare.openloop",
                                     description=__doc__)  # fmt: skip
    parser.add_argument("--broker", required=True, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True, help="it exists and is empty")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1000, help="records/s; 0: flat out")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--skip", type=int, default=0, help="first records that do not count")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--acks", default="all", choices=("0", "1", "all"))
    parser.add_argument("--linger", type=float, default=0, help="ms")
    return parser.parse_args()


if __name__ == "__main__":
    print(json.dumps(run(parse())))
