"""Consume, transform, produce: copiers of each library, each with a group and an output of its own.

The offsets of a chunk are committed in the transaction that writes it. Whatever dies meanwhile: an
output holds, in order and once, what its input holds below the committed offset.
"""

import threading

import confluent_kafka as ck

from tests.transactions.reading import LIMIT_S, by_everybody, committed
from tests.transactions.writers import LIBRARIES, QUIET, Owner

PARTITIONS = 2
CHUNK = 10
PACE_S = 0.005
"""Between two chunks, so that the input lasts as long as a test does."""


def value(partition, number):
    return b"%d-%d" % (partition, number)


def fill(bootstrap, topic, count):
    """The input: so many records in each partition."""
    producer = ck.Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(count):
        for partition in range(PARTITIONS):
            producer.produce(topic, value(partition, number), partition=partition)
        producer.poll(0)
    assert producer.flush(LIMIT_S) == 0


class Copier(threading.Thread):
    """Copies from `source` into `sink` as a group of the same name."""

    def __init__(self, library, bootstrap, source, sink):
        super().__init__(daemon=True)
        self.bootstrap = bootstrap
        self.source = source
        self.sink = sink
        self.owner = Owner(library, bootstrap, f"{sink}-copier")
        self.ending, self.hopeless = threading.Event(), threading.Event()
        self.changed = threading.Condition()
        self.chunks = 0

    def run(self):
        try:
            while not self.ending.is_set():
                if self.owner.ready() is not None:
                    self._copy()
            while self.owner.ready() is None and not self.hopeless.is_set():
                pass  # nothing of it stays open
        finally:
            self.owner.drop()

    def consumer(self):
        return ck.Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": self.sink,
            "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "isolation.level": "read_committed", "fetch.wait.max.ms": 20, **QUIET,
        })  # fmt: skip

    def positions(self):
        """Partition → offset to go on from."""
        return committed(self.bootstrap, self.sink, self.source, PARTITIONS)

    def _copy(self):
        """Chunk by chunk from where the group is, until something fails or it is told to end."""
        client = self.consumer()
        try:
            places = self.positions().items()
            client.assign([ck.TopicPartition(self.source, *place) for place in places])
            while not self.ending.is_set():
                got = [one for one in client.consume(CHUNK, 0.2) if not one.error()]
                if got:
                    self._chunk(self.owner.writer, got)
                self.ending.wait(PACE_S)
        except (ck.KafkaException, *self.owner.library.failures) as error:
            self.owner.drop(error)
        finally:
            client.close()

    def _chunk(self, writer, got):
        writer.begin()
        for message in got:
            writer.send(self.sink, message.partition(), message.value())
        next_ones = {message.partition(): message.offset() + 1 for message in got}
        writer.offsets(self.sink, self.source, next_ones)
        writer.commit()
        with self.changed:
            self.chunks += 1
            self.changed.notify_all()


class Copiers:
    """One of each library. Use as a context manager. sinks: their outputs, made by the caller."""

    def __init__(self, bootstrap, source, sinks, libraries=LIBRARIES):
        self.bootstrap = bootstrap
        self.all = [
            Copier(library, bootstrap, source, sink)
            for library, sink in zip(libraries, sinks, strict=True)
        ]

    def __enter__(self):
        for one in self.all:
            one.start()
        return self

    def __exit__(self, *_):
        for one in self.all:
            one.ending.set()
            one.hopeless.set()
        for one in self.all:
            one.join(LIMIT_S)

    def go_on(self, chunks=5):
        """Wait until each has committed so many more."""
        wanted = [one.chunks + chunks for one in self.all]
        for one, enough in zip(self.all, wanted, strict=True):
            with one.changed:
                assert one.changed.wait_for(lambda one=one, enough=enough: one.chunks >= enough,
                                            LIMIT_S), (one.sink, one.owner.told[-3:])  # fmt: skip

    def finish(self):
        for one in self.all:
            one.ending.set()
        for one in self.all:
            one.join(LIMIT_S)
            assert not one.is_alive(), (one.sink, one.owner.told[-3:])

    def check(self):
        """How many records each has copied."""
        copied = []
        for one in self.all:
            found = by_everybody(self.bootstrap, one.sink, PARTITIONS)
            for partition, offset in one.positions().items():
                mine = [what for at, _, what in found if at == partition]
                wanted = [value(partition, number) for number in range(offset)]
                assert mine == wanted, f"{one.sink}-{partition}: {differing(mine, wanted)}"
            copied.append(len(found))
        return copied


def differing(mine, wanted):
    """In few words."""
    lost, more = set(wanted) - set(mine), set(mine) - set(wanted)
    return (f"{len(mine)} of {len(wanted)}; lost {sorted(lost)[:5]}, more {sorted(more)[:5]},"
            f" {len(mine) - len(set(mine))} twice")  # fmt: skip
