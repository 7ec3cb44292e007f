"""Dynamic settings of logins: a listener keeps mechanisms that it can offer."""

import pytest
from test_controller_scenarios import Cluster

from appliance.base import errors
from appliance.controller.configs import DELETE, SET, ConfigOperation
from appliance.metadata.image import BROKER

MECHANISMS = "sasl.enabled.mechanisms"
OF_LISTENER = f"listener.name.inside.{MECHANISMS}"
JAAS = "listener.name.inside.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture
def node():
    return Cluster(
        listeners="PLAINTEXT://localhost:9092,INSIDE://:9093",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
        sasl_enabled_mechanisms="SCRAM-SHA-512",
    )


def alter(node, key, value, kind=SET):
    return node.alter(BROKER, "1", ConfigOperation(key, kind, value))


@pytest.mark.parametrize("key", [MECHANISMS, OF_LISTENER])
def test_mechanisms_that_can_be_offered_are_taken(node, key):
    assert alter(node, key, "PLAIN,SCRAM-SHA-256") == (errors.NONE, "")
    assert node.image.config(BROKER, "1")[key] == "PLAIN,SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (MECHANISMS, "GSSAPI", "Kerberos is not served"),
        (OF_LISTENER, "SCRAM-SHA-512,OAUTHBEARER", "jwks.endpoint.url"),
        (OF_LISTENER, "nonsense", "it is not known"),
        (JAAS, "nonsense", JAAS),
        (JAAS, f"{MODULE} required user_a=secret", "not terminated by semi-colon"),
    ],
)
def test_logins_that_a_listener_cannot_have_are_refused(node, key, value, told):
    alter(node, key if key != JAAS else OF_LISTENER, "PLAIN,SCRAM-SHA-512")
    before = dict(node.image.config(BROKER, "1"))
    code, text = alter(node, key, value)
    assert (code, told in text) == (errors.INVALID_REQUEST, True), text
    assert node.image.config(BROKER, "1") == before
    assert "secret" not in text


def test_a_setting_without_which_the_default_would_hold_stays():
    """Of Kafka's default, GSSAPI, nothing is served."""
    node = Cluster(
        listeners="INSIDE://:9093", listener_security_protocol_map="INSIDE:SASL_PLAINTEXT"
    )
    assert alter(node, OF_LISTENER, "PLAIN") == (errors.NONE, "")
    code, text = alter(node, OF_LISTENER, None, DELETE)
    assert (code, "the default" in text) == (errors.INVALID_REQUEST, True), text
