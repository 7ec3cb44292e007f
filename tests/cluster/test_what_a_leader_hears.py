"""What the leader of a partition answers who fetches as another replica, and acks=all that finds
too few replicas in sync. The same of Apache Kafka with PENSTOCK_TEST_BROKER=kafka."""

import pytest

from tests.cluster.nodes import Nodes
from tests.differential.records import batch

PRODUCE, FETCH, LIST_OFFSETS = 0, 1, 2
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    settings = {"replica.lag.time.max.ms": "1500"}
    with Nodes(tmp_path_factory.mktemp("cluster"), settings=settings) as running:
        yield running


def produce(nodes, topic, *values, acks=-1, wait_ms=10_000):
    """The code of one batch."""
    rows = [{"index": 0, "records": batch(*values)}]
    data = [{"name": topic, "partition_data": rows}]
    request = {"transactional_id": None, "acks": acks, "timeout": wait_ms, "topic_data": data}
    (told,) = nodes.ask(PRODUCE, 9, request, nodes.partition(topic).leader)["responses"]
    return told["partition_responses"][0]["error_code"].upper()


def pull(nodes, topic, node, *, offset=0, epoch=-1, last=-1, life=-1):
    """What the leader answers it: the row of the partition."""
    row = {"partition": 0, "current_leader_epoch": epoch, "fetch_offset": offset,
           "last_fetched_epoch": last, "log_start_offset": 0,
           "partition_max_bytes": 1 << 20}  # fmt: skip
    topics = [{"topic_id": nodes.topic_id(topic).hex(), "partitions": [row]}]
    request = {"replica_state": {"replica_id": node, "replica_epoch": life}, "max_wait": 0,
               "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": 0, "session_id": 0,
               "session_epoch": -1, "forgotten_topics_data": [], "rack_id": "",
               "topics": topics}  # fmt: skip
    answer = nodes.ask(FETCH, 17, request, nodes.partition(topic).leader)
    return answer["responses"][0]["partitions"][0]


def latest(nodes, topic, node):
    row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    topics = [{"name": topic, "partitions": [row]}]
    request = {"replica_id": node, "isolation_level": 0, "topics": topics}
    told = nodes.ask(LIST_OFFSETS, 7, request, nodes.partition(topic).leader)
    return told["topics"][0]["partitions"][0]["offset"]


def code(row):
    return row["error_code"].upper()


def test_who_is_none_of_its_replicas_or_of_another_time_is_refused(nodes):
    nodes.create("t", configs={"min.insync.replicas": "2"})
    assert produce(nodes, "t", b"a", b"b", b"c") == "NONE"
    found = nodes.partition("t")
    other = next(one for one in found.replicas if one != found.leader)
    epoch = found.epoch
    assert code(pull(nodes, "t", 7)) == "NOT_LEADER_OR_FOLLOWER"
    assert code(pull(nodes, "t", 7, epoch=epoch)) == "UNKNOWN_LEADER_EPOCH"
    assert code(pull(nodes, "t", other, epoch=epoch + 1)) == "UNKNOWN_LEADER_EPOCH"
    if epoch:
        assert code(pull(nodes, "t", other, epoch=epoch - 1)) == "FENCED_LEADER_EPOCH"
    assert code(pull(nodes, "t", other, epoch=epoch, life=0)) == "NOT_LEADER_OR_FOLLOWER"
    assert code(pull(nodes, "t", other, offset=99)) == "OFFSET_OUT_OF_RANGE"
    assert code(pull(nodes, "t", other, epoch=epoch, last=epoch + 5)) == "OFFSET_OUT_OF_RANGE"
    parted = pull(nodes, "t", other, offset=99, epoch=epoch, last=epoch)
    assert (code(parted), parted["diverging_epoch"]["end_offset"]) == ("NONE", 3)
    assert parted["diverging_epoch"]["epoch"] == epoch
    assert nodes.partition("t") == found, "nobody believed any of it"
    assert latest(nodes, "t", other) == 3
    assert produce(nodes, "t", b"d") == "NONE"


def test_acks_all_needs_as_many_in_sync_as_the_topic_asks_for(nodes):
    nodes.create("three", configs={"min.insync.replicas": "3"})
    assert produce(nodes, "three", b"a") == "NONE"
    found = nodes.partition("three")
    dead = next(one for one in found.replicas if one != found.leader)
    nodes.kill(dead)
    nodes.wait(lambda: dead not in nodes.partition("three").isr, "it is out of sync")
    leader = nodes.partition("three").leader
    nodes.wait(lambda: produce(nodes, "three", b"b") == "NOT_ENOUGH_REPLICAS", "too few")
    assert produce(nodes, "three", b"c", acks=1) == "NONE"
    assert latest(nodes, "three", -1) == 1, "and nobody sees it"
    assert latest(nodes, "three", dead) == 2, "but a replica"
    nodes.start(dead)
    nodes.wait(lambda: nodes.whole("three"), "it has caught up")
    nodes.wait(lambda: latest(nodes, "three", -1) == 2, "all that is there is seen")
    assert nodes.partition("three").leader == leader
    assert produce(nodes, "three", b"d") == "NONE"
