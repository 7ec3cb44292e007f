"""APIs between nodes are served to nodes alone: to the principals that the settings name, known by
a certificate on a listener of nodes, and to whom a rule allows CLUSTER_ACTION. Whoever else asks is
told CLUSTER_AUTHORIZATION_FAILED, and nothing changes."""

import time
from pathlib import Path

import pytest

from appliance.authorization.authorizer import AllowClients, NodePrincipals
from appliance.authorization.needs import ACT_AS_BROKER, ALTER_CLUSTER, WRITE_TOPIC
from appliance.authorization.operations import CLUSTER, CLUSTER_ACTION, CLUSTER_NAME
from appliance.authorization.rights import Rights
from appliance.authorization.standard import ALLOW, LITERAL, AclRule, StandardAuthorizer
from appliance.base import errors
from appliance.base.caller import ANONYMOUS, Caller, Principal
from appliance.base.errors import ConfigError
from appliance.config import acl_checks
from appliance.config.broker import BrokerConfig
from appliance.config.load import load
from appliance.handlers import registry
from appliance.shell.process_authorizer import authorizer_of
from appliance.wire.envelope import encode_principal
from tests.authorization.refusing import LIMIT_S, SETTINGS, codes, tree
from tests.netproc.netproc_world import World
from tests.strangers import _VALUES as OF_THE_QUORUM

NODE, LOADER = Principal("User", "OU=nodes"), Principal("User", "loader")
NODES = NodePrincipals(["User:OU=nodes"], ["CONTROLLER", "PLAINTEXT"])
REFUSED = errors.CLUSTER_AUTHORIZATION_FAILED
OTHER = 7
OF_BROKERS = {
    56: {"broker_id": OTHER, "broker_epoch": 1, "topics": []},
    58: {
        "request_data": b"", "request_principal": encode_principal("User", "root"),
        "client_host_address": bytes([127, 0, 0, 1]),
    },
    62: {
        "broker_id": OTHER, "cluster_id": "", "incarnation_id": b"i" * 16, "rack": None,
        "listeners": [{"name": "PLAINTEXT", "host": "h", "port": 1, "security_protocol": 0}],
        "features": [], "is_migrating_zk_broker": False, "log_dirs": [b"d" * 16],
        "previous_broker_epoch": -1,
    },
    63: {
        "broker_id": 1, "broker_epoch": 9, "current_metadata_offset": 1, "want_fence": True,
        "want_shut_down": False, "offline_log_dirs": [], "cordoned_log_dirs": [],
    },
    67: {"broker_id": OTHER, "broker_epoch": 1},
    70: {
        "controller_id": OTHER, "incarnation_id": b"i" * 16, "zk_migration_ready": False,
        "listeners": [], "features": [],
    },
    73: {"broker_id": OTHER, "broker_epoch": 1, "directories": []},
}  # fmt: skip
KEYS = [row.key for row in registry.CONTROLLERS_ALONE]
FAR = 1 << 40


class Controllers:
    """One appliance with a listener of controllers; `asked` asks there as a principal."""

    def __init__(self, path, authorizer):
        listeners = "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
        self.world = World(path, SETTINGS | {"listeners": listeners}, (), authorizer)
        self.world.io_process()
        give_up = time.monotonic() + LIMIT_S
        while not self.runs:
            assert time.monotonic() < give_up, self.state
            self.world.turn()
            self.world.io_turn()

    def asked(self, principal, key, version, values, listener=1):
        before = set(self.world.server.shared.open)
        client = self.world.client("c", listener)
        [new] = set(self.world.server.shared.open) - before
        self.world.server.shared.open[new].principal = principal
        try:
            return tree(client.ask(key, version, turns=200, **values))
        finally:
            client.close()
            self.world.turn()

    @property
    def runs(self):
        """Whether it has registered and is unfenced."""
        return [row for row in self.state[3].values() if not row[1]]

    @property
    def state(self):
        """What no stranger changes: leader, epoch, quorum-state, log and nodes."""
        quorum = self.world.control._quorum
        image, leadership = quorum.images.committed, quorum.leadership
        voted = Path(self.world.path, "__cluster_metadata-0/quorum-state").read_text()
        brokers = {number: (one.epoch, one.fenced) for number, one in image.brokers.items()}
        return leadership, voted, quorum.log.end_offset, brokers, sorted(image.controllers)


def values_of(key):
    if key in OF_BROKERS:
        return OF_BROKERS[key]
    target = 1
    return {"cluster_id": None, "voter_id": target} | OF_THE_QUORUM[key](5, OTHER, FAR, 4, target)


def versions(key):
    row = next(row for row in registry.CONTROLLERS_ALONE if row.key == key)
    return sorted({row.lowest, row.highest})


@pytest.fixture(scope="module")
def open_to_clients(tmp_path_factory):
    one = Controllers(tmp_path_factory.mktemp("open"), AllowClients(NODES))
    yield one
    one.world.close()


@pytest.fixture(scope="module")
def with_rules(tmp_path_factory):
    authorizer = StandardAuthorizer(["User:root"], nodes=NODES)
    one = Controllers(tmp_path_factory.mktemp("rules"), authorizer)
    yield one
    one.world.close()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("who", [LOADER, ANONYMOUS], ids=["certificate", "anonymous"])
def test_a_client_is_refused_and_nothing_changes(open_to_clients, with_rules, key, who):
    for one in (open_to_clients, with_rules):
        before = one.state
        for version in versions(key):
            assert codes(one.asked(who, key, version, values_of(key))) == {REFUSED}, version
        assert one.state == before


@pytest.mark.parametrize("key", KEYS)
def test_a_node_is_served(open_to_clients, with_rules, key):
    for one in (open_to_clients, with_rules):
        for version in versions(key):
            assert REFUSED not in codes(one.asked(NODE, key, version, values_of(key)))


def test_whoever_has_a_rule_for_cluster_action_is_served(with_rules):
    rule = AclRule(CLUSTER, LITERAL, CLUSTER_NAME, "User:loader", "*", CLUSTER_ACTION, ALLOW)
    authorizer = with_rules.world.seat.authorizer
    authorizer.add("rule", rule)
    try:
        for key in KEYS:
            version = versions(key)[-1]
            assert REFUSED not in codes(with_rules.asked(LOADER, key, version, values_of(key)))
    finally:
        authorizer.drop("rule")
    for key in (52, 67):  # who leads or not: a vote has ended that
        assert codes(with_rules.asked(LOADER, key, 0, values_of(key))) == {REFUSED}


# Who is a node ------------------------------------------------------------------------------------


def settings(**more):
    names = {
        "listener.security.protocol.map": "NODES:SSL,CONTROLLER:SSL,OUTSIDE:SASL_SSL",
        "penstock.node.principals": "User:OU=nodes;User:CN=kafka,O=Example",
    }
    return BrokerConfig.of(names | more)


def of(principal, listener, **more):
    return Rights(
        Caller(principal, "client", "10.0.0.1", listener), authorizer_of(settings(**more))
    )


STANDARD = {"authorizer.class.name": acl_checks.STANDARD, "super.users": "User:root"}


@pytest.mark.parametrize("more", [{}, STANDARD], ids=["open", "rules"])
def test_a_node_is_one_by_its_certificate_alone(more):
    kafka = Principal("User", "CN=kafka,O=Example")
    for listener in ("NODES", "CONTROLLER"):
        assert of(NODE, listener, **more).everything and of(kafka, listener, **more).everything
    for listener in ("OUTSIDE", "HERE", ""):
        assert of(NODE, listener, **more).refusal(ACT_AS_BROKER) == REFUSED
    assert of(LOADER, "NODES", **more).refusal(ACT_AS_BROKER) == REFUSED


def test_without_an_authorizer_clients_may_do_everything_else():
    client = of(LOADER, "OUTSIDE")
    assert client.refusal(WRITE_TOPIC, "t") == client.refusal(ALTER_CLUSTER) == errors.NONE
    assert client.some(WRITE_TOPIC)
    assert authorizer_of(BrokerConfig.of({})).allows_everything(client.caller)


def test_what_is_no_principal_is_refused():
    with pytest.raises(ConfigError, match="principals: nodes is no principal"):
        load(None, {"penstock.node.principals": "nodes"})


def test_principals_without_a_listener_with_certificates_are_told():
    _, warnings = load(None, {"penstock.node.principals": "User:nodes"})
    assert any("no listener stands for SSL" in one for one in warnings)


def test_a_delegation_token_makes_nobody_a_node():
    node = Caller(NODE, "", "127.0.0.1", "CONTROLLER")
    assert NODES.has(node) and not NODES.has(node._replace(by_token=True))
