"""Logins that expire (KIP-368), with stock clients: who renews them is never hung up on."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, Producer

from benchmarks import kafka
from tests.broker_process import KAFKA
from tests.sasl.conftest import put_users
from tests.sasl.logged import MECHANISMS, LoggedIn
from tests.sasl.talk import CLOSED, Talk
from tests.sasl.test_stock_logins import dotted, java
from tests.tls.java import Tools

REAUTH_MS = 2000
TEN_MINUTES_S = 600
METADATA = (3, 1, b"\xff\xff\xff\xff")


@pytest.fixture(scope="module")
def expiring(tmp_path_factory):
    words = {"connections.max.reauth.ms": str(REAUTH_MS)}
    with LoggedIn(tmp_path_factory.mktemp("expiring") / "data", words) as running:
        put_users(running.bootstrap)
        yield running


def hung_up(broker):
    return broker.output().count("its login has expired")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_renews_its_login_in_the_middle_of_its_work(expiring, mechanism):
    """For as long as three logins hold, whatever is produced comes, in its order and once."""
    before = hung_up(expiring)
    _, told = works_for(3 * REAUTH_MS / 1000, expiring, mechanism)
    assert hung_up(expiring) == before and not told, told


@pytest.mark.timeout(TEN_MINUTES_S + 200)
def test_ten_minutes_of_logins_that_hold_for_two_seconds(expiring):
    """All mechanisms at once: of some 2,000 renewals none is late, and no client is told of an
    error."""
    before = hung_up(expiring)
    with ThreadPoolExecutor(len(MECHANISMS)) as pool:
        works = [pool.submit(works_for, TEN_MINUTES_S, expiring, one) for one in MECHANISMS]
        ended = [one.result() for one in works]
    print([sent for sent, _ in ended], "records")
    assert hung_up(expiring) == before
    assert not [told for _, told in ended if told]


def works_for(seconds, expiring, mechanism):
    """A producer and a consumer that log in so. Returns the number of records, and what errors
    they were told."""
    topic = expiring.peer.create(1, {})
    settings = dotted(expiring.at("SASL_PLAINTEXT"), mechanism, "alice", "alice-secret")
    told, failed = [], []
    settings |= {"error_cb": told.append, "log_level": 0}
    producer = Producer(settings | {"enable.idempotence": True})
    consumer = Consumer(settings | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got, sent = [], 0
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end or len(got) < sent:
            if time.monotonic() < end:
                producer.produce(
                    topic, b"%d" % sent, on_delivery=lambda e, _: failed.append(e) if e else None
                )
                sent += 1
            producer.poll(0.01)
            got += [one.value() for one in consumer.consume(100, 0.05) if one.error() is None]
            assert time.monotonic() < end + 60, (sent, len(got))
        assert producer.flush(60) == 0 and not failed, failed
    finally:
        consumer.close()
    assert got == [b"%d" % number for number in range(sent)]
    return sent, told


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
@pytest.mark.timeout(300)
def test_java_renews_its_login(expiring, tmp_path):
    """A console consumer that waits for twice as long as its login holds is still served."""
    topic = expiring.peer.create(1, {})
    tools = Tools(tmp_path, expiring.at(), java("SCRAM-SHA-512", "alice", "alice-secret"))
    before = hung_up(expiring)
    words = ["--topic", topic, "--from-beginning", "--timeout-ms", str(3 * REAUTH_MS)]
    tools.run("consumer.ConsoleConsumer", *words)
    assert hung_up(expiring) == before


def test_who_does_not_renew_it_is_hung_up_on(expiring):
    with expiring.wire() as wire:
        talk = Talk(wire)
        assert talk.plain("alice", "alice-secret")[3] == REAUTH_MS
        end = time.monotonic() + 60
        while talk.any(*METADATA) is not CLOSED:
            assert time.monotonic() < end, "its login holds for ever"
            time.sleep(0.02)
    assert hung_up(expiring) or KAFKA


def test_nobody_becomes_somebody_else(expiring):
    """Nor goes on by another mechanism."""
    with expiring.wire() as wire:
        talk = Talk(wire)
        assert talk.plain("alice", "alice-secret")[0] == 0
        told = talk.plain("bob", "bob-secret")
        assert told[0] == 58 and "Cannot change principals" in told[1]
    with expiring.wire() as wire:
        talk = Talk(wire)
        assert talk.plain("alice", "alice-secret")[0] == 0
        assert talk.scram("SCRAM-SHA-512", "alice", "alice-secret") is CLOSED
