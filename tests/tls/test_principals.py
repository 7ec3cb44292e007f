"""Who shows a certificate is known by the name in it: quotas of users hold for it, and the lists of
connections name it."""

import socket
import ssl

import pytest
from confluent_kafka import Producer

from benchmarks import requests
from tests.broker_process import KAFKA
from tests.console_process import rows, typing
from tests.differential.link import Link
from tests.tls.secured import HOST
from tests.tls.stock import LIMIT_S, librdkafka

ALICE = "CN=alice,OU=Readers,O=Tests"
ALTER, DESCRIBE = 49, 48
SLOW_BYTES = 20_000


@pytest.fixture
def quota(broker):
    """A quota of bytes produced for a user; taken away at the end."""
    link = Link((broker.host, broker.port))

    def alter(user, *, remove=False):
        entity = [{"entity_type": "user", "entity_name": user}]
        op = {"key": "producer_byte_rate", "value": float(SLOW_BYTES), "remove": remove}
        asked = {"entries": [{"entity": entity, "ops": [op]}], "validate_only": False}
        (entry,) = link.ask(ALTER, 1, asked)["entries"]
        assert entry["error_code"] == "NONE", entry

    try:
        alter(ALICE)
        yield link
        alter(ALICE, remove=True)
    finally:
        link.close()


def throttled_ms(settings, topic):
    """The longest that a broker made it wait after an answer, in ms, as librdkafka tells it."""
    waits = []
    producer = Producer(
        settings | {
            "throttle_cb": lambda event: waits.append(event.throttle_time * 1000),
            "linger.ms": 0,
        }
    )  # fmt: skip
    for _ in range(20):
        producer.produce(topic, b"x" * SLOW_BYTES)
        producer.poll(0)
        assert producer.flush(LIMIT_S) == 0
        if waits:
            break
    return max(waits, default=0)


def test_a_quota_of_a_user_is_told_and_holds_for_its_certificate(broker, pki, topic, quota):
    component = {"entity_type": "user", "match_type": 0, "match": ALICE}
    told = quota.ask(DESCRIBE, 1, {"components": [component], "strict": True})
    (entry,) = told["entries"]
    assert entry["values"] == [{"key": "producer_byte_rate", "value": SLOW_BYTES}]
    shown = librdkafka(pki, broker.at("REQUESTED"), certificate="client")
    assert throttled_ms(shown, topic) > 0
    assert throttled_ms(librdkafka(pki, broker.at("REQUESTED")), topic) == 0, "it showed none"
    assert throttled_ms(librdkafka(pki, broker.at("SSL"), certificate="client"), topic) == 0, (
        "nobody asked for it"
    )


@pytest.mark.skipif(KAFKA, reason="commands of the appliance")
def test_who_resumes_a_session_is_who_began_it(broker, pki):
    """With TLS 1.2 (RFC 5077) no certificate is shown again."""
    context = pki.context(certificate="client", version=ssl.TLSVersion.TLSv1_2)
    session, resumed = None, []
    for _ in range(2):
        with (
            socket.create_connection(broker.address("MUTUAL"), LIMIT_S) as plain,
            context.wrap_socket(plain, server_hostname=HOST, session=session) as link,
        ):
            link.sendall(requests.api_versions())
            assert link.recv(4)
            resumed.append(link.session_reused)
            session = link.session
            run = typing(broker.bootstrap)
            words = ("--data", str(broker.data), "--over", "0", "-o", "json")
            users = {
                one["user"]
                for one in rows(run("connections", *words))
                if one["listener"] == "MUTUAL" and one["client_id"] == "bench"
            }
            assert users == {ALICE}
    assert resumed == [False, True]


@pytest.mark.skipif(KAFKA, reason="commands of the appliance")
def test_connections_are_listed_with_it(broker, pki, topic):
    run = typing(broker.bootstrap)
    held = [
        Producer(librdkafka(pki, broker.at(listener), certificate="client", client_id=listener))
        for listener in ("REQUESTED", "SSL")
    ]
    for one in held:
        one.produce(topic, b"one")
        assert one.flush(LIMIT_S) == 0
    words = ("--data", str(broker.data), "--over", "0", "-o", "json")
    for command in (("client", "list"), ("connections",)):
        users = {one["client_id"]: one["user"] for one in rows(run(*command, *words))}
        assert (users["REQUESTED"], users["SSL"]) == (ALICE, "ANONYMOUS")
