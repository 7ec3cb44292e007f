"""KIP-714 by clients as they are: a subscription that Kafka's tool sets, pushed by the Java client
and by librdkafka, and what of it is shown."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from waiting import until

from benchmarks import kafka
from console.model.local.client_metrics import instances, values
from tests import java_tools
from tests.broker_process import KAFKA

pytestmark = [
    pytest.mark.skipif(KAFKA, reason="Apache Kafka needs a plugin to take what clients push"),
    pytest.mark.timeout(180),
]
JAVA = pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
PREFIX = "org.apache.kafka."


@pytest.fixture
def pushed(broker):
    """A function: client id → who pushes."""
    return lambda: {one.client_id: one for one in instances(str(broker.data))}


def value(broker, client, metric):
    """What one client said of one metric last; None when it said nothing."""
    return next((one.value for one in values(str(broker.data), client, metric)), None)


def console(*words):
    command = [sys.executable, "-m", "console", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def subscribed(broker):
    """By our own command: every metric of some, twice a second."""
    words = ("--client-metrics", "everybody", "--bootstrap-server", broker.bootstrap)
    pairs = ("metrics=*", "interval.ms=500", "match=client_id=pushing-.*")
    console("config", "set", *pairs, *words)
    assert "client_id=pushing-.*" in console("config", "get", "match", *words)
    yield
    console("config", "unset", "metrics", "interval.ms", "match", *words)


def test_librdkafka_pushes_and_says_when_it_ends(broker, bootstrap, subscribed, pushed, topic):
    known = {"bootstrap.servers": bootstrap, "log_level": 0}
    mine = [
        Producer({**known, "client.id": "pushing-p"}),
        Consumer({**known, "client.id": "pushing-c", "group.id": "pushing"}),
    ]
    silent = Producer({**known, "client.id": "silent"})
    mine[1].subscribe([topic])

    def everybody_pushes():
        mine[0].produce(topic, b"value")
        for one in (*mine, silent):
            one.poll(0.02)
        assert pushed().keys() == {"pushing-p", "pushing-c"}

    until(everybody_pushes)
    one = pushed()["pushing-p"]
    assert one.software == "confluent-kafka-python" and one.interval_s == 0.5 and not one.wrong
    assert value(broker, "pushing-p", PREFIX + "producer.connection.creation.total") >= 1
    assert value(broker, "pushing-c", PREFIX + "consumer.connection.creation.total") >= 1
    told = console("client", "metrics", "--data", str(broker.data), "-o", "json")
    assert {one["client_id"] for one in json.loads(told)} == {"pushing-p", "pushing-c"}
    told = console("client", "metrics", one.instance, "--data", str(broker.data))
    assert PREFIX + "producer.request.latency.avg" in told
    mine.pop().close()
    mine.clear()
    until(lambda: not pushed())


@contextmanager
def java_producer(bootstrap, topic):
    """Kafka's console producer, as it is, until the end."""
    command = kafka.java(
        "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", bootstrap,
        "--topic", topic, "--command-property", "client.id=pushing-java",
    )  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


@JAVA
def test_the_java_client_pushes_as_it_comes(broker, bootstrap, pushed, topic):
    words = ("--bootstrap-server", bootstrap, "--name", "java")
    tool = "org.apache.kafka.tools.ClientMetricsCommand"
    asked = ("--alter", "--metrics", PREFIX + "producer.", "--interval", "500")
    done = java_tools.tool(tool, *words, *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    with java_producer(bootstrap, topic) as process:
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()

        def it_says_two():
            assert "pushing-java" in pushed()
            assert value(broker, "pushing-java", PREFIX + "producer.record.send.total") == 2

        until(it_says_two)
        one = pushed()["pushing-java"]
        assert one.software == "apache-kafka-java" and one.metrics > 10 and not one.wrong
        process.stdin.close()
        assert process.wait(30) == 0
        until(lambda: not pushed())
    where = ("--client-metrics", "java", "--bootstrap-server", bootstrap)
    console("config", "unset", "metrics", "interval.ms", *where)
