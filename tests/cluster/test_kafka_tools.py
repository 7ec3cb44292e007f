"""Apache Kafka's own command line tools against three nodes: what they say of the quorum, of
replicas that move and that are missing, and what they elect. The same of Apache Kafka with
PENSTOCK_TEST_BROKER=kafka."""

import json
import re

import pytest

from benchmarks import kafka
from benchmarks.nodes import CLUSTER_ID
from tests.cluster.nodes import Nodes
from tests.cluster.test_brokers_decided import reassign
from tests.differential.tools.launcher import Tools
from tests.differential.tools.session import CLASSES

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(600),
]
ALL = {1, 2, 3}
TOPICS, MOVE = "kafka-topics --describe", "kafka-reassign-partitions"
ELECT = "kafka-leader-election --election-type"


@pytest.fixture(scope="module")
def tools():
    with Tools() as started:
        yield started


@pytest.fixture(scope="module")
def nodes(tools, tmp_path_factory):
    """They start while the JVM does."""
    with Nodes(tmp_path_factory.mktemp("tools")) as running:
        yield running


@pytest.fixture
def tool(tools, nodes):
    """Run a line as a user types it, without the address of the cluster: what it printed."""

    def run(line, stdin=""):
        name, *words = line.split()
        server = ["--bootstrap-server", nodes.bootstrap]
        words = [*words, *server] if name == "kafka-cluster" else [*server, *words]
        said = tools.run(CLASSES[name], *words, stdin=stdin)
        assert said.code == 0, (line, said)
        return said.out

    return run


@pytest.fixture
def plan(tmp_path):
    """A function that writes a file for a tool; returns its path."""

    def write(**content):
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({"version": 1, **content}))
        return str(path)

    return write


def moving(topic, *replicas):
    return [{"topic": topic, "partition": n, "replicas": one} for n, one in enumerate(replicas)]


def said_of(out):
    """Topics of which kafka-topics printed a partition."""
    return set(re.findall(r"Topic: (\S+)\s+Partition:", out))


def test_the_quorum_and_its_brokers_are_described(nodes, tool):
    leader = nodes.wait(lambda: max(nodes.quorum_leader(), 0), "one leads")
    status = tool("kafka-metadata-quorum describe --status")
    assert re.search(r"^ClusterId: +(\S+)", status)[1] == CLUSTER_ID
    assert int(re.search(r"^LeaderId: +(\d+)", status, re.MULTILINE)[1]) == leader
    voters = re.search(r"^CurrentVoters: +(.*)", status, re.MULTILINE)[1]
    assert set(map(int, re.findall(r'"id": (\d+)', voters))) == ALL
    rows = tool("kafka-metadata-quorum describe --replication").splitlines()[1:]
    told = {int(row.split()[0]): row.split()[-1] for row in rows}
    assert told == {one: "Leader" if one == leader else "Follower" for one in ALL}

    served = tool("kafka-broker-api-versions")
    assert set(map(int, re.findall(r"\(id: (\d+) rack", served))) == ALL
    assert "ERROR" not in served
    assert CLUSTER_ID in tool("kafka-cluster cluster-id")
    listed = tool("kafka-cluster list-endpoints")
    assert all(re.search(rf"\b{place.port}\b", listed) for place in nodes.places)
    features = tool("kafka-features describe")
    assert re.search(r"eligible.leader.replicas.version.*FinalizedVersionLevel: 1", features)


def test_a_setting_of_one_broker_and_of_all(nodes, tool):
    def shown(place):
        out = tool(f"kafka-configs --describe --entity-type brokers {place}")
        return re.findall(r"log.retention.ms=(\d+) sensitive=false synonyms=.*?(DYNAMIC\w+)", out)

    alter = "kafka-configs --alter --entity-type brokers"
    tool(f"{alter} --entity-name 2 --add-config log.retention.ms=7777777")
    tool(f"{alter} --entity-default --add-config log.retention.ms=8888888")
    one, every = ("7777777", "DYNAMIC_BROKER_CONFIG"), ("8888888", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    nodes.wait(lambda: shown("--entity-name 2") == [one], "it is broker 2's")
    nodes.wait(lambda: shown("--entity-default") == [every], "it is everybody's")
    nodes.wait(lambda: shown("--entity-name 1") == [], "broker 1 has none of its own")
    tool(f"{alter} --entity-name 2 --delete-config log.retention.ms")
    tool(f"{alter} --entity-default --delete-config log.retention.ms")


def throttles(nodes, topic):
    """Its replicas that are throttled, by setting; lists in order."""
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
    asked = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    (told,) = nodes.ask(32, 4, asked)["results"]
    return {
        one["name"]: ",".join(sorted(one["value"].split(",")))
        for one in told["configs"]
        if "throttled.replicas" in one["name"]
    }


def test_replicas_move(nodes, tool, plan):
    before, after = [[1, 2], [2, 1]], [[3, 2], [1, 3]]
    nodes.create("moves", assignment=before)
    topics = plan(topics=[{"topic": "moves"}])
    said = tool(f"{MOVE} --generate --topics-to-move-json-file {topics} --broker-list 1,2,3")
    current, proposed = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    assert [row["replicas"] for row in current["partitions"]] == before
    assert all(len(set(row["replicas"]) & ALL) == 2 for row in proposed["partitions"])

    given = f"--reassignment-json-file {plan(partitions=moving('moves', *after))}"
    said = tool(f"{MOVE} --execute --throttle 50000000 {given}")
    assert "The inter-broker throttle limit was set to 50000000 B/s" in said
    assert "Successfully started partition reassignments for moves-0,moves-1" in said
    assert throttles(nodes, "moves") == {
        "follower.replication.throttled.replicas": "0:3,1:3",
        "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
    }
    done = [f"Reassignment of partition moves-{n} is completed." for n in range(2)]

    def verified():
        said = tool(f"{MOVE} --verify {given}")
        return all(one in said for one in done)

    nodes.wait(verified, "they have moved")
    nodes.wait(
        lambda: set(throttles(nodes, "moves").values()) == {""}, "verifying took the throttles back"
    )
    assert [nodes.partition("moves", n).replicas for n in range(2)] == after
    assert "No partition reassignments found." in tool(f"{MOVE} --list")

    tool("kafka-console-producer --topic moves", stdin="a\nb\nc\n")
    ends = re.findall(r"moves:\d:(\d+)", tool("kafka-get-offsets --topic moves"))
    assert len(ends) == 2 and sum(map(int, ends)) == 3
    nodes.wait(lambda: nodes.level("moves", 2), "their followers have it")
    told = json.loads(tool("kafka-log-dirs --describe --topic-list moves").splitlines()[-1])
    held = {
        broker["broker"]: {p["partition"] for d in broker["logDirs"] for p in d["partitions"]}
        for broker in told["brokers"]
    }
    assert held == {1: {"moves-1"}, 2: {"moves-0"}, 3: {"moves-0", "moves-1"}}


def test_what_is_missing_is_shown_and_elected(nodes, tool, plan):
    """Node 1 is killed, then node 3, which alone has what was written last."""
    one = {"min.insync.replicas": "1"}
    nodes.create("lost", assignment=[[3, 1]], configs=one)
    nodes.create("short", assignment=[[2, 1]], configs={"min.insync.replicas": "2"})
    nodes.create("edge", assignment=[[2, 3, 1]], configs={"min.insync.replicas": "2"})
    nodes.create("stuck", assignment=[[2]], configs=one)
    chosen = f"{TOPICS} --topic (lost|short|edge|stuck)"
    nodes.kill(1)
    wanted = {"lost": [3], "short": [2], "edge": [2, 3]}
    nodes.wait(lambda: {t: nodes.partition(t).isr for t in wanted} == wanted, "1 is out of sync")
    assert said_of(tool(f"{chosen} --under-replicated-partitions")) == set(wanted)
    assert said_of(tool(f"{chosen} --under-min-isr-partitions")) == {"short"}
    assert said_of(tool(f"{chosen} --at-min-isr-partitions")) == {"lost", "edge", "stuck"}
    assert said_of(tool(f"{chosen} --unavailable-partitions")) == set()

    given = f"--reassignment-json-file {plan(partitions=moving('stuck', [2, 1]))}"
    reassign(nodes, "stuck", [2, 1])  # the tool refuses nodes that are gone
    assert "stuck-0: replicas: 2,1. adding: 1." in tool(f"{MOVE} --list")
    said = tool(f"{MOVE} --cancel --preserve-throttles {given}")
    assert "Successfully cancelled partition reassignment for: stuck-0" in said
    assert "No partition reassignments found." in tool(f"{MOVE} --list")

    tool("kafka-console-producer --topic lost", stdin="a\nb\n")
    nodes.kill(3)
    nodes.start(1)
    nodes.wait(lambda: nodes.partition("lost").leader == -1, "nobody leads it")
    assert said_of(tool(f"{chosen} --unavailable-partitions")) == {"lost"}
    rows = plan(partitions=[{"topic": "lost", "partition": 0}])
    done = "Successfully completed leader election ({}) for partitions lost-0"
    assert done.format("UNCLEAN") in tool(f"{ELECT} UNCLEAN --path-to-json-file {rows}")
    nodes.wait(lambda: nodes.partition("lost").leader == 1, "1 leads, without what it never had")
    assert tool("kafka-get-offsets --topic lost").strip() == "lost:0:0"
    nodes.start(3)
    nodes.wait(lambda: nodes.whole("lost"), "3 follows")
    assert done.format("PREFERRED") in tool(f"{ELECT} PREFERRED --topic lost --partition 0")
    nodes.wait(lambda: nodes.partition("lost").leader == 3, "3 is preferred")


def test_a_broker_that_is_gone_is_unregistered(nodes, tool):
    nodes.stop(3)
    nodes.wait(lambda: 3 not in nodes.brokers(), "it is fenced")
    port = rf"\b{nodes[3].port}\b"
    assert re.search(port, tool("kafka-cluster list-endpoints --include-fenced-brokers"))
    assert "Broker 3 is no longer registered." in tool("kafka-cluster unregister --id 3")
    assert not re.search(port, tool("kafka-cluster list-endpoints --include-fenced-brokers"))
