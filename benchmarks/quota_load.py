"""One client of librdkafka for `benchmarks.quotas`, in a process of its own.

    python -m benchmarks.quota_load produce HOST:PORT TOPIC CLIENT_ID PER_SECOND [PER_BATCH]
    python -m benchmarks.quota_load consume HOST:PORT TOPIC CLIENT_ID

PER_SECOND and PER_BATCH count records; 0 a second is as fast as it goes.

It runs until it is ended. A consumer begins at the start and prints, every second, the bytes of
values that have come so far.
"""

import sys
import time
from typing import Final

import confluent_kafka as ck

RECORD: Final = 10_000
"""Bytes of a value: few records, so that the client costs little."""
_TURN_S: Final = 0.01


def produce(
    bootstrap: str, topic: str, client_id: str, per_second: float, batch: int = 10_000
) -> None:
    """At this pace, or as fast as it goes when it is 0. batch: records in one at most."""
    producer = ck.Producer({
        "bootstrap.servers": bootstrap, "client.id": client_id, "acks": 1, "linger.ms": 5,
        "queue.buffering.max.messages": 2000, "message.timeout.ms": 0,
        "batch.num.messages": batch,
    })  # fmt: skip
    value = b"x" * RECORD
    begun = time.monotonic()
    sent = 0
    while True:
        due = (time.monotonic() - begun) * per_second if per_second else sent + 1000
        try:
            while sent < due:
                producer.produce(topic, value)
                sent += 1
        except BufferError:
            pass
        producer.poll(_TURN_S)


def consume(bootstrap: str, topic: str, client_id: str) -> None:
    """From the beginning on."""
    consumer = ck.Consumer({
        "bootstrap.servers": bootstrap, "client.id": client_id, "group.id": client_id,
        "enable.auto.commit": False,
    })  # fmt: skip
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    begun = time.monotonic()
    said = size = 0
    while True:
        for message in consumer.consume(100, 0.05):
            if message.error() is None:
                size += len(message.value())
        if time.monotonic() - begun >= said + 1:
            said += 1
            print(size, flush=True)


if __name__ == "__main__":
    kind, server, name, who, *rest = sys.argv[1:]
    if kind == "produce":
        produce(server, name, who, *map(int, rest))
    else:
        consume(server, name, who)
