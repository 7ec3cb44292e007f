"""What is written and derived while processes are killed: a feed, readers, and what a batch over
the same records gives. Used by test_spark_exactly_once.py and test_spark_killed.py."""

import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

LIMIT_S = 120
PACE_S = 0.02
AT_ONCE = 5
PEOPLE = "abcde"
BEGIN = datetime(2013, 1, 1, tzinfo=UTC)
TICK = timedelta(seconds=2)


def event(number):
    return {
        "id": number,
        "who": PEOPLE[number * 7 % len(PEOPLE)],
        "at": (BEGIN + number * TICK).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def events(count):
    return [event(number) for number in range(count)]


class Feed:
    """Writes events at a steady pace, through every restart of the broker, until the end of the
    context."""

    def __init__(self, bootstrap, topic):
        self._bootstrap = bootstrap
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0,
             "reconnect.backoff.max.ms": 200, "log_level": 0, "log.connection.close": False}
        )  # fmt: skip
        self._acknowledged = threading.Semaphore(0)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(LIMIT_S) == 0

    def go_on(self, count):
        """Until so many more are acknowledged."""
        for _ in range(count):
            assert self._acknowledged.acquire(timeout=LIMIT_S), "the appliance takes nothing"

    def written(self):
        """Everything that is in the topic, in its order; each event once."""
        found = [value for _, value in derived(self._bootstrap, self._topic)]
        assert found == events(len(found))
        return found

    def _run(self):
        number = 0
        while not self._ends.is_set():
            for _ in range(AT_ONCE):
                value = json.dumps(event(number)).encode()
                self._producer.produce(self._topic, value, on_delivery=self._taken)
                number += 1
            self._producer.poll(0)
            self._ends.wait(PACE_S)

    def _taken(self, error, _):
        assert error is None, error
        self._acknowledged.release()


def derived(bootstrap, topic):
    """(key, value) of everything that a reader of committed records gets, by partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True,
         "isolation.level": "read_committed", "enable.auto.commit": False, "log_level": 0}
    )  # fmt: skip
    try:
        partitions = consumer.list_topics(topic, timeout=LIMIT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        found, left = {p: [] for p in partitions}, len(partitions)
        while left:
            message = consumer.poll(LIMIT_S)
            assert message is not None, f"{topic} does not end"
            if message.error() is None:
                key = None if message.key() is None else message.key().decode()
                found[message.partition()].append((key, json.loads(message.value())))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left -= 1
    finally:
        consumer.close()
    return [row for p in sorted(found) for row in found[p]]


def position(bootstrap, group, topic):
    """How far a group is in the one partition of a topic: what transactions have committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        (place,) = consumer.committed([TopicPartition(topic, 0)], timeout=LIMIT_S)
    finally:
        consumer.close()
    return max(0, place.offset)


def copies(rows, written):
    """What of rows is not `SELECT id, who`, each once; None when they are."""
    return differs(rows, [(one["who"], {"id": one["id"], "who": one["who"]}) for one in written])


def totals(rows, written):
    """The same of a count by who in update mode: every count of a key is there once, they grow, and
    the last ones are those of all events."""
    last = {}
    for key, row in rows:
        if row["n"] <= last.get(key, 0):
            return f"{key} comes with {row['n']} after {last[key]}"
        last[key] = row["n"]
    counted = Counter(one["who"] for one in written)
    return None if last == counted else f"{last} are not {counted}"


def minutes(rows, written):
    """The same of a count by minute and who in append mode: of the minutes that are over."""
    found = Counter((one["at"][:16], one["who"]) for one in written)
    over = written[-1]["at"][:16]
    return differs(
        [(key, {**row, "minute": row["minute"][:16]}) for key, row in rows],
        [
            (who, {"minute": minute, "who": who, "n": n})
            for (minute, who), n in found.items()
            if minute < over
        ],
    )


def differs(rows, expected):
    """Row for row, in any order; None when nothing does."""
    have, want = (
        Counter(json.dumps(row, sort_keys=True) for row in some) for some in (rows, expected)
    )
    if have == want:
        return None
    return f"too many: {dict(have - want)}, missing: {dict(want - have)}"
