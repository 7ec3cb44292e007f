"""aiokafka in groups: old versions of every API, asyncio."""

import asyncio

import aiokafka
import pytest
from aiokafka import TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient

LIMIT_S = 60


def run(test):
    """Run a coroutine to its end, bounded."""
    return asyncio.run(asyncio.wait_for(test, LIMIT_S))


def consumer(bootstrap, group, topic, **settings):
    options = {
        "auto_offset_reset": "earliest", "enable_auto_commit": False, "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 200, "retry_backoff_ms": 20, **settings,
    }  # fmt: skip
    return aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, **options)


async def until(check):
    """The clients work by themselves: look again each time that they have had a turn."""
    while not check():
        await asyncio.sleep(0.01)


def shared(clients, partitions):
    owned = sorted(place.partition for client in clients for place in client.assignment())
    return owned == list(range(partitions)) and all(client.assignment() for client in clients)


def test_a_successor_goes_on_where_the_first_one_committed(bootstrap, group, filled):
    topic = filled(1, 10)

    async def test():
        async with consumer(bootstrap, group, topic) as first:
            for _ in range(10):
                await first.getone()
            await first.commit({TopicPartition(topic, 0): (4, "a note")})
        async with consumer(bootstrap, group, topic) as second:
            got = [(await second.getone()).offset for _ in range(6)]
            assert got == list(range(4, 10))
            assert await second.committed(TopicPartition(topic, 0)) == 4

    run(test())


def test_members_come_and_go(bootstrap, group, filled):
    topic = filled(4, 1)

    async def test():
        async with consumer(bootstrap, group, topic) as first:
            await until(lambda: shared([first], 4))
            async with consumer(bootstrap, group, topic) as second:
                await until(lambda: shared([first, second], 4))
            await until(lambda: shared([first], 4))

    run(test())


def test_a_static_member_comes_back(bootstrap, group, filled):
    topic = filled(2, 1)

    async def test():
        for _ in range(2):
            async with consumer(bootstrap, group, topic, group_instance_id="one") as client:
                await until(lambda client=client: shared([client], 2))

    run(test())


def test_a_commit_without_membership_is_refused(bootstrap, group, filled):
    topic = filled(1, 3)

    async def test():
        async with consumer(bootstrap, group, topic) as member:
            await until(lambda: shared([member], 1))
            stranger = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
            await stranger.start()
            stranger.assign([TopicPartition(topic, 0)])
            with pytest.raises(errors.CommitFailedError):
                await stranger.commit({TopicPartition(topic, 0): 1})
            await stranger.stop()

    run(test())


def test_what_the_admin_sees(bootstrap, group, filled):
    topic = filled(1, 3)

    async def test():
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            async with consumer(bootstrap, group, topic) as member:
                await member.getone()
                await member.commit()
                (answer,) = await admin.describe_consumer_groups([group])
                described = answer.to_object()["groups"][0]
                assert (described["group"], described["state"]) == (group, "Stable")
                assert group in [name for name, _ in await admin.list_consumer_groups()]
            offsets = await admin.list_consumer_group_offsets(group)
            assert offsets[TopicPartition(topic, 0)].offset == 1
        finally:
            await admin.close()

    run(test())
