"""All that a reader with READ_COMMITTED sees of a topic, by each of three libraries."""

import asyncio
import time

import aiokafka
import confluent_kafka as ck
import kafka
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.transactions.writers import QUIET

LIMIT_S = 120


def ends(bootstrap, topic, partitions, level=ck.IsolationLevel.READ_COMMITTED):
    """Partition → offset behind the last record that this isolation level may see."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = {ck.TopicPartition(topic, at): OffsetSpec.latest() for at in range(partitions)}
    told = admin.list_offsets(asked, isolation_level=level, request_timeout=LIMIT_S)
    return {place.partition: made.result(LIMIT_S).offset for place, made in told.items()}


def committed(bootstrap, group, topic, partitions):
    """Partition → offset that the group goes on from; asks until no transaction is open on it."""
    client = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    places = [ck.TopicPartition(topic, at) for at in range(partitions)]
    found = {one.partition: max(0, one.offset) for one in client.committed(places, LIMIT_S)}
    client.close()
    return found


def all_ended(bootstrap, topic, partitions):
    """Wait until no transaction is open in the topic, and return its ends."""
    end = time.monotonic() + LIMIT_S
    while True:
        last = ends(bootstrap, topic, partitions, ck.IsolationLevel.READ_UNCOMMITTED)
        stable = ends(bootstrap, topic, partitions)
        if stable == last:
            return last
        assert time.monotonic() < end, f"transactions stay open: {stable} of {last}"
        time.sleep(0.05)


def confluent(bootstrap, topic, partitions):
    client = ck.Consumer({
        "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
        "auto.offset.reset": "error", "isolation.level": "read_committed",
        "enable.partition.eof": True, "log_level": 0,
    })  # fmt: skip
    client.assign([ck.TopicPartition(topic, at, 0) for at in range(partitions)])
    found, open_ones, end = [], set(range(partitions)), time.monotonic() + LIMIT_S
    while open_ones:
        assert time.monotonic() < end, f"partitions {open_ones} do not end"
        for message in client.consume(1000, 1):
            if message.error():
                assert message.error().code() == ck.KafkaError._PARTITION_EOF, message.error()
                open_ones.discard(message.partition())
            else:
                found.append((message.partition(), message.offset(), message.value()))
    client.close()
    return sorted(found)


def kafka_python(bootstrap, topic, partitions):
    client = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, isolation_level="read_committed",
        auto_offset_reset="earliest",
    )  # fmt: skip
    places = [kafka.TopicPartition(topic, at) for at in range(partitions)]
    client.assign(places)
    wanted = client.end_offsets(places)
    client.seek_to_beginning()
    found, end = [], time.monotonic() + LIMIT_S
    while any(client.position(place) < wanted[place] for place in places):
        assert time.monotonic() < end, "the reader stands still"
        for got in client.poll(200).values():
            found += [(one.partition, one.offset, one.value) for one in got]
    client.close()
    return sorted(found)


def aio(bootstrap, topic, partitions):
    async def read():
        client = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed",
            auto_offset_reset="earliest",
        )  # fmt: skip
        await client.start()
        places = [aiokafka.TopicPartition(topic, at) for at in range(partitions)]
        client.assign(places)
        wanted, found = await client.end_offsets(places), []
        while any([await client.position(place) < wanted[place] for place in places]):
            for got in (await client.getmany(timeout_ms=200)).values():
                found += [(one.partition, one.offset, one.value) for one in got]
        await client.stop()
        return sorted(found)

    return asyncio.run(asyncio.wait_for(read(), LIMIT_S))


READERS = (confluent, kafka_python, aio)


def by_everybody(bootstrap, topic, partitions):
    """(partition, offset, value) of all that is committed; each library sees the same."""
    all_ended(bootstrap, topic, partitions)
    seen = [read(bootstrap, topic, partitions) for read in READERS]
    for reader, rows in zip(READERS, seen, strict=True):
        assert rows == seen[0], f"{reader.__name__} sees something else"
    return seen[0]
