"""What `penstock` says of three nodes: which live, which replicas are missing, and why."""

import pytest

from console.model import partitions, replicas
from console.model.link import Link
from console.model.nodes import look
from tests.cluster.nodes import Nodes
from tests.console_process import rows, typing

TOPIC = "t"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("commands")) as nodes:
        nodes.create(TOPIC, assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        yield nodes


@pytest.fixture
def run(nodes):
    return typing(nodes.bootstrap)


@pytest.fixture
def link(nodes):
    return Link(nodes.bootstrap, {}, 30)


def produce(run, count, size=20):
    run("produce", TOPIC, stdin="".join(f"{n:0{size}}\n" for n in range(count)))


def test_a_whole_cluster_is_told_as_such(nodes, run):
    nodes.wait(lambda: nodes.whole(TOPIC, 3), "all are in sync")
    (found,) = rows(run("cluster", "status", "-o", "json"))
    assert (found["whole"], found["degraded"], found["behind"]) == (True, [], [])
    assert [one["id"] for one in found["nodes"]] == [1, 2, 3]
    for one in found["nodes"]:
        assert one["roles"] == ["broker", "voter"] and one["state"] == "running"
        assert one["address"] == f"127.0.0.1:{nodes[one['id']].port}"
    assert [one["id"] for one in found["nodes"] if one["leads"]] == [nodes.quorum_leader()]
    assert found["quorum"]["voters"] == [1, 2, 3]
    assert found["partitions"]["under_replicated"] == found["partitions"]["offline"] == 0
    assert "3 nodes, whole" in run("cluster", "status").stdout


def test_every_node_tells_how_far_its_replicas_are(nodes, run, link):
    produce(run, 100)
    nodes.wait(lambda: nodes.level(TOPIC, 3), "all have everything")
    places = [one.place for one in partitions.partitions(link, [TOPIC])]
    has = [replicas.held(link, one.address, places) for one in look(link).all.values()]
    assert sum(one.end for one in has[0].values()) == 100
    assert {place: one.end for place, one in has[0].items()} == {
        place: one.end for place, one in has[1].items()
    }
    assert has[1] == has[2] == has[0], "bytes too"


def test_a_dead_node_is_told_with_what_it_is_missing_from(nodes, run):
    nodes.kill(3)
    nodes.wait(lambda: 3 not in nodes.brokers(), "it is fenced")
    done = run("cluster", "status", "-o", "json", code=1)
    (found,) = rows(done)
    assert found["degraded"][0] == "node 3 is fenced" and not found["whole"]
    mine = [one for one in found["behind"] if one["topic"] == TOPIC]
    assert [[each["why"] for each in one["missing"]] for one in mine] == [["fenced"]] * 3
    assert "node 3 is fenced" in run("cluster", "status", code=1).stdout
    produce(run, 50)
    nodes.start(3)
    nodes.wait(lambda: nodes.whole(TOPIC, 3), "it has caught up")
    run("cluster", "status")
