"""librdkafka through confluent-kafka: it reads back what it produced, and it hears errors."""

import time

import confluent_kafka as ck
import pytest

from benchmarks import batches

LIMIT_S = 60
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def producer(bootstrap, **settings):
    return ck.Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000, **settings})


def send(bootstrap, topic, messages, **settings):
    """Produce all and return the delivered messages; the first error is raised."""
    client, done = producer(bootstrap, **settings), []

    def delivered(error, message):
        done.append(error or message)

    for message in messages:
        while True:
            try:
                client.produce(topic, on_delivery=delivered, **message)
                break
            except BufferError:
                client.poll(1)
    assert client.flush(LIMIT_S) == 0
    for result in done:
        if isinstance(result, ck.KafkaError):
            raise ck.KafkaException(result)
    return done


class Reader:
    """A consumer that is told its partitions and needs no group."""

    def __init__(self, bootstrap, *places, **settings):
        self.client = ck.Consumer({
            "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
            "auto.offset.reset": "error", **settings,
        })  # fmt: skip
        self.client.assign([ck.TopicPartition(*place) for place in places])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def take(self, count):
        """The next `count` messages, however they are spread over fetches."""
        got, end = [], time.monotonic() + LIMIT_S
        while len(got) < count and time.monotonic() < end:
            for message in self.client.consume(count - len(got), timeout=1):
                if message.error():
                    raise ck.KafkaException(message.error())
                got.append(message)
        assert len(got) == count, f"{len(got)} of {count} messages came"
        return got


@pytest.mark.parametrize("codec", CODECS)
def test_every_part_of_a_record_comes_back(bootstrap, topic, codec):
    begun = int(time.time() * 1000) - 100_000
    sent = [
        {
            "key": None if i % 3 == 0 else f"key {i}".encode(),
            "value": None if i % 5 == 0 else b"value %d " % i * 20,
            "timestamp": begun + i,
            "headers": [("h", b"%d" % i), ("h", None), ("empty", b""), ("ü", "ß".encode())],
        }
        for i in range(300)
    ]
    send(bootstrap, topic, sent, **{"compression.type": codec, "linger.ms": 20})
    with Reader(bootstrap, (topic, 0, 0)) as reader:
        got = reader.take(len(sent))
    for i, (message, was) in enumerate(zip(got, sent, strict=True)):
        assert message.offset() == i
        assert message.key() == was["key"]
        assert message.value() == was["value"]
        assert message.timestamp() == (ck.TIMESTAMP_CREATE_TIME, was["timestamp"])
        assert message.headers() == was["headers"]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(bootstrap, topic, acks):
    done = send(bootstrap, topic, [{"value": b"%d" % i} for i in range(100)], acks=acks)
    if acks != "0":
        assert [message.offset() for message in done] == list(range(100))
    with Reader(bootstrap, (topic, 0, 0)) as reader:
        assert [message.value() for message in reader.take(100)] == [b"%d" % i for i in range(100)]


def test_one_byte_to_the_limit_and_one_more(bootstrap, topic):
    limit = 1_048_588
    room = limit - len(batches.batch([b"x" * 1_000_000], 0)) + 1_000_000
    assert len(batches.batch([b"x" * room], 0)) == limit
    big = {"message.max.bytes": 2_000_000}
    send(bootstrap, topic, [{"value": b"y"}, {"value": b"x" * room}], **{"linger.ms": 0}, **big)
    with pytest.raises(ck.KafkaException) as told:
        send(bootstrap, topic, [{"value": b"x" * (room + 1)}], **big)
    assert told.value.args[0].code() == ck.KafkaError.MSG_SIZE_TOO_LARGE
    with Reader(bootstrap, (topic, 0, 0), **{"fetch.message.max.bytes": 1000}) as reader:
        assert [len(message.value()) for message in reader.take(2)] == [1, room]


def test_by_offset_by_time_and_from_the_end(bootstrap, topic):
    begun = int(time.time() * 1000) - 3_600_000
    send(bootstrap, topic, [{"value": b"%d" % i, "timestamp": begun + 1000 * i} for i in range(50)])
    with Reader(bootstrap, (topic, 0, 20)) as reader:
        assert reader.take(1)[0].value() == b"20"
        assert reader.client.get_watermark_offsets(ck.TopicPartition(topic, 0), LIMIT_S) == (0, 50)
        asked = [ck.TopicPartition(topic, 0, begun + 1000 * 30 - 1)]
        assert reader.client.offsets_for_times(asked, LIMIT_S)[0].offset == 30
        asked = [ck.TopicPartition(topic, 0, begun + 1000 * 50)]
        assert reader.client.offsets_for_times(asked, LIMIT_S)[0].offset == ck.OFFSET_END
    with Reader(bootstrap, (topic, 0, 45)) as tail:
        assert [message.value() for message in tail.take(5)] == [b"%d" % i for i in range(45, 50)]


def test_a_reader_at_the_end_gets_what_is_written_later(bootstrap, topic):
    send(bootstrap, topic, [{"value": b"old"}])
    long_poll = {"fetch.wait.max.ms": 3_000, "enable.partition.eof": True}
    with Reader(bootstrap, (topic, 0, ck.OFFSET_END), **long_poll) as reader:
        end = reader.client.poll(LIMIT_S)
        assert end.error().code() == ck.KafkaError._PARTITION_EOF
        send(bootstrap, topic, [{"value": b"new"}])
        message = reader.client.poll(LIMIT_S)
        assert message.error() is None
        assert (message.value(), message.offset()) == (b"new", 1)


def test_an_offset_that_is_not_there(bootstrap, topic):
    with Reader(bootstrap, (topic, 0, 77)) as reader, pytest.raises(ck.KafkaException) as told:
        reader.take(1)
    assert told.value.args[0].code() == ck.KafkaError._AUTO_OFFSET_RESET
    with Reader(bootstrap, (topic, 0, 77), **{"auto.offset.reset": "earliest"}) as reader:
        send(bootstrap, topic, [{"value": b"first"}])
        assert reader.take(1)[0].offset() == 0


def test_idempotent_producer_keeps_order(bootstrap, topic):
    settings = {"enable.idempotence": True, "batch.num.messages": 50, "linger.ms": 0}
    done = send(bootstrap, topic, [{"value": b"%d" % i} for i in range(5000)], **settings)
    assert [message.offset() for message in done] == list(range(5000))
    with Reader(bootstrap, (topic, 0, 0)) as reader:
        assert [int(message.value()) for message in reader.take(5000)] == list(range(5000))


def test_a_topic_is_made_when_first_written(bootstrap, fresh):
    name = fresh("auto")
    send(bootstrap, name, [{"value": b"x"}])
    with Reader(bootstrap, (name, 0, 0)) as reader:
        assert reader.take(1)[0].value() == b"x"


def test_a_reader_makes_no_topic(bootstrap, fresh):
    name = fresh()
    with Reader(bootstrap, (name, 0, 0)) as reader:
        found = reader.client.list_topics(name, timeout=LIMIT_S).topics[name]
        assert found.error.code() == ck.KafkaError.UNKNOWN_TOPIC_OR_PART
        assert name not in reader.client.list_topics(timeout=LIMIT_S).topics


def test_keys_choose_partitions_and_all_are_read(bootstrap, new_topic):
    topic = new_topic(6)
    sent = [{"key": b"%d" % (i % 40), "value": b"%d" % i} for i in range(2000)]
    done = send(bootstrap, topic, sent)
    place = {message.key(): message.partition() for message in done}
    assert all(place[message.key()] == message.partition() for message in done)
    assert len(set(place.values())) == 6
    with Reader(bootstrap, *((topic, i, 0) for i in range(6))) as reader:
        got = reader.take(2000)
    assert sorted(int(message.value()) for message in got) == list(range(2000))
    for i in range(6):
        mine = [int(message.value()) for message in got if message.partition() == i]
        assert mine == sorted(mine)


def test_many_topics_in_one_fetch(bootstrap, new_topic):
    topics = [new_topic(2) for _ in range(25)]
    client, failed = producer(bootstrap), []
    for topic in topics:
        for partition in (0, 1):
            client.produce(
                topic, topic.encode(), partition=partition,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )  # fmt: skip
    assert client.flush(LIMIT_S) == 0
    assert not failed
    with Reader(bootstrap, *((topic, i, 0) for topic in topics for i in (0, 1))) as reader:
        got = reader.take(50)
    assert {(m.topic(), m.partition()) for m in got} == {(t, i) for t in topics for i in (0, 1)}
    assert all(message.value() == message.topic().encode() for message in got)


@pytest.mark.parametrize("codec", CODECS)
def test_big_batches(bootstrap, topic, codec):
    values = [bytes(str(i).zfill(8), "ascii") * 128 for i in range(10_000)]
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "compression.type": codec}
    send(bootstrap, topic, [{"value": value} for value in values], **settings)
    with Reader(bootstrap, (topic, 0, 0)) as reader:
        assert [message.value() for message in reader.take(len(values))] == values


def test_log_append_time(bootstrap, new_topic):
    topic, begun = new_topic(message_timestamp_type="LogAppendTime"), int(time.time() * 1000)
    for codec in CODECS:
        send(bootstrap, topic, [{"value": b"x", "timestamp": 1000}], **{"compression.type": codec})
    with Reader(bootstrap, (topic, 0, 0)) as reader:
        for message in reader.take(len(CODECS)):
            kind, stamp = message.timestamp()
            assert kind == ck.TIMESTAMP_LOG_APPEND_TIME
            assert begun <= stamp <= int(time.time() * 1000)


def test_a_timestamp_in_the_far_future_is_refused(bootstrap, topic):
    with pytest.raises(ck.KafkaException) as told:
        send(bootstrap, topic, [{"value": b"x", "timestamp": int(time.time() * 1000) + 7_200_000}])
    assert told.value.args[0].code() == ck.KafkaError.INVALID_TIMESTAMP


def test_a_compacted_topic_wants_keys(bootstrap, new_topic):
    topic = new_topic(cleanup_policy="compact")
    send(bootstrap, topic, [{"key": b"k", "value": None}])
    for codec in CODECS:
        with pytest.raises(ck.KafkaException) as told:
            send(bootstrap, topic, [{"value": b"no key"}], **{"compression.type": codec})
        assert told.value.args[0].code() == ck.KafkaError.INVALID_RECORD
