"""Logins by tokens: the same answers as Apache Kafka's, new keys, librdkafka."""

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from benchmarks import kafka
from benchmarks.peer import Wire
from tests.broker_process import KAFKA
from tests.sasl.logged import HOST, LoggedIn
from tests.sasl.provider import AUDIENCE, ISSUER, Provider
from tests.sasl.talk import Talk

pytestmark = pytest.mark.skipif(KAFKA, reason="Apache Kafka stands beside it")
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
OWN = "listener.name.only."


class ByToken(LoggedIn):
    """Its listener ONLY takes tokens of the provider."""

    def __init__(self, data, keys, **options):
        url = Path(keys).as_uri()
        self.url = url
        super().__init__(data, {
            f"{OWN}sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{OWN}oauthbearer.sasl.jaas.config": f"{MODULE} required;",
            f"{OWN}oauthbearer.sasl.server.callback.handler.class": HANDLER,
            f"{OWN}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
            f"{OWN}oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{OWN}oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
            f"{OWN}oauthbearer.sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "100",
            **options.pop("settings", {}),
        }, **options)  # fmt: skip

    def command(self):
        words = super().command()
        if self.of_kafka:
            words.insert(1, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.url}")
            words.insert(1, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={self.url[7:]}")
        return words


@pytest.fixture(scope="module")
def provider():
    return Provider()


@pytest.fixture(scope="module")
def keys(provider, tmp_path_factory):
    file = tmp_path_factory.mktemp("issuer") / "keys.json"
    file.write_bytes(provider.jwks())
    return file


@pytest.fixture(scope="module")
def ours(keys, tmp_path_factory):
    with ByToken(tmp_path_factory.mktemp("tokens") / "data", keys) as running:
        yield running


@pytest.fixture(scope="module")
def apache(keys, tmp_path_factory):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    data = tmp_path_factory.mktemp("tokens-kafka") / "data"
    with ByToken(data, keys, of_kafka=True) as running:
        yield running


def first(token, acts_as="", scheme="Bearer", more=""):
    name = f"a={acts_as}" if acts_as else ""
    return f"n,{name},\x01auth={scheme} {token}\x01{more}\x01".encode()


def ending(provider):
    """A token that has just ended, by a clock that may be wrong."""
    now = int(time.time())
    return provider.token(iat=now - 60, exp=now - 5)


def messages(provider):
    """By what is said, the messages of the client."""
    good = provider.token()
    said = {name: [first(token), b"\x01"] for name, token in provider.bad().items()}
    return said | {
        "good": [first(good)],
        "good, as itself": [first(good, "carol")],
        "as somebody else": [first(good, "dave")],
        "with extensions": [first(good, more="trace=on\x01")],
        "with a bad extension": [first(good, more="tr4ce=on\x01")],
        "auth twice": [first(good, more="auth=Bearer x\x01")],
        "by another scheme": [first(good, scheme="Basic")],
        "in lower case": [first(good, scheme="bearer")],
        "nothing": [b""],
        "the end before the beginning": [b"\x01"],
        "a second token behind a bad one": [first("a.b.c"), first(good)],
        "a scope that is no text": [first(provider.token(scope=7))],
        "audiences": [first(provider.token(aud=["other", AUDIENCE]))],
        "within the skew": [first(ending(provider))],
    }


def answers(broker, said):
    found = {}
    for name, steps in said.items():
        with Wire((HOST, broker.ports["ONLY"])) as wire:
            talk = Talk(wire)
            talk.handshake("OAUTHBEARER")
            for step in steps:
                if talk.authenticate(step) == "closed":
                    break
            *_, last = talk.said
            if last != "closed" and not last[0] and not last[2]:
                talk.any(3, 1, b"\xff\xff\xff\xff")
        found[name] = [one[:3] if isinstance(one, tuple) else one for one in talk.said]
    return found


def test_the_same_answers_as_apache_kafka(ours, apache, provider):
    said = messages(provider)
    mine, theirs = answers(ours, said), answers(apache, said)
    assert mine["good"][1:] == [(0, "", b""), "answered"]
    assert theirs.pop("by another scheme")[1] == "closed", "there an exception"
    assert mine.pop("by another scheme")[1][0] == 58
    within = [said.pop("within the skew") for said in (mine, theirs)]
    assert [one[-1] for one in within] == ["answered", "closed"], "ours is served for a second"
    assert mine == theirs


def test_a_session_ends_with_its_token(ours, provider):
    with ours.wire("ONLY") as wire:
        talk = Talk(wire)
        talk.handshake("OAUTHBEARER")
        _, _, _, lifetime = talk.authenticate(first(provider.token()))
    assert 290_000 < lifetime <= 300_000
    with ours.wire("ONLY") as wire:
        talk = Talk(wire)
        talk.handshake("OAUTHBEARER")
        ended = ending(provider)
        assert 0 < talk.authenticate(first(ended))[3] <= 1000, "0 would be for ever"


def client(broker, token):
    return {
        "bootstrap.servers": broker.at("ONLY"), "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (token(), time.time() + 300),
    }  # fmt: skip


def test_librdkafka_writes_and_reads_and_is_told_who_it_is(ours, provider):
    producer = Producer(client(ours, provider.token))
    producer.produce("by-token", b"hello")
    assert producer.flush(30) == 0
    own = {"group.id": "by-token", "auto.offset.reset": "earliest"}
    consumer = Consumer(client(ours, provider.token) | own)
    consumer.subscribe(["by-token"])
    records = consumer.consume(1, 30)
    consumer.close()
    assert [one.value() for one in records] == [b"hello"]
    told = []
    refused = AdminClient(client(ours, provider.unsigned) | {"error_cb": told.append})
    with pytest.raises(KafkaException):
        refused.list_topics(timeout=3)
    refused.poll(1)
    assert any("invalid_token" in one.str() for one in told)


def test_keys_are_replaced_while_it_runs(ours, provider, keys):
    provider.add_key("second", "ES256")
    token = provider.token("second")

    def code():
        with ours.wire("ONLY") as wire:
            talk = Talk(wire)
            talk.handshake("OAUTHBEARER")
            return talk.authenticate(first(token))[2]

    assert code() == b'{"status":"invalid_token"}'
    new = keys.with_suffix(".new")
    new.write_bytes(provider.jwks())
    os.replace(new, keys)
    end = time.monotonic() + 30
    while code():
        assert time.monotonic() < end, "it reads the new keys when a token names one"
        time.sleep(0.05)
