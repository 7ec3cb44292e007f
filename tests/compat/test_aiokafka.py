"""aiokafka: old versions of every API, asyncio, its own admin client."""

import asyncio
import time

import aiokafka
import pytest
from aiokafka import TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

LIMIT_S = 60
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


def run(test):
    """Run a coroutine to its end, bounded."""
    return asyncio.run(asyncio.wait_for(test, LIMIT_S))


async def sent(bootstrap, topic, messages, **settings):
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        futures = [await producer.send(topic, **message) for message in messages]
        return [await future for future in futures]


class Reader:
    """A consumer that is told its partitions."""

    def __init__(self, bootstrap, *places, **settings):
        self.client = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings
        )
        self.places = places

    async def __aenter__(self):
        await self.client.start()
        self.client.assign(list(self.places))
        return self.client

    async def __aexit__(self, *_):
        await self.client.stop()


async def take(client, count):
    return [await client.getone() for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
def test_every_part_of_a_record_comes_back(bootstrap, topic, codec):
    begun = int(time.time() * 1000) - 10_000
    messages = [
        {
            "key": None if i % 3 == 0 else b"key %d" % i,
            "value": None if i % 3 == 1 else b"value %d " % i * 20,
            "timestamp_ms": begun + i,
            "headers": [("h", b"%d" % i), ("empty", b"")],
        }
        for i in range(300)
    ]

    async def test():
        done = await sent(bootstrap, topic, messages, compression_type=codec, linger_ms=20)
        assert [r.offset for r in done] == list(range(300))
        async with Reader(bootstrap, TopicPartition(topic, 0)) as reader:
            return await take(reader, 300)

    for i, (got, was) in enumerate(zip(run(test()), messages, strict=True)):
        assert (got.offset, got.key, got.value) == (i, was["key"], was["value"])
        assert (got.timestamp, list(got.headers)) == (was["timestamp_ms"], was["headers"])


@pytest.mark.parametrize("settings", [
    {"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True},
])  # fmt: skip
def test_acks_and_idempotence(bootstrap, topic, settings):
    async def test():
        await sent(bootstrap, topic, [{"value": b"%d" % i} for i in range(500)], **settings)
        async with Reader(bootstrap, TopicPartition(topic, 0)) as reader:
            return [r.value for r in await take(reader, 500)]

    assert run(test()) == [b"%d" % i for i in range(500)]


def test_a_record_that_is_too_large(bootstrap, new_topic):
    topic = new_topic(max_message_bytes="10000")
    with pytest.raises(errors.MessageSizeTooLargeError):
        run(sent(bootstrap, topic, [{"value": b"x" * 10_000}]))


def test_seeking(bootstrap, topic):
    begun, place = int(time.time() * 1000) - 3_600_000, TopicPartition(topic, 0)
    messages = [{"value": b"%d" % i, "timestamp_ms": begun + 1000 * i} for i in range(50)]

    async def test():
        await sent(bootstrap, topic, messages)
        async with Reader(bootstrap, place) as reader:
            assert await reader.beginning_offsets([place]) == {place: 0}
            assert await reader.end_offsets([place]) == {place: 50}
            found = await reader.offsets_for_times({place: begun + 30_000 - 1})
            assert (found[place].offset, found[place].timestamp) == (30, begun + 30_000)
            reader.seek(place, 42)
            assert (await reader.getone()).value == b"42"
            await reader.seek_to_end(place)
            assert await reader.position(place) == 50

    run(test())


def test_a_parked_fetch_is_answered_by_a_later_record(bootstrap, topic):
    async def test():
        async with Reader(bootstrap, TopicPartition(topic, 0), fetch_max_wait_ms=10_000) as reader:
            waiting = asyncio.ensure_future(reader.getone())
            await sent(bootstrap, topic, [{"value": b"later"}])
            return (await waiting).value

    assert run(test()) == b"later"


def test_a_topic_is_made_when_first_written(bootstrap, fresh):
    name = fresh("auto")

    async def test():
        await sent(bootstrap, name, [{"value": b"x"}])
        async with Reader(bootstrap, TopicPartition(name, 0)) as reader:
            return (await reader.getone()).value

    assert run(test()) == b"x"


def test_admin(bootstrap, fresh):
    name = fresh()

    async def test():
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await create_describe_and_delete(admin, bootstrap, name)
        finally:
            await admin.close()

    run(test())


async def create_describe_and_delete(admin, bootstrap, name):
    created = await admin.create_topics(
        [NewTopic(name, 2, 1, topic_configs={"retention.ms": "77"})]
    )
    assert created.topic_errors[0][1] == 0
    assert (await admin.create_topics([NewTopic(name, 2, 1)])).topic_errors[0][1] == 36
    assert name in await admin.list_topics()
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    (described,) = await admin.describe_configs([resource])
    values = {entry[0]: entry[1] for entry in described.resources[0][4]}
    assert values["retention.ms"] == "77"
    change = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "78"})
    (altered,) = await admin.alter_configs([change])
    assert altered.resources[0][0] == 0
    await admin.create_partitions({name: NewPartitions(3)})
    (found,) = await admin.describe_topics([name])
    assert len(found["partitions"]) == 3
    await sent(bootstrap, name, [{"value": b"x", "partition": 2}] * 10)
    place = TopicPartition(name, 2)
    deleted = await admin.delete_records({place: RecordsToDelete(before_offset=4)})
    assert deleted[place] == 4
    cluster = await admin.describe_cluster()
    assert len(cluster["brokers"]) == 1
    assert (await admin.delete_topics([name])).topic_error_codes[0][1] == 0
