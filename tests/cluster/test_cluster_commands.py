"""What `penstock` says of three nodes: which live, which replicas are missing, and why."""

import json
import shutil
from contextlib import suppress
from subprocess import PIPE

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from appliance.shell.version import current
from console.model.asking.link import Link
from console.model.cluster.nodes import read_nodes
from console.model.topics import partitions, replicas
from tests.cluster.nodes import Nodes
from tests.console_process import rows, started, typing

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
        assert one["version"] == current()
    assert [one["id"] for one in found["nodes"] if one["leads"]] == [nodes.quorum_leader()]
    assert found["quorum"]["voters"] == [1, 2, 3]
    assert found["partitions"]["under_replicated"] == found["partitions"]["offline"] == 0
    table = run("cluster", "status").stdout
    assert "3 nodes, whole" in table and table.count(current()) == 3


def test_settings_are_asked_of_the_node_that_is_named(run):
    for number in ("1", "2", "3"):
        (found,) = rows(run("config", "get", "--broker", number, "node.id", "-o", "json"))
        assert found["value"] == number
    run("config", "set", "--broker", "2", "log.cleaner.backoff.ms=14000", "--yes")
    told = [
        rows(run("config", "get", "--broker", number, "log.cleaner.backoff.ms", "-o", "json"))
        for number in ("1", "2")
    ]
    assert [one["value"] for (one,) in told] == ["15000", "14000"]
    assert "expected" in run("config", "get", "--broker", "9", code=1).stderr
    run("config", "set", "--loggers", "3", "penstock.control=DEBUG", "--yes")
    told = [
        rows(run("config", "get", "--loggers", number, "penstock.control", "-o", "json"))
        for number in ("2", "3")
    ]
    assert [one["value"] for (one,) in told] == ["INFO", "DEBUG"]
    run("config", "set", "--loggers", "3", "penstock.control=INFO", "--yes")


def test_every_node_tells_how_far_its_replicas_are(nodes, run, link):
    produce(run, 100)
    nodes.wait(lambda: nodes.level(TOPIC, 3), "all have everything")
    places = [one.place for one in partitions.partitions(link, [TOPIC])]
    has = [
        replicas.read_replicas(link, one.address, places) for one in read_nodes(link).all.values()
    ]
    assert sum(one.end for one in has[0].values()) == 100
    assert {place: one.end for place, one in has[0].items()} == {
        place: one.end for place, one in has[1].items()
    }
    assert has[1] == has[2] == has[0], "bytes too"


def replicas_of(run, topic):
    (found,) = rows(run("topic", "describe", topic, "-o", "json"))
    return [one["replicas"] for one in found["partitions"]]


def test_a_topic_gets_more_replicas_and_fewer(nodes, run):
    nodes.create("r", assignment=[[1], [2]], factor=1)
    for partition in ("0", "1"):  # else all may go to one of them
        run("produce", "r", "-p", partition, stdin="x\n" * 100)
    planned = rows(run("topic", "replicas", "set", "r", "3", "--dry-run", "-o", "json"))
    assert [one["before"] for one in planned] == ["1", "2"]
    assert replicas_of(run, "r") == [[1], [2]], "nothing was done"
    made = rows(run("topic", "replicas", "set", "r", "3", "--yes", "--wait", "-o", "json"))
    assert [one["status"] for one in made] == ["done", "done"]
    grown = [[1, 2, 3]] * 2
    nodes.wait(lambda: list(map(sorted, replicas_of(run, "r"))) == grown, "every node knows it")
    assert [one[0] for one in replicas_of(run, "r")] == [1, 2], "who leads stays"
    nodes.wait(lambda: nodes.whole("r", 2), "all are in sync")
    planned = rows(run("topic", "replicas", "set", "r", "2", "--dry-run", "-o", "json"))
    assert {len(one["after"].split(",")) for one in planned} == {2}
    run("topic", "replicas", "set", "r", "0:1,2", "1:3,1", "--yes", "--wait")
    nodes.wait(lambda: replicas_of(run, "r") == [[1, 2], [3, 1]], "every node knows it")
    assert rows(run("topic", "replicas", "set", "r", "1:3,1", "-o", "json")) == []


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        ("4", 1, "4 replicas wanted, only nodes 1, 2, 3 can hold one"),
        ("0:1,9", 2, "there is no node 9"),
        ("7:1", 2, "has no partition 7"),
        ("0:1,1", 2, "named twice"),
        ("many", 2, "'many' is neither a number of replicas nor"),
    ],
)
def test_what_replicas_cannot_be(run, wanted, code, said):
    assert said in run("topic", "replicas", "set", TOPIC, wanted, "--yes", code=code).stderr


def test_a_topic_with_more_replicas_than_nodes_is_refused_with_a_remedy(run):
    done = run("topic", "create", "too-many", "-r", "4", code=1)
    assert "only 3 broker(s) are registered" in done.stderr
    assert "cluster status" in done.stderr


def moves_to_a_dead_node_wait_and_are_taken_back(run):
    before = replicas_of(run, "r")
    done = run("topic", "replicas", "set", "r", "0:1,2,3", "--yes")
    assert "Node 3 does not run" in done.stderr
    (move,) = rows(run("topic", "replicas", "status", "-o", "json"))
    assert (move["topic"], move["partition"], move["adding"]) == ("r", 0, [3])
    assert move["copied"] == 0 and move["bytes"] > 0
    (told,) = rows(run("topic", "replicas", "cancel", "r", "-o", "json"))
    assert (told["partition"], told["status"]) == ("r:0", "taken back")
    assert [set(one) for one in replicas_of(run, "r")] == [set(one) for one in before]
    assert rows(run("topic", "replicas", "status", "-o", "json")) == []


def test_a_dead_node_is_told_with_what_it_is_missing_from(nodes, run):
    nodes.create("only-there", assignment=[[3]], factor=1)
    nodes.kill(3)
    nodes.wait(lambda: all(3 not in nodes.brokers(one) for one in (1, 2)), "it is fenced")
    done = run("cluster", "status", "-o", "json", code=1)
    (found,) = rows(done)
    assert found["degraded"][0] == "node 3 is fenced" and not found["whole"]
    mine = [one for one in found["behind"] if one["topic"] == TOPIC]
    assert [[each["why"] for each in one["missing"]] for one in mine] == [["fenced"]] * 3
    assert "node 3 is fenced" in run("cluster", "status", code=1).stdout
    assert "node 3 is fenced" in run("topic", "describe", TOPIC).stdout
    assert rows(run("topic", "list", TOPIC, "-o", "json"))[0]["under_replicated"] == 3
    moves_to_a_dead_node_wait_and_are_taken_back(run)
    produce(run, 50)


def test_an_empty_node_takes_the_place_of_a_lost_one(nodes, run):
    done = run("cluster", "replace", "3", code=1)
    assert "only node 3 has all records of only-there:0" in done.stderr
    done = run("topic", "describe", "only-there")
    assert "node 3 is fenced" in done.stdout and "no leader" in done.stdout
    done = run("topic", "delete", "only-there", "--yes")
    assert "only-there partition 0 is not counted" in done.stderr
    done = run("cluster", "replace", "3", "--check", "-o", "json")
    assert rows(done)[0]["status"] == "can be replaced"
    assert f"node.id=3, at 127.0.0.1:{nodes[3].port}" in done.stderr
    shutil.rmtree(nodes[3].data)
    nodes.start(3)
    (told,) = rows(run("cluster", "replace", "3", "-o", "json"))
    assert told["status"] == "whole" and told["in_sync"] == told["partitions"] > 3
    nodes.wait(lambda: nodes.whole(TOPIC, 3), "every node knows it")
    run("cluster", "status")
    nodes.compare_replicas(TOPIC, 3)
    nodes.wait(lambda: prefers(nodes) == {1, 2, 3}, "it leads again, from its new folder")


def prefers(nodes):
    """Who leads, when those that are first of the replicas are asked for."""
    wanted = [TopicPartition(TOPIC, index) for index in range(3)]
    with suppress(KafkaException):
        admin = AdminClient({"bootstrap.servers": nodes.bootstrap})
        admin.elect_leaders(ElectionType.PREFERRED, wanted).result(30)
    return {one.leader for one in nodes.partitions(TOPIC).values()}


def test_a_node_leaves_for_good(nodes, run, link):
    assert "--fewer-replicas" in run("cluster", "leave", "3", "--yes", code=1).stderr
    leave = ("cluster", "leave", "3", "--fewer-replicas", "--yes", "-o", "json")
    with started(nodes.bootstrap, *leave, stdout=PIPE, stderr=PIPE, text=True) as leaving:
        for line in leaving.stderr:
            if "stop it now" in line:
                break
        else:
            pytest.fail(f"it ended: {leaving.stdout.read()}")
        run("topic", "create", "meanwhile", "-p", "6", "-r", "1")
        nodes.wait(lambda: nodes.whole("meanwhile", 6), "every node knows it")
        assert all(3 not in one for one in replicas_of(run, "meanwhile")), "it takes nothing new"
        nodes.wait(lambda: all(3 not in one for one in replicas_of(run, TOPIC)), "all moved")
        assert nodes.stop(3) in (0, 143)
        out, err = leaving.communicate(timeout=60)
    assert leaving.returncode == 0, err
    assert json.loads(out)[0]["status"] == "gone"
    assert "controller.quorum.voters" in err
    assert sorted(read_nodes(link).brokers) == [1, 2]
