"""Stock clients that go on while an appliance ends and another version of it begins."""

import threading
import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

SOME = 200
AWAY = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
"""What librdkafka calls a broker that cannot be reached; it tries again for ever."""


def patient(bootstrap, told):
    """Settings of a client: where, how often it tries again, and that it tells of problems."""
    return {
        "bootstrap.servers": bootstrap, "error_cb": told.append, "log_level": 0,
        "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20,
    }  # fmt: skip


def hopeless(told):
    """Those of the problems after which a client would not try again by itself."""
    return [str(one) for one in told if one.fatal() or not (one.retriable() or one.code() in AWAY)]


class Load(threading.Thread):
    """Numbers, in order, by one idempotent producer, until told to end."""

    def __init__(self, bootstrap, topic="kept"):
        super().__init__()
        self._topic = topic
        self.told = []
        self._producer = Producer({
            **patient(bootstrap, self.told), "enable.idempotence": True, "linger.ms": 0,
        })  # fmt: skip
        self.sent = 0
        self.failed = []
        self.acknowledged = []
        self._ending = threading.Event()
        self._heard = threading.Condition()

    def run(self):
        while not self._ending.is_set():
            self._producer.produce(self._topic, b"%d" % self.sent, b"key", on_delivery=self._hear)
            self.sent += 1
            self._producer.poll(0.002)
        self._producer.flush(60)

    def _hear(self, problem, _):
        with self._heard:
            if problem is not None:
                self.failed.append(str(problem))
            self.acknowledged.append(time.monotonic())
            self._heard.notify_all()

    def go_on(self):
        """Until so many more are acknowledged."""
        with self._heard:
            goal = len(self.acknowledged) + SOME
            assert self._heard.wait_for(lambda: len(self.acknowledged) >= goal, 60)

    def end(self):
        self._ending.set()
        self.join()

    def longest_silence_s(self):
        pairs = zip(self.acknowledged, self.acknowledged[1:], strict=False)
        return max(after - before for before, after in pairs)


class Readers(threading.Thread):
    """A consumer in a group, which reads until it is told to end."""

    def __init__(self, bootstrap, topic):
        super().__init__()
        self.told, self.found = [], []
        self._consumer = Consumer({
            **patient(bootstrap, self.told), "group.id": "readers",
            "auto.offset.reset": "earliest", "auto.commit.interval.ms": 100,
        })  # fmt: skip
        self._consumer.subscribe([topic])
        self._ending = threading.Event()
        self._heard = threading.Condition()

    def run(self):
        while not self._ending.is_set():
            message = self._consumer.poll(0.05)
            if message is None:
                continue
            with self._heard:
                if message.error():
                    self.told.append(message.error())
                else:
                    self.found.append(message.value())
                self._heard.notify_all()
        self._consumer.close()

    def wait_for(self, count):
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.found) >= count, 60), len(self.found)

    def end(self):
        self._ending.set()
        self.join()


def read(bootstrap, topic, group=None):
    """Every visible value, or those behind what the group has committed."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group or "none",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "enable.partition.eof": True,
        "isolation.level": "read_committed",
    })  # fmt: skip
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    places = [TopicPartition(topic, one) for one in partitions]
    if group:
        places = consumer.committed(places, 10)
    else:
        places = [TopicPartition(topic, one.partition, 0) for one in places]
    consumer.assign(places)
    found, ended = [], set()
    while len(ended) < len(partitions):
        message = consumer.poll(10)
        assert message is not None, f"{topic} does not end"
        if message.error():
            ended.add(message.partition())
        else:
            found.append(message.value())
    consumer.close()
    return found
