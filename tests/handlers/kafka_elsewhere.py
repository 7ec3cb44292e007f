"""What three nodes of Apache Kafka 4.3.1 tell of partitions, groups and transactions that other
nodes lead: asked once, kept in `kafka_elsewhere.json`, compared with in `test_as_kafka_elsewhere`.

To ask again: PENSTOCK_TEST_BROKER=kafka python -m tests.handlers.kafka_elsewhere
"""

import json
import sys
import tempfile
from pathlib import Path

from appliance.coordinators.runtime.kind import partition_of
from appliance.wire.batch import NewRecord, build_batch

PATH = Path(__file__).with_suffix(".json")
TOPIC = "flights"
ALONE = "alone"
REPLICAS = {TOPIC: [[1, 2], [2, 1], [3, 2]], ALONE: [[3]]}
FOLLOWED, ELSEWHERE = 1, 2
NEVER = 9  # no such partition
RACKS = {1: "a", 2: "b"}
OPERATIONS = {
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}


def questions(topic_id, epoch):
    """(key, version, values) of what is asked of node 1; epoch: of a leader."""
    named = {"name": TOPIC}
    by_id = {"topic_id": topic_id.hex()}
    for version in range(14):
        topics = [{"name": TOPIC}, {"name": ALONE}]
        yield 3, version, {"topics": topics, "allow_auto_topic_creation": False} | OPERATIONS
    for version in range(3):
        yield 60, version, {"endpoint_type": 1, "include_fenced_brokers": version > 1}
    yield (
        75,
        0,
        {
            "topics": [{"name": TOPIC}, {"name": ALONE}],
            "response_partition_limit": 100,
            "cursor": None,
        },
    )
    for version in (9, 10, 12, 13):
        records = bytes(build_batch([NewRecord(1, None, b"v")]))
        rows = [{"index": n, "records": records} for n in (FOLLOWED, ELSEWHERE)]
        topics = [named | by_id | {"partition_data": rows}]
        yield 0, version, {"acks": -1, "timeout": 1000, "transactional_id": None,
                           "topic_data": topics}  # fmt: skip
    for version in (4, 11, 12, 13, 16, 17):
        for known in (-1, epoch + 5):
            yield 1, version, fetch({"topic": TOPIC} | by_id, known, (ELSEWHERE, NEVER))
        yield 1, version, fetch({"topic": TOPIC} | by_id, epoch + 5, (FOLLOWED,))
    for known in (-1, epoch - 1, epoch + 5):
        rows = [
            {"partition_index": n, "current_leader_epoch": known, "timestamp": -1}
            for n in (FOLLOWED, ELSEWHERE, NEVER)
        ]
        yield 2, 7, {"replica_id": -1, "isolation_level": 0,
                     "topics": [named | {"partitions": rows}]}  # fmt: skip
        rows = [
            {"partition": n, "current_leader_epoch": known, "leader_epoch": 0}
            for n in (FOLLOWED, ELSEWHERE, NEVER)
        ]
        yield 23, 4, {"replica_id": -1, "topics": [{"topic": TOPIC, "partitions": rows}]}
    rows = [{"partition_index": n, "offset": 0} for n in (FOLLOWED, ELSEWHERE, NEVER)]
    yield 21, 2, {"timeout": 1000, "topics": [named | {"partitions": rows}]}
    yield 61, 0, {"topics": [named | {"partition_indexes": [ELSEWHERE, NEVER]}]}
    marker = {
        "producer_id": 77, "producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0,
        "transaction_version": 0,
        "topics": [named | {"partition_indexes": [FOLLOWED, ELSEWHERE, NEVER]}],
    }  # fmt: skip
    yield 27, 1, {"markers": [marker]}
    yield from coordinated()


def fetch(named, epoch, indexes):
    rows = [
        {"partition": n, "current_leader_epoch": epoch, "fetch_offset": 0, "log_start_offset": -1,
         "partition_max_bytes": 100, "last_fetched_epoch": -1}
        for n in indexes
    ]  # fmt: skip
    return {
        "replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 100, "isolation_level": 0,
        "session_id": 0, "session_epoch": -1, "rack_id": "", "forgotten_topics_data": [],
        "topics": [named | {"partitions": rows}],
    }  # fmt: skip


def names():
    """Three names, of partitions that nodes 1, 2 and 3 lead, when there are six that go round."""
    every = [f"n{number}" for number in range(60)]
    return [next(one for one in every if partition_of(one, 6) % 3 == at) for at in range(3)]


def coordinated():
    mine, second, third = names()
    for kind in (0, 1):
        for version in (1, 3, 4, 6):
            for name in (mine, second, third):
                yield 10, version, {"key": name, "key_type": kind, "coordinator_keys": [name]}
    member = {"generation_id": 1, "member_id": "m", "group_instance_id": None}
    yield 12, 4, {"group_id": second} | member
    yield 14, 5, {"group_id": second, "protocol_type": "c", "protocol_name": "r",
                  "assignments": []} | member  # fmt: skip
    yield 13, 4, {"group_id": second, "members": [{"member_id": "m", "group_instance_id": None}]}
    yield 15, 5, {"groups": [second, third], "include_authorized_operations": False}
    yield 42, 2, {"groups_names": [second, third]}
    yield 16, 5, {"states_filter": [], "types_filter": []}
    yield 66, 1, {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    yield 65, 0, {"transactional_ids": [second]}
    producer = {"transactional_id": second, "producer_id": 77, "producer_epoch": 0}
    yield 22, 4, producer | {"transaction_timeout": 1000}
    yield 26, 3, producer | {"committed": True}
    yield 25, 3, producer | {"group_id": mine}


def record(folder):
    """Ask three nodes, then the two that are left when the third is killed."""
    from tests.cluster.nodes import Nodes  # it is not needed where answers are compared

    internal = {
        "offsets.topic.num.partitions": "6", "transaction.state.log.num.partitions": "6",
        "offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "min.insync.replicas": "1",
    }  # fmt: skip
    nodes = Nodes(folder)
    for number, node in nodes.all.items():
        node.properties |= internal | ({"broker.rack": RACKS[number]} if number in RACKS else {})
    found = []
    with nodes:
        for name in ("__consumer_offsets", "__transaction_state"):
            nodes.create(name, assignment=[[n % 3 + 1] for n in range(6)])
        for name, replicas in REPLICAS.items():
            nodes.create(name, assignment=replicas)
        for dead in (None, 3):
            if dead:
                nodes.kill(dead)
                nodes.wait(lambda: 3 not in nodes.brokers(), "it is fenced")
                nodes.wait(lambda: nodes.partition(TOPIC, ELSEWHERE).leader == 2, "2 leads")
            topic_id = nodes.topic_id(TOPIC)
            epoch = nodes.partition(TOPIC, FOLLOWED).epoch
            answers = []
            for key, version, values in questions(topic_id, epoch):
                try:
                    answers.append(nodes.ask(key, version, values, 1))
                except ConnectionError:
                    answers.append("closed")
            found.append({
                "dead": dead, "epoch": epoch, "topic_id": topic_id.hex(),
                "ports": {n: node.port for n, node in nodes.all.items()},
                "partitions": {
                    name: [list(one) for one in nodes.partitions(name, 1).values()]
                    for name in (*REPLICAS, "__consumer_offsets", "__transaction_state")
                },
                "answers": answers,
            })  # fmt: skip
    return found


def _lines(phase):
    """A line for each answer."""
    answers = ",\n  ".join(map(json.dumps, phase.pop("answers")))
    return json.dumps(phase)[:-1] + ', "answers": [\n  ' + answers + "]}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    with tempfile.TemporaryDirectory() as folder:
        told = record(Path(folder))
    PATH.write_text("[" + ",\n".join(map(_lines, told)) + "]\n")
