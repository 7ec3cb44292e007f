"""ACLs hold for who has logged in: rights are those of `User:NAME`."""

import json

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.console_process import typing
from tests.sasl.conftest import put_users
from tests.sasl.logged import MECHANISMS, LoggedIn
from tests.sasl.test_stock_logins import dotted
from tests.tls.stock import read

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Bob is a super user, and so is whoever comes by the listener of this host."""
    words = {"authorizer.class.name": AUTHORIZER, "super.users": "User:bob;User:ANONYMOUS"}
    with LoggedIn(tmp_path_factory.mktemp("guarded") / "data", words) as running:
        put_users(running.bootstrap)
        yield running


def sent(settings, topic):
    """The name of the error with which a record is answered, "" when it is taken."""
    told = []
    producer = Producer(settings | {"log_level": 0, "message.timeout.ms": "30000"})
    producer.produce(topic, b"x", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(60) == 0
    return told[0].name() if told[0] is not None else ""


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_has_logged_in_may_what_rules_allow_its_name(guarded, mechanism):
    topic = guarded.peer.create(1, {})
    at = guarded.at("SASL_PLAINTEXT")
    alice = dotted(at, mechanism, "alice", "alice-secret")
    bob = dotted(at, mechanism, "bob", "bob-secret")
    assert sent(bob, topic) == ""
    assert sent(alice, topic) == "TOPIC_AUTHORIZATION_FAILED"
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        allow(alice, topic)
    allow(bob, topic)
    assert sent(alice, topic) == ""


def test_a_user_is_added_with_what_it_may(guarded):
    """All that a client needs: its file, and no tool of Kafka's."""
    topic = guarded.peer.create(1, {})
    run = typing(guarded.bootstrap)
    for user, words in (
        ("loader", ["--can", f"write:{topic}"]),
        ("reader", ["--can", f"read:{topic[:-1]}*"]),
    ):
        told = run("user", "add", user, *words, "--mechanism", "SCRAM-SHA-256")
        given = dict(line.split("=", 1) for line in told.stdout.splitlines())
        if user == "loader":
            assert sent(given, topic) == ""
            continue
        assert sent(given, topic) == "TOPIC_AUTHORIZATION_FAILED"
        assert "may read:" in told.stderr
        assert read(given, topic, 1, "reader-1") == [b"x"]
        assert heard(given, topic, "others") == "GROUP_AUTHORIZATION_FAILED"
    assert "none of write:TOPIC" in run("user", "add", "x", "--can", "drink", code=2).stderr
    assert "x" not in {one["user"] for one in json.loads(run("user", "list", "-o", "json").stdout)}


def heard(settings, topic, group):
    """The first error of a member of that group."""
    consumer = Consumer(settings | {"group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    try:
        for _ in range(600):
            message = consumer.poll(0.1)
            if message is not None and message.error() is not None:
                return message.error().name()
    finally:
        consumer.close()
    return ""


def allow(settings, topic):
    """Alice may write there, says who has these settings."""
    admin = AdminClient(settings)
    rule = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*",
        AclOperation.WRITE, AclPermissionType.ALLOW,
    )  # fmt: skip
    (done,) = admin.create_acls([rule]).values()
    done.result(30)
