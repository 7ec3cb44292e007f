"""Stock clients log in by each mechanism; who may not learns so at once, and nothing of who there
is.
"""

import asyncio
import json
import logging
import shutil
import subprocess
import sys
import threading

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioError
from confluent_kafka import Consumer, KafkaError, Producer

from benchmarks import kafka
from tests.sasl.logged import MECHANISMS, PLAIN_MODULE, SCRAM_MODULE
from tests.tls.java import Tools
from tests.tls.stock import (
    LIMIT_S,
    there_and_back_aiokafka,
    there_and_back_kafka_python,
    there_and_back_librdkafka,
)

VALUES = [b"%d" % number for number in range(50)]
NOT_LET_IN = {
    "wrong password": ("alice", "bob-secret"),
    "unknown user": ("nobody", "alice-secret"),
}


def dotted(bootstrap, mechanism, user, password):
    """librdkafka's properties."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def keywords(bootstrap, mechanism, user, password):
    """Of both clients in Python."""
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def java(mechanism, user, password):
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
    }


CLIENTS = {
    "librdkafka": (dotted, there_and_back_librdkafka),
    "kafka-python": (keywords, there_and_back_kafka_python),
    "aiokafka": (keywords, there_and_back_aiokafka),
}


@pytest.fixture
def topic(broker):
    return broker.peer.create(1, {})


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["STATIC", "SASL_PLAINTEXT"])
def test_records_go_there_and_back(broker, topic, client, mechanism, listener):
    settings, there_and_back = CLIENTS[client]
    given = settings(broker.at(listener), mechanism, "alice", "alice-secret")
    assert there_and_back(given, topic, VALUES) == VALUES


def librdkafka_hears(settings):
    """The first error by name, and its text without the address."""
    heard = threading.Event()
    told = []

    def on_error(error):
        told.append(error)
        heard.set()

    settings |= {"error_cb": on_error, "log_level": 0, "group.id": "g"}
    producer = Producer({key: value for key, value in settings.items() if key != "group.id"})
    for _ in range(LIMIT_S * 10):
        producer.poll(0.1)
        if heard.is_set():
            break
    assert told, f"nothing is heard in {LIMIT_S} s"
    first = next((one for one in told if one.code() != KafkaError._ALL_BROKERS_DOWN), told[0])
    return first.name(), first.str().partition(": ")[2].partition(" (after")[0]


REFUSED = """
import json, sys
from kafka import KafkaProducer
from kafka.errors import KafkaError
try:
    KafkaProducer(**json.loads(sys.argv[1]), bootstrap_timeout_ms=1000)
except KafkaError:
    print("authentication failed")
"""


def kafka_python_hears(settings):
    """That it is not let in. It often sees the end of a connection before the answer that came
    ahead of it, with Apache Kafka as here, so that its error may name nothing; and leaves sockets
    open, for which it has a process of its own."""
    words = [sys.executable, "-W", "ignore", "-c", REFUSED, json.dumps(settings)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    return done.stdout.strip(), ""


def aiokafka_hears(settings):
    async def start():
        producer = AIOKafkaProducer(**settings, request_timeout_ms=5000)
        try:
            await asyncio.wait_for(producer.start(), LIMIT_S)
        finally:
            await producer.stop()

    told = []

    class Kept(logging.Handler):
        def emit(self, record):
            told.append(record.getMessage())

    kept, logger = Kept(), logging.getLogger("aiokafka")
    logger.addHandler(kept)
    try:
        asyncio.run(start())
    except AioError as error:
        said = " ".join(told) + repr(error)
        names = ("AuthenticationFailed", "UnsupportedSaslMechanism")
        return next((one for one in names if one in said), type(error).__name__), ""
    finally:
        logger.removeHandler(kept)
    raise AssertionError("it was let in")


HEARD = {
    "librdkafka": (dotted, librdkafka_hears),
    "kafka-python": (keywords, kafka_python_hears),
    "aiokafka": (keywords, aiokafka_hears),
}


@pytest.mark.parametrize("client", HEARD)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["STATIC", "SASL_PLAINTEXT"])
def test_who_may_not_in_hears_the_same_whether_known_or_not(broker, client, mechanism, listener):
    settings, hears = HEARD[client]
    told = {hears(settings(broker.at(listener), mechanism, *who)) for who in NOT_LET_IN.values()}
    ((name, text),) = told
    assert "auth" in name.lower(), (name, text)


@pytest.mark.parametrize("client", HEARD)
def test_a_mechanism_that_is_not_offered_is_told(broker, client):
    settings, hears = HEARD[client]
    only_scram = settings(broker.at("ONLY"), "PLAIN", "alice", "alice-secret")
    name, text = hears(only_scram)
    assert "mechanism" in (name + text).lower() or "auth" in name.lower(), (name, text)


def test_who_speaks_plaintext_to_it_is_hung_up_on(broker, topic):
    consumer = Consumer({"bootstrap.servers": broker.at(), "group.id": "g", "log_level": 0})
    try:
        with pytest.raises(Exception, match=r"(?i)transport|broker|timed out"):
            consumer.list_topics(topic, timeout=5)
    finally:
        consumer.close()
    assert "before it has logged in" in broker.output()


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat(broker, topic, mechanism):
    def kcat(*more, password="alice-secret", stdin=""):
        words = ["-t", topic]
        for key, value in dotted(broker.at(), mechanism, "alice", password).items():
            words += ["-X", f"{key}={value}"]
        return subprocess.run(
            ["kcat", *words, *more], input=stdin, capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip

    lines = "".join(f"value {i}\n" for i in range(100))
    assert kcat("-P", stdin=lines).returncode == 0
    assert kcat("-C", "-e", "-q", "-o", "beginning").stdout == lines
    refused = kcat("-L", "-m", "2", password="no")
    assert refused.returncode != 0
    assert "uthentication" in refused.stderr, refused.stderr


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_javas_console_clients(broker, topic, tmp_path, mechanism):
    for listener in ("STATIC", "SASL_PLAINTEXT"):
        ours = Tools(tmp_path, broker.at(listener), java(mechanism, "alice", "alice-secret"))
        ours.run("ConsoleProducer", "--topic", topic, stdin="one\ntwo\n")
    words = ["--topic", topic, "--from-beginning", "--max-messages", "4", "--timeout-ms", "60000"]
    assert ours.run("consumer.ConsoleConsumer", *words) == "one\ntwo\n" * 2


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_java_tells_the_same_of_users_that_there_are_and_are_not(broker, tmp_path, mechanism):
    told = set()
    for who in NOT_LET_IN.values():
        ours = Tools(tmp_path, broker.at(), java(mechanism, *who))
        said = ours.configs("--describe", "--entity-type", "users", code=1)
        told.add(next(line for line in said.splitlines() if "SaslAuthenticationException" in line))
    assert len(told) == 1, told
