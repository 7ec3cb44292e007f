"""penstock.legacy.protocol: what an appliance advertises and answers with it and without."""

import struct

import confluent_kafka as confluent
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.authorization.apis import APIS
from appliance.wire.compression import GZIP
from appliance.wire.message_set import open_entry, read_entry
from tests.broker_process import Broker
from tests.compat import old_clients
from tests.compat.old_requests import (
    FETCH,
    PRODUCE,
    Peer,
    array,
    fetch,
    messages,
    produce,
    sized,
    string,
)
from tests.old_formats import Plain, message, wrapper

TIME = 1_700_000_000_000
OLD_ROWS = {row.key: row.legacy for row in APIS.values() if row.legacy is not None}
KAFKA_PYTHON_0_9 = """
import sys
import kafka
assert kafka.__version__ == "0.9.5"
client, topic = kafka.KafkaClient(sys.argv[1]), sys.argv[2].encode()
for codec in (0, 1):
    producer = kafka.SimpleProducer(client, codec=codec) if codec else kafka.SimpleProducer(client)
    (answer,) = producer.send_messages(topic, *[b"value %d %d" % (codec, n) for n in range(50)])
    assert not answer.error
(answer,) = kafka.KeyedProducer(client).send_messages(topic, b"key", b"keyed")
consumer = kafka.SimpleConsumer(client, None, topic, auto_commit=False)
for one in consumer.get_messages(count=101, block=True, timeout=30):
    print(one.offset, one.message.key, one.message.value)
"""


KAFKA_PYTHON_0_9_GROUP = """
import sys
import kafka
client, topic = kafka.KafkaClient(sys.argv[1]), sys.argv[2].encode()
producer = kafka.SimpleProducer(client)
producer.send_messages(topic, *[b"%d" % n for n in range(20)])
first = kafka.SimpleConsumer(client, b"old", topic, auto_commit=False)
print([one.message.value for one in first.get_messages(count=8, block=True, timeout=30)])
first.commit()
second = kafka.SimpleConsumer(client, b"old", topic, auto_commit=False)
print(second.pending())
print([one.message.value for one in second.get_messages(count=2, block=True, timeout=30)])
second.seek(-1, 2)
print([one.message.value for one in second.get_messages(count=1, block=True, timeout=30)])
"""
KAFKA_PYTHON_1_3 = """
import sys
import kafka
assert kafka.__version__ == "1.3.5"
version = tuple(int(part) for part in sys.argv[3].split("."))
topic = sys.argv[2]
producer = kafka.KafkaProducer(
    bootstrap_servers=sys.argv[1], api_version=version, compression_type=sys.argv[4] or None
)
for n in range(40):
    sent = producer.send(topic, key=b"k", value=b"%d" % n)
    producer.flush()
    assert sent.get(30).offset == n
group = "old-" + topic if version >= (0, 8, 2) else None
seen = []
for count in (25, 15):
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=sys.argv[1], api_version=version, group_id=group,
        auto_offset_reset="earliest", enable_auto_commit=False,
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    for one in consumer:
        seen.append((one.offset, one.value))
        if len(seen) in (25, 40):
            break
    consumer.commit({kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(len(seen), "")})
    consumer.close(autocommit=False)
assert seen == [(n, b"%d" % n) for n in range(40)], seen
print("read", len(seen))
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Broker(
        tmp_path_factory.mktemp("old") / "data", {"penstock.legacy.protocol": "true"}
    ) as broker:
        yield broker


@pytest.fixture
def topic(served, request):
    name = request.node.name.replace("[", "-").replace("]", "")
    admin = AdminClient({"bootstrap.servers": served.bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, 1, 1)]).values():
        future.result(30)
    return name


def advertised(broker):
    with Peer(("127.0.0.1", broker.port)) as peer:
        answer = peer.ask(18, 0, b"")
        assert answer.take("h") == (0,)
        rows = answer.array(lambda: answer.take("hhh"))
        return {key: lowest for key, lowest, _ in rows}


def test_old_versions_are_advertised_where_they_are_served(served):
    told = advertised(served)
    assert {key: told[key] for key in OLD_ROWS} == OLD_ROWS


def test_without_the_setting_old_requests_end_the_connection(tmp_path):
    with Broker(tmp_path / "data") as broker:
        told = advertised(broker)
        assert (told[PRODUCE], told[FETCH]) == (0, 4), "old librdkafka compresses if it is told 0"
        for key, version in ((PRODUCE, 0), (PRODUCE, 2), (FETCH, 0), (FETCH, 3)):
            with Peer(("127.0.0.1", broker.port)) as peer:
                assert not peer.ask(key, version, b"\0" * 12).data


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
def test_new_consumers_read_what_old_producers_write(served, topic, version, magic):
    some = [Plain(n, TIME + n, b"k", b"v" * n or None) for n in range(9)]
    with Peer(("127.0.0.1", served.port)) as peer:
        data = b"".join(message(one, magic) for one in some)
        assert produce(peer, version, topic, data)["error"] == 0
        packed = wrapper(some, magic, GZIP)
        assert produce(peer, version, topic, packed)["offset"] == 9
    consumer = confluent.Consumer({
        "bootstrap.servers": served.bootstrap, "group.id": "g", "enable.auto.commit": False,
        "log_level": 0,
    })  # fmt: skip
    consumer.assign([confluent.TopicPartition(topic, 0, 0)])
    found = []
    while len(found) < 18:
        one = consumer.poll(30)
        assert one is not None
        assert not one.error(), one.error()
        found.append((one.offset(), one.timestamp()[1] if magic else None, one.key(), one.value()))
    consumer.close()
    times = [one.timestamp if magic else None for one in some]
    assert found == [
        (at + number, time, one.key, one.value)
        for at in (0, 9)
        for number, (one, time) in enumerate(zip(some, times, strict=True))
    ]


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_old_consumers_read_what_new_producers_write(served, topic, version, codec):
    producer = confluent.Producer({
        "bootstrap.servers": served.bootstrap, "compression.type": codec, "linger.ms": 50,
        "transactional.id": topic, "log_level": 0,
    })  # fmt: skip
    producer.init_transactions()
    for number in range(3):
        producer.begin_transaction()
        for n in range(20):
            producer.produce(topic, b"%d" % n * 30, b"key", timestamp=TIME, headers={"h": b"1"})
        if number == 1:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    found, offset = [], 0
    with Peer(("127.0.0.1", served.port)) as peer:
        while len(found) < 60:
            some = messages(fetch(peer, version, topic, offset)["set"])
            assert some
            for one in some:
                assert one.magic == version // 2
                assert one.timestamp == (TIME if one.magic else None)
                found += unpacked(one)
            offset = some[-1].offset + 1
        assert fetch(peer, version, topic, offset, wait_ms=1)["set"] == b"", "markers are not told"
    assert [value for _, value in found] == [b"%d" % n * 30 for _ in range(3) for n in range(20)]


def unpacked(one):
    framed = message(
        Plain(one.offset, one.timestamp, one.key, one.value), one.magic, one.attributes
    )
    whole = open_entry(read_entry(memoryview(framed), 0, len(framed)))
    return [(each.key, each.value) for each in whole]


def test_no_acks_no_answer(served, topic):
    with Peer(("127.0.0.1", served.port)) as peer:
        for _ in range(3):
            produce(peer, 0, topic, message(Plain(0, -1, None, b"v"), 0), acks=0)
        assert produce(peer, 0, topic, message(Plain(0, -1, None, b"v"), 0))["offset"] == 3


def test_many_partitions_in_one_request(served):
    """More than are parsed at once: they are asked for in parts."""
    data = sized(message(Plain(0, -1, None, b"v"), 0))
    rows = [struct.pack(">i", partition) + data for partition in range(600)]
    body = struct.pack(">hi", -1, 10_000) + array(string("nowhere") + array(*rows))
    with Peer(("127.0.0.1", served.port)) as peer:
        answer = peer.ask(PRODUCE, 0, body)
        assert answer.take("i") == (1,)
        assert answer.string() == "nowhere"
        told = answer.array(lambda: answer.take("ihq"))
        answer.end()
    assert told == [(partition, 3, -1) for partition in range(600)]


def test_kafka_python_0_9(served, topic, pytestconfig):
    python = old_clients.python_with(pytestconfig, "0.9.5", "3.6")
    told = old_clients.run_python(python, KAFKA_PYTHON_0_9, served.bootstrap, topic)
    values = [f"{n} None b'value {n // 50} {n % 50}'" for n in range(100)]
    assert told == [*values, "100 b'key' b'keyed'"]


def test_kafka_python_0_9_commits_in_a_group(served, topic, pytestconfig):
    """OffsetCommit and OffsetFetch version 0, ListOffsets version 0."""
    python = old_clients.python_with(pytestconfig, "0.9.5", "3.6")
    told = old_clients.run_python(python, KAFKA_PYTHON_0_9_GROUP, served.bootstrap, topic)
    assert told == [str([b"%d" % n for n in range(8)]), "12", "[b'8', b'9']", "[b'19']"]


@pytest.mark.parametrize(
    ("version", "codec"),
    [("0.8.2", "gzip"), ("0.9", "gzip"), ("0.10.0", ""), ("0.10.1", "gzip")],
)
def test_kafka_python_1_3_as_of_each_release(served, topic, version, codec, pytestconfig):
    python = old_clients.python_with(pytestconfig, "1.3.5", "3.6")
    told = old_clients.run_python(python, KAFKA_PYTHON_1_3, served.bootstrap, topic, version, codec)
    assert told == ["read 40"]


def offset_rows(answer):
    rows = answer.array(lambda: (answer.string(), answer.array(lambda: answer.take("ih"))))
    answer.end()
    return rows


@pytest.mark.parametrize("version", [0, 1])
def test_old_commits_are_those_of_the_group(served, topic, version):
    group, rows = string(f"g-{topic}"), []
    for partition in range(2000):
        time = struct.pack(">q", TIME) if version else b""
        rows.append(struct.pack(">iq", partition, 7) + time + string("words"))
    head = struct.pack(">i", -1) + string("") if version else b""
    for count in (1, 2000):
        body = group + head + array(string(topic) + array(*rows[:count]))
        with Peer(("127.0.0.1", served.port)) as peer:
            ((name, codes),) = offset_rows(peer.ask(8, version, body))
            assert name == topic
            assert codes == [(at, 3 if at else 0) for at in range(count)]
            asked = array(string(topic) + array(*(struct.pack(">i", at) for at in (0, 1))))
            answer = peer.ask(9, 0, group + asked)
            assert answer.take("i") == (1,)
            assert answer.string() == topic
            assert fetched_rows(answer) == [(0, 7, "words", 0), (1, -1, "", 0)]
            answer.end()


def fetched_rows(answer):
    return answer.array(lambda: (*answer.take("iq"), answer.string(), *answer.take("h")))


@pytest.mark.parametrize(("key", "version"), [(2, 0), (8, 0), (8, 1), (9, 0)])
def test_requests_that_end_inside_a_field_end_the_connection(served, key, version):
    whole = (
        string("g") + struct.pack(">i", -1) + string("m") + array(string("t") + array(b"\0" * 9))
    )
    for size in range(0, len(whole), 3):
        with Peer(("127.0.0.1", served.port)) as peer:
            peer.ask(key, version, whole[:size])
    with Peer(("127.0.0.1", served.port)) as peer:
        assert not peer.ask(key, version, b"\0\1g" + b"\x7f" * 40).data
    assert advertised(served)
