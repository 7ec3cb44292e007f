"""ACLs hold for who has logged in: rights are those of `User:NAME`."""

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.sasl.conftest import put_users
from tests.sasl.logged import MECHANISMS, LoggedIn
from tests.sasl.test_stock_logins import dotted

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


def allow(settings, topic):
    """Alice may write there, says who has these settings."""
    admin = AdminClient(settings)
    rule = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*",
        AclOperation.WRITE, AclPermissionType.ALLOW,
    )  # fmt: skip
    (done,) = admin.create_acls([rule]).values()
    done.result(30)
