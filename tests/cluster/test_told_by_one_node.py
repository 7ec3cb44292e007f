"""What one node of three is told: a quota, which the others enforce; that its replica moves to
another of its folders, while another node leads."""

import pytest

from appliance.base import errors
from tests.broker_process import KAFKA
from tests.cluster.cluster_load import ClusterLoad
from tests.cluster.nodes import Nodes
from tests.quotas.quota_peer import QuotaPeer, ms

pytestmark = pytest.mark.timeout(180)
ALTER_DIRS, DESCRIBE_DIRS = 34, 35
TOLD, OTHER = 1, 2
ANY = 2
"""Of the filters of DescribeClientQuotas."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    made = Nodes(folder)
    if not KAFKA:
        other = made[OTHER]
        other.settings = {"log.dirs": f"{other.data},{folder / 'more'}"}
    with made:
        yield made


@pytest.fixture
def peer(nodes):
    """A function that connects a client to a node."""
    connected = []

    def connect(number, client):
        connected.append(QuotaPeer(nodes[number].bootstrap, client))
        return connected[-1]

    yield connect
    for one in connected:
        one.socket.close()


def test_a_quota_holds_at_every_node_and_after_a_death(nodes, peer):
    nodes.create("limited", assignment=[[OTHER]])
    entity = (("client-id", "loader"),)
    limits = {"producer_byte_rate": 1000.0, "request_percentage": 400.0}
    peer(TOLD, "admin").quotas(entity, **limits)

    def enforced():
        return peer(OTHER, "loader").produce("limited", 20_000) > 1000

    nodes.wait(enforced, "it is enforced where it was not set")
    assert not peer(OTHER, "somebody").produce("limited", 20_000)
    if not KAFKA:
        meters = peer(OTHER, "admin").described(("penstock-usage", ANY, None))
        (used,) = (one for of, one in meters.items() if ("quota", "producer_byte_rate") in of)
        assert used["throttled"] and used["limit"] == 1000
    nodes.kill(OTHER)
    nodes.start(OTHER)
    nodes.wait(lambda: nodes.partition("limited").leader == OTHER, "it leads again")
    assert peer(OTHER, "admin").described() == {entity: limits}
    assert peer(OTHER, "loader").produce("limited", 20_000) > 1000


def test_changes_of_the_metadata_are_counted_together_whoever_is_asked(nodes, peer):
    """What was saved up lets one topic through, and its partitions take more than that."""
    entity = (("client-id", "maker"),)
    peer(TOLD, "admin").quotas(entity, controller_mutation_rate=0.01)
    leader = nodes.quorum_leader()
    others = [number for number in nodes.all if number != leader]

    def made(number, topic):
        rows = [{"name": topic, "num_partitions": 20, "replication_factor": 1,
                 "assignments": [], "configs": []}]  # fmt: skip
        answer = peer(number, "maker").ask(19, 7, topics=rows, timeout=10_000, validate_only=False)
        return int(answer.topics[0].error_code), ms(answer) > 0

    assert made(others[0], "first") == (errors.NONE, False)
    for number in nodes.all:
        assert made(number, "second") == (errors.THROTTLING_QUOTA_EXCEEDED, True)


def places(nodes, topic, index=0):
    """Of node 2's replica: {folder: whether it is on its way there}."""
    asked = {"topics": [{"topic": topic, "partitions": [index]}]}
    return {
        folder["log_dir"]: row["is_future_key"]
        for folder in nodes.ask(DESCRIBE_DIRS, 2, asked, OTHER)["results"]
        for found in folder["topics"]
        for row in found["partitions"]
    }


@pytest.mark.skipif(KAFKA, reason="its node has one folder here")
def test_a_follower_moves_to_another_folder_and_stays_in_sync(nodes):
    nodes.create("moves", assignment=[[1, OTHER, 3], [3, OTHER, 1], [1, 3, OTHER]])
    with ClusterLoad(nodes, "moves") as load:
        load.go_on()
        before = nodes.partition("moves")
        ((place, _),) = places(nodes, "moves").items()
        (goal,) = {str(one) for one in nodes[OTHER].log_dirs} - {place}
        rows = [{"path": goal, "topics": [{"name": "moves", "partitions": [0]}]}]
        answer = nodes.ask(ALTER_DIRS, 2, {"dirs": rows}, OTHER)
        (told,) = answer["results"][0]["partitions"]
        assert told["error_code"].upper() == "NONE", told
        nodes.wait(lambda: places(nodes, "moves") == {goal: False}, "it has moved")
        load.go_on()
        assert nodes.partition("moves") == before, "it never left those in sync"
        nodes.kill(OTHER)
        nodes.start(OTHER)
        load.go_on()
        load.wait_served()
        assert places(nodes, "moves") == {goal: False}, "and is there after a death"
        load.finish_level()
    (folder,) = nodes[OTHER].partition_folders("moves-0")
    assert str(folder.parent) == goal
