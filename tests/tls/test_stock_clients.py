"""Stock clients of Python and C, and kcat, over TLS: records there and back, in groups, in
transactions, in megabytes, with certificates of their own and without."""

import random
import shutil
import ssl
import subprocess
import time
import uuid

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks import requests
from benchmarks.peer import Wire
from tests.tls import stock
from tests.tls.stock import CLIENTS, LIMIT_S, librdkafka

VALUES = [b"%d" % number for number in range(200)]
VERSIONS = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("listener", ["SSL", "REQUESTED", "OLDER", "NEWER"])
def test_records_go_there_and_back(broker, pki, topic, client, listener):
    settings, there_and_back = CLIENTS[client]
    assert there_and_back(settings(pki, broker.at(listener)), topic, VALUES) == VALUES


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("listener", ["REQUESTED", "MUTUAL"])
def test_so_they_do_of_who_shows_a_certificate(broker, pki, topic, client, listener):
    settings, there_and_back = CLIENTS[client]
    shown = settings(pki, broker.at(listener), certificate="client")
    assert there_and_back(shown, topic, VALUES) == VALUES


@pytest.mark.parametrize("client", CLIENTS)
def test_there_need_not_be_a_plain_listener(alone, pki, client):
    settings, there_and_back = CLIENTS[client]
    topic = alone.peer.create(1, {})
    assert there_and_back(settings(pki, alone.at()), topic, VALUES) == VALUES


@pytest.mark.parametrize("client", CLIENTS)
def test_a_store_that_keytool_made_serves(stored, pki, client):
    settings, there_and_back = CLIENTS[client]
    topic = stored.peer.create(1, {})
    assert there_and_back(settings(pki, stored.at("STORED")), topic, VALUES) == VALUES


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat(broker, pki, topic):
    words = ["-b", broker.at("MUTUAL"), "-t", topic]
    for key, value in librdkafka(pki, broker.at("MUTUAL"), certificate="client").items():
        words += ["-X", f"{key}={value}"]

    def kcat(*more, stdin=""):
        return subprocess.run(
            ["kcat", *words, *more], input=stdin, capture_output=True, text=True,
            timeout=LIMIT_S, check=True,
        ).stdout  # fmt: skip

    lines = "".join(f"value {i}\n" for i in range(500))
    kcat("-P", stdin=lines)
    assert kcat("-C", "-e", "-q", "-o", "beginning") == lines


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_is_what_both_speak(broker, pki, version):
    wanted = VERSIONS[version]
    own = {ssl.TLSVersion.TLSv1_2: "OLDER", ssl.TLSVersion.TLSv1_3: "NEWER"}
    for listener in ("SSL", own[wanted]):
        wire = Wire(broker.address(listener), context=pki.context(version=wanted))
        with wire:
            assert wire.socket.version() == version.replace("TLS ", "TLSv")
            wire.call(requests.metadata([]))
    (other,) = set(own.values()) - {own[wanted]}
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version|unsupported.protocol"):
        Wire(broker.address(other), context=pki.context(version=wanted))


def blocks(count, size, seed=7):
    """Values that no codec makes much smaller."""
    chance = random.Random(seed)
    return [chance.randbytes(size) for _ in range(count)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_megabytes_come_back_as_they_were(broker, pki, new_topic, codec):
    """In requests and answers of many TLS records each."""
    topic = new_topic(max_message_bytes="16000000")
    values = blocks(24, 900_000) + [b"very much the same " * 40_000] * 8
    settings = librdkafka(
        pki, broker.at(), compression_type=codec, message_max_bytes=15_000_000,
        batch_size=14_000_000, linger_ms=200, fetch_message_max_bytes=50_000_000,
        fetch_max_bytes=60_000_000, receive_message_max_bytes=100_000_000,
    )  # fmt: skip
    got = stock.there_and_back_librdkafka(settings, topic, values)
    assert [len(one) for one in got] == [len(one) for one in values]
    assert got == values


def test_many_partitions_are_read_at_once(broker, pki, new_topic):
    topic = new_topic(64)
    settings = librdkafka(pki, broker.at())
    producer = Producer(settings | {"acks": "all"})
    for number in range(6400):
        producer.produce(topic, b"%d" % number * 20, partition=number % 64)
    assert producer.flush(LIMIT_S) == 0
    got = stock.read(settings, topic, 6400)
    assert sorted(got) == sorted(b"%d" % number * 20 for number in range(6400))


def test_transactions_are_whole(broker, pki, topic):
    settings = librdkafka(pki, broker.at("MUTUAL"), certificate="client")
    producer = Producer(settings | {"transactional.id": f"t-{uuid.uuid4()}"})
    producer.init_transactions(LIMIT_S)
    for number in range(4):
        producer.begin_transaction()
        for value in range(10):
            producer.produce(topic, b"%d of %d" % (value, number))
        producer.flush(LIMIT_S)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(LIMIT_S)
    wanted = [b"%d of %d" % (value, number) for number in (0, 2) for value in range(10)]
    committed = settings | {"isolation.level": "read_committed"}
    assert stock.read(committed, topic, len(wanted)) == wanted


def test_a_group_shares_partitions_and_remembers(broker, pki, new_topic):
    topic = new_topic(4)
    settings = librdkafka(pki, broker.at())
    group = settings | {"group.id": f"g-{topic}", "auto.offset.reset": "earliest"}
    members = [Consumer(group) for _ in range(2)]
    got, end = [], time.monotonic() + LIMIT_S
    try:
        for one in members:
            one.subscribe([topic])
        while any(len(one.assignment()) != 2 for one in members):
            assert time.monotonic() < end, [one.assignment() for one in members]
            for one in members:
                one.consume(1, 0.1)
        producer = Producer(settings)
        for number in range(40):
            producer.produce(topic, b"%d" % number, partition=number % 4)
        assert producer.flush(LIMIT_S) == 0
        while len(got) < 40:
            assert time.monotonic() < end, len(got)
            for one in members:
                got += [m.value() for m in one.consume(100, 0.2)]
        assert sorted(got) == sorted(b"%d" % number for number in range(40))
        for one in members:
            one.commit(asynchronous=False)
    finally:
        for one in members:
            one.close()
    again = Consumer(group)
    places = again.committed([TopicPartition(topic, one) for one in range(4)], LIMIT_S)
    again.close()
    assert [one.offset for one in places] == [10] * 4


def test_who_does_not_trust_says_so_itself(broker, pki):
    """A server that is not known is the client's own finding: nothing is sent to it."""
    seen = []
    admin = AdminClient(
        librdkafka(pki, broker.at(), ca="foreign-ca.pem")
        | {"error_cb": lambda error: seen.append(error)}
    )
    with pytest.raises(confluent_kafka.KafkaException):
        admin.list_topics(timeout=5)
    admin.poll(0)
    assert any("certificate verify failed" in one.str() for one in seen), seen
    with pytest.raises(ssl.SSLCertVerificationError):
        Wire(broker.address(), context=pki.context(ca="foreign-ca.pem"))


def test_the_name_is_that_of_the_host(broker, pki):
    """The certificate names this host, so a client that compares is content by default."""
    context = pki.context()
    assert context.check_hostname
    with Wire(broker.address(), context=context) as wire:
        wire.call(requests.api_versions())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("listener", "certificate"),
    [
        ("MUTUAL", None),
        ("MUTUAL", "foreign"),
        ("MUTUAL", "expired"),
        ("REQUESTED", "foreign"),
        ("REQUESTED", "expired"),
    ],
)
def test_who_is_not_to_be_trusted_is_refused(broker, pki, version, listener, certificate):
    """With TLS 1.3 a client has finished before the server looks: it hears at its first read."""
    context = pki.context(certificate=certificate, version=VERSIONS[version])
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        Wire(broker.address(listener), context=context) as wire,
    ):
        wire.call(requests.metadata([]))
