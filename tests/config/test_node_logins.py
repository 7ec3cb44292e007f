"""Settings of logins between nodes: Kafka's names, and what does not fit is refused by name."""

import pytest

from appliance.authentication.jaas import PLAIN_MODULE, SCRAM_MODULE
from appliance.base.caller import Caller, Principal
from appliance.base.errors import ConfigError
from appliance.config import acl_checks, between_nodes, node_logins
from appliance.shell.process_authorizer import authorizer_of
from tests.config.loading import load

CLUSTER = {
    "node.id": "1",
    "controller.quorum.voters": "1@one.host:9093,2@two.host:9093,3@three.host:9093",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "listeners": "PLAINTEXT://localhost:9092,BROKERS://:9094,CONTROLLER://:9093",
    "listener.security.protocol.map":
        "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
}  # fmt: skip
BROKERS = "listener.name.brokers.scram-sha-512.sasl.jaas.config"
CONTROLLERS = "listener.name.controller.plain.sasl.jaas.config"


def scram(user="node", password="tops3cret"):
    return f'{SCRAM_MODULE} required username="{user}" password="{password}";'


def plain(user="admin", password="tops3cret"):
    return (
        f'{PLAIN_MODULE} required username="{user}" password="{password}"'
        f' user_{user}="{password}";'
    )  # fmt: skip


WHOLE = CLUSTER | {BROKERS: scram(), CONTROLLERS: plain()}


def refused(settings, words):
    with pytest.raises(ConfigError, match=words) as told:
        load(None, settings)
    assert "tops3cret" not in str(told.value)


def logins(settings):
    config, told = load(None, settings)
    assert not [one for one in told if "advertised.listeners" not in one]
    return {
        way.listener: node_logins.credentials(config, key, way)
        for key, way in node_logins.routes(config)
    }


def test_each_listener_of_nodes_has_its_login():
    found = logins(WHOLE)
    assert {name: (one.mechanism, one.user) for name, one in found.items()} == {
        "BROKERS": ("SCRAM-SHA-512", "node"), "CONTROLLER": ("PLAIN", "admin"),
    }  # fmt: skip


def test_the_protocol_may_be_named_in_place_of_the_listener():
    own = {key: value for key, value in WHOLE.items() if key != "inter.broker.listener.name"}
    config, _ = load(None, own | {"security.inter.broker.protocol": "SASL_PLAINTEXT"})
    assert between_nodes.to_brokers(config) == ("BROKERS", "SASL_PLAINTEXT", "")
    assert [way.listener for _, way in node_logins.routes(config)] == ["CONTROLLER", "BROKERS"]


def test_controllers_may_log_in_by_scram_of_their_settings():
    key = "listener.name.controller.scram-sha-512.sasl.jaas.config"
    own = {"sasl.mechanism.controller.protocol": "SCRAM-SHA-512", key: scram("voter")}
    assert logins(WHOLE | own)["CONTROLLER"].user == "voter"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "broker.protocol=GSSAPI: Kerberos"),
        (
            {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"},
            "broker.protocol=OAUTHBEARER: nodes do not log in by it; nodes log in at BROKERS by",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            r"brokers.scram-sha-256.sasl.jaas.config: BROKERS leads to other nodes",
        ),
        ({BROKERS: f'{SCRAM_MODULE} required username="node";'}, 'must have username="…" passw'),
        (
            {"listener.name.brokers.sasl.enabled.mechanisms": "PLAIN"},
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms",
        ),
        (
            {CONTROLLERS: f'{PLAIN_MODULE} required username="a" password="tops3cret";'},
            'controller.plain.sasl.jaas.config: it must have user_a="PASSWORD"',
        ),
    ],
)
def test_what_does_not_fit_is_refused(changed, words):
    refused(WHOLE | changed, words)


def test_without_a_mechanism_the_default_is_named():
    own = {key: value for key, value in WHOLE.items() if "mechanism.inter" not in key}
    refused(own, "broker.protocol=GSSAPI, the default: Kerberos is not served")


def test_a_mechanism_that_no_node_uses_is_said():
    own = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT,"
           "CONTROLLER:PLAINTEXT"}  # fmt: skip
    _, told = load(None, WHOLE | own)
    assert any("sasl.mechanism.controller.protocol has no effect here" in one for one in told)


def test_who_is_alone_logs_in_nowhere():
    """As files of one Kafka broker have it."""
    alone = {
        "listeners": "SASL_PLAINTEXT://:9093", "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain(),
    }  # fmt: skip
    _, told = load(None, alone)
    assert len(told) == 2 and all("has no effect here" in one for one in told)


# Who is a node ------------------------------------------------------------------------------------


def caller(user, listener):
    return Caller(Principal("User", user), "c", "127.0.0.1", listener)


def test_the_user_of_this_node_is_a_node_where_nodes_come():
    """Without rules and without penstock.node.principals."""
    config, _ = load(None, WHOLE)
    authorizer = authorizer_of(config)
    assert acl_checks.nodes(config)[0] == ("User:admin", "User:node")
    assert authorizer.allows_everything(caller("admin", "CONTROLLER"))
    assert authorizer.allows_everything(caller("node", "BROKERS"))
    for user, listener in (("node", "PLAINTEXT"), ("alice", "BROKERS"), ("alice", "CONTROLLER")):
        assert not authorizer.allows_everything(caller(user, listener))


def test_who_is_named_is_a_node_and_nobody_else():
    config, _ = load(None, WHOLE | {"penstock.node.principals": "User:other"})
    assert acl_checks.nodes(config)[0] == ("User:other",)
    assert authorizer_of(config).allows_everything(caller("other", "CONTROLLER"))
    assert not authorizer_of(config).allows_everything(caller("admin", "CONTROLLER"))


def test_rules_decide_where_there_are_rules():
    rules = {"authorizer.class.name": acl_checks.STANDARD}
    refused(WHOLE | rules, "must name whom nodes are to each other")
    config, _ = load(None, WHOLE | rules | {"super.users": "User:admin;User:node"})
    assert acl_checks.nodes(config)[0] == ()
    assert authorizer_of(config).allows_everything(caller("node", "BROKERS"))
