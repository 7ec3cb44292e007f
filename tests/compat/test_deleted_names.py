"""A topic is deleted, and its name is used again by asking for it: whoever writes makes it anew, as
with Apache Kafka. A consumer that merely goes on polling does not, unlike there."""

import asyncio
import contextlib
import itertools
import subprocess
import threading

import aiokafka
import confluent_kafka
import kafka as kafka_python
import pytest
from confluent_kafka.admin import AdminClient, OffsetSpec

from benchmarks import kafka
from tests.broker_process import KAFKA
from tests.compat.conftest import LIMIT_S
from tests.compat.waiting import until

TOOLS = "org.apache.kafka.tools."
pytestmark = pytest.mark.timeout(180)


class Confluent:
    def __init__(self, bootstrap, **settings):
        self.producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **settings})

    def write(self, topic):
        told = []
        self.producer.produce(topic, b"v", on_delivery=lambda error, _: told.append(error))
        assert self.producer.flush(LIMIT_S) == 0
        assert told == [None]

    def close(self):
        pass


class KafkaPython:
    def __init__(self, bootstrap):
        self.producer = kafka_python.KafkaProducer(bootstrap_servers=bootstrap)

    def write(self, topic):
        self.producer.send(topic, b"v").get(LIMIT_S)

    def close(self):
        self.producer.close()


class AioKafka:
    def __init__(self, bootstrap):
        self.loop = asyncio.new_event_loop()
        self.producer = self.run(self.start(bootstrap))

    def run(self, work):
        return self.loop.run_until_complete(asyncio.wait_for(work, LIMIT_S))

    async def start(self, bootstrap):
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        return producer

    def write(self, topic):
        self.run(self.producer.send_and_wait(topic, b"v"))

    def close(self):
        self.run(self.producer.stop())
        self.loop.close()


class Java:
    """The console producer; it says nothing, so the topic is looked at."""

    def __init__(self, bootstrap):
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        words = kafka.java(TOOLS + "ConsoleProducer", "--bootstrap-server", bootstrap)
        self.words = [*words, "--sync", "--topic"]
        self.process = None

    def write(self, topic):
        if self.process is None:
            self.process = subprocess.Popen(
                [*self.words, topic], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        self.process.stdin.write(b"v\n")
        self.process.stdin.flush()
        until(lambda: topic in self.admin.list_topics(timeout=LIMIT_S).topics)
        place = confluent_kafka.TopicPartition(topic, 0)
        latest = {place: OffsetSpec.latest()}
        until(lambda: self.admin.list_offsets(latest)[place].result(LIMIT_S).offset == 1)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(LIMIT_S)


needs_java = pytest.mark.skipif(kafka.unavailable() is not None, reason=str(kafka.unavailable()))
WRITERS = {
    "confluent": Confluent,
    "confluent by name": lambda bootstrap: Confluent(bootstrap.replace("127.0.0.1", "localhost")),
    "confluent idempotent": lambda bootstrap: Confluent(bootstrap, **{"enable.idempotence": True}),
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
    "java": Java,
}


@pytest.fixture
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def delete(admin):
    return lambda topic: admin.delete_topics([topic])[topic].result(LIMIT_S)


@pytest.fixture
def there(admin):
    return lambda topic: topic in admin.list_topics(timeout=LIMIT_S).topics


@pytest.fixture
def use(bootstrap):
    """A function that makes a client, which is closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda make, *rest: stack.enter_context(contextlib.closing(make(bootstrap, *rest)))


_groups = (
    itertools.count()
)  # a group each: a member that commits for what is deleted holds up others


def named(clients):
    return [pytest.param(name, marks=needs_java if "java" in name else ()) for name in clients]


@pytest.mark.parametrize("client", named(WRITERS))
def test_who_writes_makes_it_again(use, delete, there, fresh, client):
    topic = fresh()
    old = use(WRITERS[client])
    old.write(topic)
    delete(topic)
    assert not there(topic)
    old.write(topic)
    delete(topic)
    use(WRITERS[client]).write(topic)
    assert there(topic)


class ConfluentReader:
    """Asks for what it reads to be created, which is not its default."""

    def __init__(self, bootstrap, topic, got):
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"of {topic}",
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": True,
                "topic.metadata.refresh.interval.ms": 300,
            }
        )
        self.consumer.subscribe([topic])
        self.got = got

    def poll(self):
        message = self.consumer.poll(0.1)
        if message is not None and message.error() is None:
            self.got.append(message.value())

    def end(self):
        self.consumer.close()


class KafkaPythonReader:
    """Without a group: 3.0.12 may forget what it is assigned by one whose topics come and go."""

    def __init__(self, bootstrap, topic, got):
        self.consumer = kafka_python.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            auto_offset_reset="earliest",
            metadata_max_age_ms=300,
        )
        self.consumer.assign([kafka_python.TopicPartition(topic, 0)])
        self.got = got

    def poll(self):
        for records in self.consumer.poll(100).values():
            self.got += [record.value for record in records]

    def end(self):
        self.consumer.close()


class AioKafkaReader:
    def __init__(self, bootstrap, topic, got):
        self.loop = asyncio.new_event_loop()
        self.consumer = self.loop.run_until_complete(self.start(bootstrap, topic))
        self.got = got

    async def start(self, bootstrap, topic):
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"{next(_groups)} of {topic}",
            auto_offset_reset="earliest",
            metadata_max_age_ms=300,
        )
        await consumer.start()
        return consumer

    def poll(self):
        found = self.loop.run_until_complete(self.consumer.getmany(timeout_ms=100))
        for records in found.values():
            self.got += [record.value for record in records]

    def end(self):
        self.loop.run_until_complete(self.consumer.stop())
        self.loop.close()


class Polling:
    """A reader in a thread of its own, until it is closed. got: the values it has read."""

    def __init__(self, bootstrap, reader, topic):
        self.got = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(reader, bootstrap, topic))
        self.thread.start()

    def run(self, reader, bootstrap, topic):
        one = reader(bootstrap, topic, self.got)
        while not self.over.is_set():
            one.poll()
        one.end()

    def close(self):
        self.over.set()
        self.thread.join()


class JavaReader:
    """The console consumer, with which nothing is done but start it and end it."""

    def __init__(self, bootstrap, topic, protocol):
        words = ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"]
        for setting in (f"group.protocol={protocol}", "metadata.max.age.ms=300"):
            words += ["--command-property", setting]
        self.process = subprocess.Popen(
            kafka.java(TOOLS + "consumer.ConsoleConsumer", *words),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.got = []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for line in self.process.stdout:
            self.got.append(line.strip())

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()


READERS = {
    "confluent": lambda at, topic: Polling(at, ConfluentReader, topic),
    "confluent by name": lambda at, topic: Polling(
        at.replace("127.0.0.1", "localhost"), ConfluentReader, topic
    ),
    "kafka-python": lambda at, topic: Polling(at, KafkaPythonReader, topic),
    "aiokafka": lambda at, topic: Polling(at, AioKafkaReader, topic),
    "java classic": lambda at, topic: JavaReader(at, topic, "classic"),
    "java consumer": lambda at, topic: JavaReader(at, topic, "consumer"),
}


@pytest.mark.skipif(KAFKA, reason="Apache Kafka creates what a consumer polls")
@pytest.mark.parametrize("client", named(READERS))
def test_who_goes_on_reading_does_not_make_it_again(broker, use, delete, there, fresh, client):
    topic = fresh()
    writer = use(Confluent)
    for _ in range(3):  # more than the next topic of this name will have: who stays is out of range
        writer.write(topic)
    reader = use(READERS[client], topic)
    until(lambda: len(reader.got) == 3)
    delete(topic)

    def refused():
        return broker.output().count(f'"{topic} was deleted and')

    until(lambda: refused() >= 2)
    assert not there(topic)
    writer.write(topic)
    until(lambda: len(reader.got) == 4)


def test_a_consumer_that_comes_afterwards_makes_it_again(use, delete, there, fresh):
    topic = fresh()
    use(Confluent).write(topic)
    before = use(READERS["kafka-python"], topic)
    until(lambda: before.got == [b"v"])
    delete(topic)
    assert not there(topic)
    after = use(READERS["kafka-python"], topic)
    until(lambda: there(topic))
    use(Confluent).write(topic)
    until(lambda: after.got == [b"v"])
