"""kafka-python 3: idempotent by default, fetch sessions, its own codecs, its own admin client."""

import time
import uuid

import kafka
import kafka.errors as errors
import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, OffsetSpec
from waiting import until

LIMIT_S = 60
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def producer(bootstrap):
    made = []

    def make(**settings):
        made.append(kafka.KafkaProducer(bootstrap_servers=bootstrap, **settings))
        return made[-1]

    yield make
    for client in made:
        client.close(timeout=LIMIT_S)


@pytest.fixture
def consumer(bootstrap):
    made = []

    def make(*partitions, **settings):
        client = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest", **settings
        )
        made.append(client)
        client.assign(list(partitions))
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def admin(bootstrap):
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def take(client, count):
    got, end = [], time.monotonic() + LIMIT_S
    while len(got) < count and time.monotonic() < end:
        for records in client.poll(timeout_ms=1000).values():
            got += records
    assert len(got) == count
    return got


@pytest.mark.parametrize("codec", CODECS)
def test_every_part_of_a_record_comes_back(producer, consumer, topic, codec):
    client, begun = producer(compression_type=codec, linger_ms=20), int(time.time() * 1000) - 10_000
    sent = [
        (
            None
            if i % 3 == 0
            else b"key %d" % i,  # this client refuses a null key with a null value
            None if i % 3 == 1 else b"value %d " % i * 20,
            begun + i,
            [("h", b"%d" % i), ("empty", b"")],
        )
        for i in range(300)
    ]
    futures = [
        client.send(topic, key=key, value=value, timestamp_ms=stamp, headers=headers)
        for key, value, stamp, headers in sent
    ]
    assert [future.get(LIMIT_S).offset for future in futures] == list(range(300))
    got = take(consumer(TopicPartition(topic, 0)), 300)
    assert [(r.key, r.value, r.timestamp, list(r.headers)) for r in got] == sent
    assert [r.offset for r in got] == list(range(300))


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(producer, consumer, topic, acks):
    client = producer(acks=acks, enable_idempotence=False)
    for i in range(100):
        client.send(topic, b"%d" % i)
    client.flush(LIMIT_S)
    assert [r.value for r in take(consumer(TopicPartition(topic, 0)), 100)] == [
        b"%d" % i for i in range(100)
    ]


def test_a_record_that_is_too_large(producer, new_topic):
    topic, client = new_topic(max_message_bytes="10000"), producer(max_request_size=5_000_000)
    client.send(topic, b"x" * 9_900).get(LIMIT_S)
    with pytest.raises(errors.MessageSizeTooLargeError):
        client.send(topic, b"x" * 10_000).get(LIMIT_S)


def test_seeking(producer, consumer, topic):
    client, begun, place = producer(), int(time.time() * 1000) - 3_600_000, TopicPartition(topic, 0)
    for i in range(50):
        client.send(topic, b"%d" % i, timestamp_ms=begun + 1000 * i)
    client.flush(LIMIT_S)
    reader = consumer(place)
    assert reader.beginning_offsets([place]) == {place: 0}
    assert reader.end_offsets([place]) == {place: 50}
    found = reader.offsets_for_times({place: begun + 30_000 - 1})[place]
    assert (found.offset, found.timestamp) == (30, begun + 30_000)
    reader.seek(place, 42)
    assert take(reader, 8)[0].value == b"42"
    reader.seek_to_beginning(place)
    assert take(reader, 50)[0].value == b"0"
    reader.seek_to_end(place)
    assert reader.position(place) == 50


def test_a_parked_fetch_is_answered_by_a_later_record(producer, consumer, topic):
    reader = consumer(TopicPartition(topic, 0), fetch_max_wait_ms=10_000)
    assert reader.poll(timeout_ms=200) == {}
    producer().send(topic, b"later").get(LIMIT_S)
    assert take(reader, 1)[0].value == b"later"


def test_fetch_sessions_over_many_partitions(producer, consumer, new_topic):
    topics = [new_topic(3) for _ in range(5)]
    places = [TopicPartition(topic, i) for topic in topics for i in range(3)]
    reader, client = consumer(*places), producer()
    for turn in range(4):
        for place in places:
            client.send(place.topic, b"%d" % turn, partition=place.partition)
        client.flush(LIMIT_S)
        got = take(reader, len(places))
        assert {TopicPartition(r.topic, r.partition) for r in got} == set(places)
        assert {r.value for r in got} == {b"%d" % turn}


def test_one_partition_leaves_a_session(producer, consumer, new_topic):
    topic = new_topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    reader, client = consumer(first, second), producer()
    client.send(topic, b"a", partition=0)
    client.send(topic, b"b", partition=1)
    client.flush(LIMIT_S)
    assert len(take(reader, 2)) == 2
    reader.pause(first)
    client.send(topic, b"c", partition=0)
    client.send(topic, b"d", partition=1)
    client.flush(LIMIT_S)
    assert [r.value for r in take(reader, 1)] == [b"d"]
    reader.resume(first)
    assert [r.value for r in take(reader, 1)] == [b"c"]


def test_topics(admin, fresh):
    name = fresh()
    wanted = {name: {"num_partitions": 2, "configs": {"retention.ms": "77"}}}
    admin.create_topics(wanted, wait_for_metadata=True)
    assert name in admin.list_topics()
    (found,) = admin.describe_topics([name])
    assert len(found["partitions"]) == 2
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics({name: {"num_partitions": 2}})
    admin.create_partitions({name: 5})
    until(lambda: len(admin.describe_topics([name])[0]["partitions"]) == 5)
    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_partitions({name: 5})
    admin.delete_topics([name])
    until(lambda: name not in admin.list_topics())
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics([name])


def test_a_topic_is_deleted_by_its_id(admin, fresh):
    name = fresh()
    admin.create_topics({name: {"num_partitions": 1}}, wait_for_metadata=True)
    admin.delete_topics([uuid.UUID(str(admin.describe_topics([name])[0]["topic_id"]))])
    until(lambda: name not in admin.list_topics())


def test_paged_topic_partitions(admin, new_topic):
    names = sorted(new_topic(3) for _ in range(3))
    seen, cursor = [], None
    while True:
        page = admin.describe_topic_partitions(names, response_partition_limit=2, cursor=cursor)
        for found in page["topics"]:
            seen += [(found["name"], p["partition_index"]) for p in found["partitions"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert seen == [(name, i) for name in names for i in range(3)]


@pytest.mark.parametrize("incremental", [True, False])
def test_configs(admin, topic, incremental):
    def now():
        answer = admin.describe_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all"
        )
        return answer["topic"][topic]["retention.ms"]["value"]

    assert now() == "604800000"
    change = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "5555"})
    admin.alter_configs([change], incremental=incremental)
    until(lambda: now() == "5555")
    admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None})])
    until(lambda: now() == "604800000")


def test_records_are_deleted_and_offsets_listed(admin, producer, topic):
    client, place = producer(), TopicPartition(topic, 0)
    for i in range(20):
        client.send(topic, b"x", timestamp_ms=1_700_000_000_000 + (i * 7) % 20)
    client.flush(LIMIT_S)
    assert admin.delete_records({place: 5})[place]["low_watermark"] == 5

    def listed(spec):
        return admin.list_partition_offsets({place: spec})[place].offset

    assert listed(OffsetSpec.EARLIEST) == 5
    assert listed(OffsetSpec.LATEST) == 20
    assert listed(OffsetSpec.MAX_TIMESTAMP) == 17
    assert listed(OffsetSpec.EARLIEST_LOCAL) == 5


def test_cluster_quorum_features_and_folders(admin, producer, topic):
    producer().send(topic, b"x" * 1000).get(LIMIT_S)
    cluster = admin.describe_cluster()
    assert len(cluster["brokers"]) == 1
    (quorum,) = admin.describe_metadata_quorum()["topics"]
    partition = quorum["partitions"][0]
    assert partition["leader_id"] == cluster["brokers"][0]["broker_id"]
    assert partition["high_watermark"] > 0
    (logs,) = admin.describe_log_dirs([topic])
    finalized = admin.describe_features()["metadata.version"]["finalized"]
    assert finalized[0] == finalized[1] > 0
    (folder,) = logs["log_dirs"]
    assert folder["error_code"] == 0
    assert folder["topics"][0]["partitions"][0]["partition_size"] > 1000
