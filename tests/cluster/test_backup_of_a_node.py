"""A backup of one node of a cluster, restored as an appliance alone: what the node had is there,
led by it, and goes on; the cluster does not notice."""

import json
import shlex
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from benchmarks import nodes as nodes_of
from benchmarks.kafka import free_ports
from penstock.local import Appliance
from tests.cluster.nodes import DESCRIBE_QUORUM, Nodes
from tests.cluster.test_begun_by_several import Several
from tests.cluster.test_voters_come_and_go import METADATA
from tests.console_process import typing
from tests.differential.link import Link

pytestmark = pytest.mark.timeout(240)
FEW = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
CLUSTER_ID = nodes_of.CLUSTER_ID
GROUP, COUNT, PARTITIONS = "readers", 300, 3


def penstock(*args, code=0):
    return json.loads(typing("")(*map(str, args), "-o", "json", code=code).stdout)


def values(bootstrap, topic, partition):
    """Of all records that a reader with read_committed gets."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "x", "log_level": 0,
                         "enable.partition.eof": True, "auto.offset.reset": "error"})  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    found = []
    while (record := consumer.poll(60)) is not None:
        if record.error():
            assert record.error().code() == KafkaError._PARTITION_EOF, record.error()
            consumer.close()
            return found
        found.append(record.value())
    raise AssertionError(f"{topic}-{partition} does not answer")


def committed(bootstrap):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    places = [TopicPartition("events", index) for index in range(PARTITIONS)]
    found = [one.offset for one in consumer.committed(places, 60)]
    consumer.close()
    return found


def send(bootstrap, topic, count, **settings):
    """Committed by transactions of ten, every fifth of which is aborted."""
    client = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "t", "log_level": 0, **settings}
    )
    client.init_transactions(60)
    for number in range(count):
        if not number % 10:
            client.begin_transaction()
        client.produce(topic, b"%d" % number, key=b"%d" % number)
        if number % 10 == 9:
            (client.abort_transaction if number // 10 % 5 == 4 else client.commit_transaction)(60)


def told(nodes):
    """What was there before: records by partition, and where the group is."""
    consumer = Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": GROUP, "log_level": 0})
    offsets = [TopicPartition("events", index, 5 + index) for index in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    return [values(nodes.bootstrap, "events", index) for index in range(PARTITIONS)]


@contextmanager
def up(data, *words):
    """An appliance that is started as somebody types it, and serves."""
    log, run = data.with_suffix(".log"), typing("")
    command = [sys.executable, "-m", "console", "up", "--data", data, *words]
    with log.open("w") as said, subprocess.Popen(command, stdout=said, stderr=said) as node:
        try:
            done = run("wait", "--data", str(data), "--timeout", "60", code=None)
            assert done.returncode == 0 and node.poll() is None, log.read_text()
            yield node
        finally:
            node.terminate()


def voters(link):
    (told,) = link.ask(DESCRIBE_QUORUM, 2, METADATA)["topics"]
    return told["partitions"][0]["current_voters"]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A cluster, of two nodes of which there are backups when it is gone."""
    folder = tmp_path_factory.mktemp("cluster")
    places = nodes_of.places(4, {4: "controller"})
    with Nodes(folder, settings=FEW, places=places) as nodes:
        nodes.create("events", PARTITIONS, {"min.insync.replicas": "2", "retention.ms": "98765432"})
        nodes.create("far", assignment=[[3], [1]])
        send(nodes.bootstrap, "events", COUNT)
        before = told(nodes)
        rows = {}
        for number in (1, 2):
            where = folder / f"backups-{number}"
            rows[number] = where, *penstock("backup", "create", where, nodes[number].data)
        refused = typing("")("backup", "create", str(where), str(nodes[4].data), code=1)
        assert "is a controller only" in refused.stderr
        assert nodes.whole("events", PARTITIONS) and told(nodes) == before
    return before, rows, places


@pytest.mark.parametrize("number", [1, 2])
def test_what_a_node_had_is_an_appliance_alone(story, tmp_path, number):
    before, rows, places = story
    where, row = rows[number]
    assert row["elsewhere"] == ["far-0", "far-1"][:number] and row["left_out"] == []
    data = tmp_path / "data"
    done = typing("")("restore", str(where), str(data))
    assert f"it was node {number} of a cluster" in done.stderr
    assert f"empty after the restore: {', '.join(row['elsewhere'])}" in done.stderr
    assert penstock("backup", "list", where)[0]["cluster"] == CLUSTER_ID
    assert CLUSTER_ID not in (data / "meta.properties").read_text()
    settings = nodes_of.properties(places[number - 1], places)
    command = [*nodes_of.appliance_command(data, settings), "--check"]
    at = command.index("--cluster-id")
    del command[at : at + 2]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "is the folder of a node alone" in refused.stderr
    with Appliance(data) as one:
        admin = AdminClient({"bootstrap.servers": one.bootstrap, "log_level": 0})
        found = admin.list_topics(timeout=60)
        assert list(found.brokers) == [number]
        for topic in ("events", "far", "__consumer_offsets", "__transaction_state"):
            for part in found.topics[topic].partitions.values():
                assert (part.leader, part.replicas, part.isrs) == (number, [number], [number])
        assert [values(one.bootstrap, "events", index) for index in range(PARTITIONS)] == before
        assert committed(one.bootstrap) == [5, 6, 7]
        assert values(one.bootstrap, "far", 0) == []
        send(one.bootstrap, "events", 10)
        after = [values(one.bootstrap, "events", index) for index in range(PARTITIONS)]
        assert sum(map(len, after)) == sum(map(len, before)) + 10
        asked = ConfigResource(ConfigResource.Type.TOPIC, "events")
        settings = admin.describe_configs([asked])[asked].result(60)
        assert settings["retention.ms"].value == "98765432"
    with Appliance(data) as one:
        assert committed(one.bootstrap) == [5, 6, 7], "also after another start"
    assert typing("")("storage", "verify", str(data)).stdout == ""


def test_of_voters_that_come_and_go_it_is_the_only_one(tmp_path):
    with Several(tmp_path) as nodes:
        nodes.create("t")
        client = Producer({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
        client.produce("t", b"kept")
        client.flush(60)
        penstock("backup", "create", tmp_path / "backups", nodes[3].data)
        directory = nodes.directories[3]
    penstock("restore", tmp_path / "backups", tmp_path / "data")
    with Appliance(tmp_path / "data") as one, closing(Link(("127.0.0.1", one.port))) as link:
        (voter,) = voters(link)
        assert voter["replica_id"] == 3
        assert str(voter["replica_directory_id"]).replace("-", "") == directory.hex()
        assert values(one.bootstrap, "t", 0) == [b"kept"]
    port = free_ports(4)
    with up(tmp_path / "data", "--listen", f"127.0.0.1:{port}"):
        line = shlex.split(typing(f"127.0.0.1:{port}")("cluster", "invite").stdout)
        at = line.index("--data")
        del line[at : at + 2]
        with up(tmp_path / "another", *line[2:]), closing(Link(("127.0.0.1", port))) as link:
            while len(voters(link)) < 2:
                pass
