"""Consumers read from followers in their rack (KIP-392). The same of Apache Kafka with
PENSTOCK_TEST_BROKER=kafka. Ours ask for records so seldom here that only the leader's telling of
its high watermark explains that a follower knows it."""

import threading

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as Place

from appliance.observer.door import Observer
from tests.broker_process import KAFKA
from tests.cluster.nodes import Nodes
from tests.differential.link import Link
from tests.differential.records import batch

PRODUCE, FETCH, LIST_OFFSETS, EPOCH_END = 0, 1, 2, 23
LEADER, NEAR = 1, 2
RACKS = {1: "a", 2: "b", 3: "c"}
LIMIT_S = 60
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "transaction.state.log.num.partitions": "1",
    }
    if not KAFKA:
        settings["replica.fetch.wait.max.ms"] = "20000"
    nodes = Nodes(tmp_path_factory.mktemp("cluster"), settings=settings)
    for number, node in nodes.all.items():
        node.properties["broker.rack"] = RACKS[number]
    with nodes:
        yield nodes


@pytest.fixture
def topic(nodes, request):
    """One partition that node 1 leads."""
    name = request.node.originalname
    nodes.create(name, assignment=[[1, 2, 3]])
    return name


def produce(nodes, topic, *values):
    rows = [{"index": 0, "records": batch(*values)}]
    data = [{"name": topic, "partition_data": rows}]
    request = {"transactional_id": None, "acks": -1, "timeout": 30_000, "topic_data": data}
    (told,) = nodes.ask(PRODUCE, 9, request, LEADER)["responses"]
    assert told["partition_responses"][0]["error_code"].upper() == "NONE"


def asked(nodes, topic, offset, *, rack="", epoch=-1, wait_ms=0, committed=0):
    row = {"partition": 0, "current_leader_epoch": epoch, "fetch_offset": offset,
           "last_fetched_epoch": -1, "log_start_offset": -1,
           "partition_max_bytes": 1 << 20}  # fmt: skip
    topics = [{"topic": topic, "topic_id": nodes.topic_id(topic).hex(), "partitions": [row]}]
    return {"replica_id": -1, "max_wait": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20,
            "isolation_level": committed, "session_id": 0, "session_epoch": -1,
            "forgotten_topics_data": [], "rack_id": rack, "topics": topics}  # fmt: skip


def read(nodes, number, topic, offset, version=17, **more):
    answer = nodes.ask(FETCH, version, asked(nodes, topic, offset, **more), number)
    return answer["responses"][0]["partitions"][0]


def code(nodes, number, topic, offset, **more):
    return read(nodes, number, topic, offset, **more)["error_code"].upper()


def visible(nodes, number, topic, end):
    """Once the node knows that so much is visible: what it answers from the start on."""

    def shows():
        row = read(nodes, number, topic, 0)
        return row if row["high_watermark"] == end else None

    return nodes.wait(shows, f"node {number} shows {end} of {topic}")


def test_the_leader_sends_consumers_of_another_rack_to_a_follower(nodes, topic):
    produce(nodes, topic, b"x", b"y", b"z")

    def sent_to(offset, rack, number=LEADER, version=17):
        return read(nodes, number, topic, offset, rack=rack, version=version)[
            "preferred_read_replica"
        ]

    nodes.wait(lambda: sent_to(0, "b") == NEAR, "it knows how far node 2 is")
    row = read(nodes, LEADER, topic, 0, rack="b")
    assert (row["error_code"].upper(), row["high_watermark"], row["last_stable_offset"]) == (
        "NONE", 3, 3,
    )  # fmt: skip
    assert not row["records"] and row["log_start_offset"] == 0
    assert [sent_to(offset, "b", version=11) for offset in (1, 3, 4)] == [NEAR, NEAR, -1]
    assert [sent_to(0, rack) for rack in ("", "a", "z")] == [-1, -1, -1]
    assert sent_to(0, "c", number=NEAR) == -1, "only the leader chooses"
    epoch = nodes.partition(topic).epoch
    assert code(nodes, LEADER, topic, 0, rack="b", epoch=epoch + 1) == "UNKNOWN_LEADER_EPOCH"
    assert code(nodes, LEADER, topic, 4, rack="b") == "OFFSET_OUT_OF_RANGE"


def test_a_follower_answers_as_far_as_it_knows_records_to_be_visible(nodes, topic):
    produce(nodes, topic, b"x", b"y", b"z")
    row = visible(nodes, NEAR, topic, 3)
    there = read(nodes, LEADER, topic, 0)
    assert row["records"] == there["records"] and row["last_stable_offset"] == 3
    assert read(nodes, NEAR, topic, 0, version=11)["records"] == there["records"]
    epoch = nodes.partition(topic).epoch
    assert [code(nodes, NEAR, topic, offset) for offset in (3, 4)] == [
        "NONE", "OFFSET_OUT_OF_RANGE",
    ]  # fmt: skip
    assert code(nodes, NEAR, topic, 0, epoch=epoch) == "NONE"
    assert code(nodes, NEAR, topic, 0, epoch=epoch + 1) == "UNKNOWN_LEADER_EPOCH"
    assert code(nodes, NEAR, topic, 0, version=10) == "NOT_LEADER_OR_FOLLOWER"
    for replica, told in ((-1, ("NOT_LEADER_OR_FOLLOWER", -1)), (-2, ("NONE", 3))):
        row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
        topics = [{"name": topic, "partitions": [row]}]
        request = {"replica_id": replica, "isolation_level": 0, "topics": topics}
        row = nodes.ask(LIST_OFFSETS, 7, request, NEAR)["topics"][0]["partitions"][0]
        assert (row["error_code"].upper(), row["offset"]) == told
    row = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
    request = {"replica_id": -1, "topics": [{"topic": topic, "partitions": [row]}]}
    row = nodes.ask(EPOCH_END, 4, request, NEAR)["topics"][0]["partitions"][0]
    assert row["error_code"].upper() == "NOT_LEADER_OR_FOLLOWER"


def test_aborted_transactions_are_told_by_a_follower_too(nodes, topic):
    writer = Producer({"bootstrap.servers": nodes.bootstrap, "transactional.id": topic})
    writer.init_transactions(LIMIT_S)
    for end in (writer.abort_transaction, writer.commit_transaction):
        writer.begin_transaction()
        writer.produce(topic, b"v", partition=0)
        assert not writer.flush(LIMIT_S)
        end(LIMIT_S)
    visible(nodes, NEAR, topic, 4)
    here, there = (read(nodes, number, topic, 0, committed=1) for number in (LEADER, NEAR))
    assert len(here["aborted_transactions"]) == 1
    assert {**here} == {**there}


def test_who_waits_at_a_follower_hears_of_a_record_when_it_is_visible(nodes, topic):
    link = Link((nodes[NEAR].host, nodes[NEAR].port))
    for number in range(4):
        heard = []
        request = asked(nodes, topic, number, wait_ms=15_000)
        waits = threading.Thread(target=lambda r=request, h=heard: h.append(link.ask(FETCH, 17, r)))
        waits.start()
        produce(nodes, topic, b"v")
        waits.join()
        row = heard[0]["responses"][0]["partitions"][0]
        assert row["records"], "not before max_wait_ms"
        assert row["high_watermark"] == number + 1
    link.close()


def served(nodes, number, topic):
    """Bytes of its records that a node has sent to consumers."""
    table = Observer(str(nodes[number].data)).tables.partitions
    topic_id = nodes.topic_id(topic)
    return sum(table.served_of(row.handle)[1] for row in table.live_rows()
               if row.topic_id == topic_id)  # fmt: skip


def test_clients_read_from_their_rack_and_go_on_when_its_node_dies(nodes, topic):
    reader = Consumer({
        "bootstrap.servers": nodes.bootstrap, "group.id": "g", "client.rack": "b",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    reader.assign([TopicPartition(topic, 0, 0)])
    python = KafkaConsumer(bootstrap_servers=nodes.bootstrap, client_rack="b",
                           auto_offset_reset="earliest", enable_auto_commit=False)  # fmt: skip
    python.assign([Place(topic, 0)])

    def both_read(*values):
        for value in values:
            message = reader.poll(LIMIT_S)
            assert message is not None and message.error() is None
            assert message.value() == value
        got = []
        while len(got) < len(values):
            polled = python.poll(LIMIT_S * 1000, max_records=1).values()
            got += [one.value for some in polled for one in some]
            assert polled
        assert got == list(values)

    first = [b"%d" % number for number in range(20)]
    for value in first:
        produce(nodes, topic, value)
    both_read(*first)
    if not KAFKA:
        # The leader may have sent the very first record, before it had heard of its followers.
        assert served(nodes, NEAR, topic) > 10 * served(nodes, LEADER, topic)
    nodes.kill(NEAR)
    produce(nodes, topic, b"after")
    both_read(b"after")
    reader.close()
    python.close()
