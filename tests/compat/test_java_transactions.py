"""`kafka-transactions.sh` of Apache Kafka, unchanged, against the appliance: every verb of it."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import kafka
from console.model.asking.link import Link
from console.model.transactions import producers as of_partitions
from tests import java_tools
from tests.broker_process import Broker
from tests.console.txn_story import SETTINGS, STALE, Owner, ends_soon, hang

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]
LIMIT_S = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("java") / "data", dict(SETTINGS)) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for made in admin.create_topics([NewTopic("moves", 2), NewTopic("stuck", 1)]).values():
            made.result(LIMIT_S)
        yield running


def rows(said):
    """Its table: a list for each line, the titles first."""
    return [line.split() for line in said.splitlines() if line.strip()]


def test_every_verb_of_kafka_transactions(broker):
    def say(*words):
        named = ("--bootstrap-server", broker.bootstrap, *words)
        done = java_tools.tool("org.apache.kafka.tools.TransactionsCommand", *named)
        assert done.returncode == 0, done.stdout + done.stderr
        return rows(done.stdout)

    owner, live = Owner(broker.bootstrap, "java.owner"), Owner(broker.bootstrap, "java.live")
    began_s = time.monotonic()
    owner.begin("moves", 0)
    live.begin("moves", 1)
    link = Link(broker.bootstrap, {}, 10.0)
    at = hang(link, "stuck", 0)
    where = ("--topic", "stuck", "--partition", "0")
    asked = (
        ("list",),
        ("describe", "--transactional-id", "java.owner"), ("describe-producers", *where),
        ("find-hanging", "--topic", "moves", "--max-transaction-timeout", "0"),
        ("find-hanging", *where, "--max-transaction-timeout", "0"),
    )  # fmt: skip
    with ThreadPoolExecutor(len(asked)) as pool:
        listed, described, producers, none, hanging = pool.map(lambda a: say(*a), asked)
    assert {row[0]: row[3] for row in listed[1:]} == {
        "java.owner": "Ongoing",
        "java.live": "Ongoing",
    }
    told = dict(zip(described[0], described[1], strict=True))
    assert (told["TransactionState"], told["TopicPartitions"]) == ("Ongoing", "moves-0")
    assert int(told["TransactionDurationMs"]) <= (time.monotonic() - began_s) * 1000
    told = dict(zip(producers[0], producers[1], strict=True))
    assert (told["ProducerId"], told["CurrentTransactionStartOffset"]) == (str(STALE), str(at))
    assert none[1:] == []
    told = dict(zip(hanging[0], hanging[1], strict=True))
    assert (told["Topic"], told["ProducerId"], told["StartOffset"]) == (
        "stuck",
        str(STALE),
        str(at),
    )

    ends = (
        ("abort", *where, "--start-offset", str(at)),
        ("forceTerminateTransaction", "--transactionalId", "java.owner"),
    )
    with ThreadPoolExecutor(len(ends)) as pool:
        list(pool.map(lambda a: say(*a), ends))
    with pytest.raises(KafkaException):
        owner.end()
    ends_soon(broker.bootstrap, "java.owner")
    live.end()
    (producer,) = of_partitions.producers(link, [("stuck", 0)])["stuck", 0]
    assert (producer.producer_id, producer.start) == (STALE, None)
