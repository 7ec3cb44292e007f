"""Apache Kafka's own command line tools against three nodes whose voters come and go (KIP-853):
voters that they add, show and remove, features that they raise and lower, and what controllers
answer them (KIP-919). The same of Apache Kafka with PENSTOCK_TEST_BROKER=kafka."""

import re

import pytest

from benchmarks import kafka
from benchmarks.nodes import CLUSTER_ID
from tests.cluster.test_voters_come_and_go import Growing
from tests.differential.tools.launcher import Tools
from tests.differential.tools.session import CLASSES

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]
API_VERSIONS = 18
QUORUM, FEATURES = "kafka-metadata-quorum", "kafka-features"


@pytest.fixture(scope="module")
def tools():
    with Tools() as started:
        yield started


@pytest.fixture(scope="module")
def nodes(tools, tmp_path_factory):
    """Node 1 votes, and nodes 2 and 3 are brokers that could."""
    with Growing(tmp_path_factory.mktemp("tools"), 3) as running:
        running.start(2, 3)
        yield running


@pytest.fixture
def tool(tools, nodes):
    """Run a tool with the address of node 1, as a broker or as a controller: what it printed."""

    def run(name, *words, controller=False, code=0):
        place = nodes.places[0]
        port = place.controller_port if controller else place.port
        asked = ("--bootstrap-controller" if controller else "--bootstrap-server",
                 f"{place.host}:{port}")  # fmt: skip
        last = name == "kafka-cluster"  # its first word is a verb that the option belongs to
        said = tools.run(CLASSES[name], *((*words, *asked) if last else (*asked, *words)))
        assert said.code == code, (name, words, said)
        return said.out + said.err

    return run


def told(status, row):
    """What `describe --status` says there."""
    return re.search(rf"^{row}: +(.*)", status, re.MULTILINE)[1]


def test_controllers_are_added_shown_and_removed(nodes, tool, tmp_path):
    nodes.add(2)
    nodes.wait(lambda: nodes.directory(3), "3 observes")
    settings = tmp_path / "3.properties"
    lines = nodes[3].properties | {"log.dirs": str(nodes[3].files)}
    settings.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    added = tool(QUORUM, "--command-config", str(settings), "add-controller")
    assert "Added controller 3 with directory id" in added

    status = tool(QUORUM, "describe", "--status", controller=True)
    assert told(status, "ClusterId") == CLUSTER_ID
    assert int(told(status, "LeaderId")) == nodes.quorum_leader()
    voters = told(status, "CurrentVoters")
    assert re.findall(r'"id": (\d+)', voters) == ["1", "2", "3"]
    directory = re.findall(r'"directoryId": "?([\w-]+)', voters)[2]
    ports = re.findall(r"CONTROLLER://[^:]+:(\d+)", voters)
    assert list(map(int, ports)) == [place.controller_port for place in nodes.places]

    gone = ("remove-controller", "--controller-id", "3", "--controller-directory-id")
    tool(QUORUM, *gone, directory[::-1], code=1)
    removed = tool(QUORUM, *gone, directory, controller=True)
    assert re.search(f"Removed +KRaft controller 3 with directory id {directory}", removed)
    nodes.wait(lambda: set(nodes.voters()) == {1, 2}, "two vote")
    rows = tool(QUORUM, "describe", "--replication", controller=True).splitlines()[1:]
    leader = nodes.quorum_leader()
    assert {int(row.split()[0]): row.split()[-1] for row in rows if row.split()} == {
        1: "Leader" if leader == 1 else "Follower", 2: "Leader" if leader == 2 else "Follower",
        3: "Observer",
    }  # fmt: skip
    assert nodes.brokers() == [1, 2, 3]


def levels(nodes, number):
    values = {"client_software_name": "x", "client_software_version": "1"}
    features = nodes.ask(API_VERSIONS, 3, values, number)["finalized_features"]
    return {one["name"]: one["max_version_level"] for one in features}


def test_features_are_raised_and_lowered_for_all(nodes, tool):
    name = "transaction.version"
    assert levels(nodes, 1)[name] == 2
    for verb, level in (("downgrade", 1), ("upgrade", 2)):
        said = tool(FEATURES, verb, "--feature", f"{name}={level}")
        assert f"{name} was {verb}d to {level}" in said
        nodes.wait(lambda at=level: {levels(nodes, n)[name] for n in (1, 2, 3)} == {at}, "all know")
    said = tool(FEATURES, "upgrade", "--feature", f"{name}=9", code=1)
    assert "9" in said and levels(nodes, 3)[name] == 2
    shown = tool(FEATURES, "describe", controller=True)
    assert re.search(rf"{name}.*FinalizedVersionLevel: 2", shown)


def test_controllers_say_whose_they_are(nodes, tool):
    assert CLUSTER_ID in tool("kafka-cluster", "cluster-id", controller=True)
    listed = tool("kafka-cluster", "list-endpoints", controller=True)
    ports = {int(row.split()[2]) for row in listed.splitlines()[1:] if row.split()}
    assert ports == {place.controller_port for place in nodes.places}, listed
