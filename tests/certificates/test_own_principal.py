"""A node whose own certificate makes no node of it is warned before the others refuse it."""

import pytest

from appliance.base.clock import clock_here
from appliance.certificates.validation import check
from appliance.config.load import load
from benchmarks.certificates import Authority, put

NODES = "penstock.node.principals"
RULES = "ssl.principal.mapping.rules"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made, here = Authority("a CA"), tmp_path_factory.mktemp("own")
    put(here / "ca.pem", made.pem)
    made.issue("OU=nodes,CN=a.example").write(here, "server")
    return here


def warnings(folder, **more):
    settings = {
        "process.roles": "broker,controller", "node.id": "1",
        "listeners": "PLAINTEXT://localhost:1,NODES://localhost:2,CONTROLLER://localhost:3",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,NODES:SSL,CONTROLLER:SSL",
        "controller.listener.names": "CONTROLLER", "inter.broker.listener.name": "NODES",
        "controller.quorum.voters": "1@localhost:3,2@localhost:4,3@localhost:5",
        "ssl.keystore.location": str(folder / "server.pem"), "ssl.client.auth": "required",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }  # fmt: skip
    told = settings | {key.replace("_", "."): value for key, value in more.items()}
    found = check(load(None, told)[0], clock_here()).warnings
    return [one for one in found if NODES in one]


def test_one_of_the_principals_is_a_node(folder):
    own = {NODES: "User:CN=b.example;User:OU=nodes", RULES: "RULE:^.*(OU=nodes).*$/$1/"}
    assert warnings(folder, **own) == []
    assert warnings(folder) == [], "without principals every certificate is a node"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({NODES: "User:OU=nodes"}, "a.example"),
        ({NODES: "User:OU=node", RULES: "RULE:^.*(OU=nodes).*$/$1/"}, "is User:OU=nodes there"),
        ({NODES: "User:OU=nodes", RULES: "RULE:^CN=b$/b/"}, "no rule of ssl.principal.mapping"),
    ],
)
def test_another_one_is_warned_about_for_each_listener_of_nodes(folder, settings, told):
    found = warnings(folder, **settings)
    assert [one.split(" at ")[1].split(" ")[0] for one in found] == ["CONTROLLER", "NODES"]
    assert all(told in one and "refuse it" in one for one in found)
