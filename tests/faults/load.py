"""Producers and a consumer that run while a broker suffers, and the reckoning afterwards.

Every value is unique. What was acknowledged is remembered with its offset; at the end the partition
is read from its beginning: each acknowledged value must be there once, at its offset, and nothing
twice.
"""

import ssl
import threading
import time
from collections import Counter

import confluent_kafka as ck

from benchmarks.peer import Peer

LIMIT_S = 60
# What a client may hear while a broker is away: it goes on by itself.
HARMLESS = {
    ck.KafkaError._TRANSPORT,
    ck.KafkaError._ALL_BROKERS_DOWN,
    ck.KafkaError._TIMED_OUT,
    ck.KafkaError._RESOLVE,
}


def is_there(place, told):
    """Whether a value lies where the producer was told. Of one whose answer it never heard, it may
    conclude from a later one that it was written: then the offset is None."""
    return place == told or (place is not None and told == (place[0], None))


class Load:
    """An idempotent producer with acks=all on its own thread and a consumer on another.

    Use as a context manager. `told` collects every error the clients were told; `unexpected` those
    that a client could not go on after. at_most: records that wait for their acknowledgement.
    pause_s: after each 20 records.
    """

    at_most = 20_000
    pause_s = 0.0

    def __init__(self, bootstrap, topic, partitions=1, value_bytes=100, settings=None):
        """settings: more of librdkafka's, for both."""
        self.settings = settings or {}
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.filler = b"." * value_bytes
        self.acknowledged = {}
        self.consumed = Counter()
        self.told = []
        self.failed = []
        self.changed = threading.Condition()
        self.ending = threading.Event()
        self.producer = ck.Producer({
            "bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True,
            "message.timeout.ms": LIMIT_S * 1000, "socket.timeout.ms": 10_000, "linger.ms": 1,
            "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20,
            "error_cb": self.told.append, "queue.buffering.max.messages": self.at_most,
            "log_level": 0, **self.settings,
        })  # fmt: skip
        self.consumer = self._consumer()
        self.threads = [
            threading.Thread(target=self._produce),
            threading.Thread(target=self._consume),
        ]

    def _consumer(self):
        client = ck.Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "unused", "enable.auto.commit": False,
            "auto.offset.reset": "error", "fetch.wait.max.ms": 100, "error_cb": self.told.append,
            "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 200, "log_level": 0,
            **self.settings,
        })  # fmt: skip
        client.assign([ck.TopicPartition(self.topic, i, 0) for i in range(self.partitions)])
        return client

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()
        self.consumer.close()

    def _produce(self):
        number = 0
        while not self.ending.is_set():
            try:
                value = b"%d" % number + self.filler
                self.producer.produce(
                    self.topic,
                    value,
                    partition=number % self.partitions,
                    on_delivery=self._delivered,
                )
                number += 1
                if number % 20 == 0:
                    self.producer.poll(0.001)
                    if self.pause_s:
                        self.ending.wait(self.pause_s)
            except BufferError:
                self.producer.poll(0.1)

    def _delivered(self, error, message):
        with self.changed:
            if error:
                self.failed.append(error)
            else:
                place = (message.partition(), message.offset())
                self.acknowledged[message.value()] = place
            self.changed.notify_all()

    def _consume(self):
        while not self.ending.is_set():
            for message in self.consumer.consume(500, 0.1):
                if message.error():
                    self.told.append(message.error())
                else:
                    self._took(message)

    def _took(self, message):
        self.consumed[(message.partition(), message.offset(), message.value())] += 1

    def go_on(self, count=200):
        """Wait until `count` more records are acknowledged. Returns the seconds it took."""
        begun = time.monotonic()
        with self.changed:
            wanted = len(self.acknowledged) + count
            assert self.changed.wait_for(
                lambda: self.failed or len(self.acknowledged) >= wanted, LIMIT_S
            ), f"nothing is acknowledged any more; the clients heard {self.told[-5:]}"
        assert not self.failed, self.failed[:5]
        return time.monotonic() - begun

    def finish(self):
        """Stop producing and let everything that is out be acknowledged."""
        self.ending.set()
        for thread in self.threads:
            thread.join()
        assert self.producer.flush(LIMIT_S) == 0
        assert not self.failed, self.failed[:5]

    def give_up(self):
        """Stop producing and forget what is out: the broker is gone for good."""
        self.ending.set()
        for thread in self.threads:
            thread.join()
        self.producer.purge()
        self.producer.flush(1)

    def settled(self):
        """What has been acknowledged by now."""
        with self.changed:
            return dict(self.acknowledged)

    def check_errors(self):
        """Only errors that a client goes on after by itself."""
        serious = [e for e in self.told if e.fatal() or not (e.retriable() or e.code() in HARMLESS)]
        assert not serious, serious[:5]

    def check_content(self, before=None):
        """Read from the beginning: nothing acknowledged is lost or doubled.

        before: what had been acknowledged when the power went; the log may hold more than that.
        Without it every record of the log was acknowledged.
        """
        acknowledged = self.acknowledged if before is None else before
        found = self.everything()
        values = Counter(found.values())
        assert not [value for value, count in values.items() if count > 1], "records are doubled"
        places = {value: place for place, value in found.items()}
        lost = {v: p for v, p in acknowledged.items() if not is_there(places.get(v), p)}
        assert not lost, f"{len(lost)} of {len(acknowledged)} lost: {list(lost.items())[:3]}"
        if before is None:
            assert len(found) == len(self.acknowledged)
        for partition in range(self.partitions):
            mine = [int(v.rstrip(b".")) for (p, _), v in sorted(found.items()) if p == partition]
            assert mine == sorted(mine), "records are out of order"
        if before is not None:
            return  # the reader may have seen what the cut then took: it was not acknowledged
        read_twice = [place for place, count in self.consumed.items() if count > 1]
        assert not read_twice, "the consumer saw a record twice"
        wrong = [k for k in self.consumed if found.get(k[:2]) != k[2]]
        assert not wrong, f"the consumer was given what is not there: {wrong[:3]}"

    def wait_served(self):
        """Until every partition has a leader that answers."""
        host, _, port = self.bootstrap.rpartition(":")
        Peer("broker", (host, int(port)), None, self._context()).wait_served(
            self.topic, self.partitions, LIMIT_S
        )

    def _context(self):
        """For a connection of our own, by librdkafka's settings; None: it is plain."""
        ca, shown = map(self.settings.get, ("ssl.ca.location", "ssl.certificate.location"))
        if ca is None:
            return None
        context = ssl.create_default_context(cafile=ca)
        if shown is not None:
            context.load_cert_chain(shown, self.settings["ssl.key.location"])
        return context

    def everything(self):
        """(partition, offset) → value of all there is."""
        self.wait_served()
        client, found = self._consumer(), {}
        try:
            ends = {}
            for i in range(self.partitions):
                _, ends[i] = client.get_watermark_offsets(ck.TopicPartition(self.topic, i), LIMIT_S)
            wanted, end = sum(ends.values()), time.monotonic() + LIMIT_S
            while len(found) < wanted and time.monotonic() < end:
                for message in client.consume(5000, 1):
                    assert not message.error(), message.error()
                    found[(message.partition(), message.offset())] = message.value()
            assert len(found) == wanted, f"{len(found)} of {wanted} records can be read"
        finally:
            client.close()
        return found
