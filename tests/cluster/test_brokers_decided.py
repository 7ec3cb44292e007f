"""What the controller of three appliances decides comes true in them: replicas move, who left the
ISR is eligible, leadership goes back by itself."""

import pytest

from tests.cluster.nodes import Nodes

pytestmark = pytest.mark.timeout(180)
REASSIGN, LISTED = 45, 46
API_VERSIONS, DESCRIBE_TOPIC_PARTITIONS = 18, 75


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    settings = {"leader.imbalance.check.interval.seconds": "1"}
    with Nodes(tmp_path_factory.mktemp("decided"), settings=settings) as running:
        yield running


def reassign(nodes, topic, replicas):
    row = {"partition_index": 0, "replicas": replicas}
    values = {"topics": [{"name": topic, "partitions": [row]}], "timeout": 10_000}

    def asked():
        answer = nodes.ask(REASSIGN, 0, values)
        if answer["error_code"] != "NONE":
            return False
        ((told,),) = [found["partitions"] for found in answer["responses"]]
        assert told["error_code"] in ("NONE", "REQUEST_TIMED_OUT", "NOT_CONTROLLER"), told
        return told["error_code"] == "NONE"

    nodes.wait(asked, f"{topic} is reassigned to {replicas}")


def eligible(nodes, topic, number):
    """(leader, ISR, ELR) of partition 0."""
    (told,) = nodes.ask(DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": topic}]}, number)[
        "topics"
    ]
    (one,) = told["partitions"]
    return one["leader_id"], sorted(one["isr_nodes"]), sorted(one["eligible_leader_replicas"] or ())


def test_a_cluster_of_several_keeps_eligible_replicas(nodes):
    values = {"client_software_name": "x", "client_software_version": "1"}
    features = nodes.ask(API_VERSIONS, 3, values)["finalized_features"]
    levels = {one["name"]: one["max_version_level"] for one in features}
    assert levels["eligible.leader.replicas.version"] == 1


def test_replicas_move(nodes):
    nodes.create("moves", assignment=[[1]])
    reassign(nodes, "moves", [2, 3])
    nodes.wait(lambda: nodes.partition("moves")[2:] == ([2, 3], [2, 3]), "the replicas have moved")
    assert nodes.partition("moves").leader in (2, 3)
    nodes.wait(
        lambda: nodes.ask(LISTED, 0, {"topics": None, "timeout": 10_000})["topics"] == [],
        "none is on its way",
    )


def test_who_left_the_isr_leads_again_and_leadership_goes_back(nodes):
    nodes.create("back", assignment=[[1, 2]], configs={"min.insync.replicas": "2"})
    nodes.kill(2)
    nodes.wait(lambda: eligible(nodes, "back", 3) == (1, [1], [2]), "2 is eligible")
    nodes.start(2)
    nodes.wait(lambda: nodes.whole("back"), "2 is in sync again")
    nodes.kill(1)
    nodes.wait(lambda: eligible(nodes, "back", 3) == (2, [2], [1]), "2 leads, 1 is eligible")
    nodes.start(1)
    nodes.wait(lambda: nodes.whole("back"), "1 is in sync again")
    nodes.wait(lambda: nodes.partition("back").leader == 1, "1 is preferred, and leads")
