"""Apache Kafka's own command line tools, unchanged, from its jars."""

import json
import re

import pytest

from benchmarks import kafka

TOOLS = "org.apache.kafka.tools."
pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]


@pytest.fixture
def tool(bootstrap):
    """Run a tool against the broker and return its output; it must end with `code`."""

    def run(name, *arguments, stdin=None, code=0, option="--bootstrap-server"):
        name = name if name.startswith("kafka.") else TOOLS + name
        done = kafka.tool(name, option, bootstrap, *arguments, stdin=stdin, timeout_s=120)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer(tool, topic, codec):
    """The consumer needs no group when it is told partition and offset."""
    lines = "".join(f"k{i}\tvalue {i}\n" for i in range(200))
    settings = ["--compression-codec", codec, "--reader-property", "parse.key=true"]
    tool("ConsoleProducer", "--topic", topic, *settings, stdin=lines)
    read = ["--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "200"]
    got = tool("consumer.ConsoleConsumer", *read, "--formatter-property", "print.key=true")
    assert got == lines


def test_console_headers_nulls_and_offsets(tool, topic):
    reader = ["parse.headers=true", "parse.key=true", "null.marker=NULL"]
    properties = [word for item in reader for word in ("--reader-property", item)]
    tool("ConsoleProducer", "--topic", topic, *properties, stdin="a:1,b:2\tk\tNULL\nc:3\tk\tv\n")
    printed = ["print.headers=true", "print.offset=true", "print.key=true"]
    properties = [word for item in printed for word in ("--formatter-property", item)]
    read = ["--topic", topic, "--partition", "0", "--offset", "0", "--max-messages", "2"]
    got = tool("consumer.ConsoleConsumer", *read, *properties)
    assert got.splitlines() == ["Offset:0\ta:1,b:2\tk\tnull", "Offset:1\tc:3\tk\tv"]


def test_topics(tool, fresh):
    name = fresh()
    tool(
        "TopicCommand",
        "--create",
        "--topic",
        name,
        "--partitions",
        "3",
        "--config",
        "retention.ms=5555",
    )
    assert name in tool("TopicCommand", "--list").split()
    described = tool("TopicCommand", "--describe", "--topic", name)
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=5555" in described
    assert len(re.findall(r"\tPartition: \d", described)) == 3
    tool("TopicCommand", "--alter", "--topic", name, "--partitions", "5")
    assert "PartitionCount: 5" in tool("TopicCommand", "--describe", "--topic", name)
    again = tool("TopicCommand", "--create", "--topic", name, code=1)
    assert "already exists" in again
    tool("TopicCommand", "--delete", "--topic", name)
    assert name not in tool("TopicCommand", "--list").split()


def test_configs(tool, topic):
    place = ["--entity-type", "topics", "--entity-name", topic]
    change = [
        "--alter",
        *place,
        "--add-config",
        "retention.ms=7777,cleanup.policy=[compact,delete]",
    ]
    tool("kafka.admin.ConfigCommand", *change)
    described = tool("kafka.admin.ConfigCommand", "--describe", *place)
    assert "retention.ms=7777" in described
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=7777" in described
    assert "DEFAULT_CONFIG:log.cleanup.policy=delete" in described
    tool("kafka.admin.ConfigCommand", "--alter", *place, "--delete-config", "retention.ms")
    assert "retention.ms" not in tool("kafka.admin.ConfigCommand", "--describe", *place)
    everything = tool("kafka.admin.ConfigCommand", "--describe", "--all", *place)
    assert "retention.ms=604800000" in everything
    refused = tool(
        "kafka.admin.ConfigCommand", "--alter", *place, "--add-config", "retention.ms=-7", code=1
    )
    assert "retention.ms" in refused


def test_broker_configs_change_while_it_runs(tool):
    place = ["--entity-type", "brokers", "--entity-default"]
    tool("kafka.admin.ConfigCommand", "--alter", *place, "--add-config", "log.retention.ms=8888888")
    try:
        described = tool("kafka.admin.ConfigCommand", "--describe", *place)
        assert "log.retention.ms=8888888" in described
        assert "DYNAMIC_DEFAULT_BROKER_CONFIG" in described
    finally:
        tool("kafka.admin.ConfigCommand", "--alter", *place, "--delete-config", "log.retention.ms")


def test_producer_performance(tool, topic):
    load = [
        "--topic",
        topic,
        "--num-records",
        "20000",
        "--record-size",
        "100",
        "--throughput",
        "-1",
    ]
    for acks in ("1", "all"):
        properties = ["--command-property", f"acks={acks}", "linger.ms=5"]
        said = tool("ProducerPerformance", *load, *properties)
        assert "20000 records sent" in said
    listed = tool("GetOffsetShell", "--topic", topic)
    assert listed.strip() == f"{topic}:0:40000"


def test_offsets(tool, topic):
    tool("ConsoleProducer", "--topic", topic, stdin="a\nb\nc\n")
    for time, expected in (("earliest", 0), ("latest", 3), ("max-timestamp", None), ("0", 0)):
        listed = tool("GetOffsetShell", "--topic", topic, "--time", time).strip()
        offset = int(listed.rpartition(":")[2])
        assert offset == expected or (expected is None and 0 <= offset < 3)


def test_delete_records(tool, topic, tmp_path):
    tool("ConsoleProducer", "--topic", topic, stdin="a\nb\nc\n")
    plan = {"partitions": [{"topic": topic, "partition": 0, "offset": 2}], "version": 1}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    said = tool("DeleteRecordsCommand", "--offset-json-file", str(tmp_path / "plan.json"))
    assert "low_watermark: 2" in said
    assert tool("GetOffsetShell", "--topic", topic, "--time", "earliest").strip() == f"{topic}:0:2"


def test_log_dirs(tool, topic):
    tool("ConsoleProducer", "--topic", topic, stdin="a" * 1000 + "\n")
    said = tool("LogDirsCommand", "--describe", "--topic-list", topic)
    (broker,) = json.loads(said.strip().splitlines()[-1])["brokers"]
    (folder,) = broker["logDirs"]
    (partition,) = folder["partitions"]
    assert folder["error"] is None
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 1000
    assert partition["offsetLag"] == 0


def test_quorum(tool):
    status = tool("MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"^LeaderId:\s+\d+$", status, re.M)
    assert re.search(r"^HighWatermark:\s+[1-9]\d*$", status, re.M)
    assert re.search(r"^MaxFollowerLag:\s+0$", status, re.M)
    replication = tool("MetadataQuorumCommand", "describe", "--replication").splitlines()
    assert "Leader" in replication[1]


def test_features(tool):
    said = tool("FeatureCommand", "describe")
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.", said)


def test_api_versions(tool):
    said = tool("BrokerApiVersionsCommand")
    assert re.search(r"Produce\(0\): 0 to 1[0-9] \[usable: 1[0-9]\]", said)
    assert "UNKNOWN" not in said


def test_cluster_id(bootstrap):
    done = kafka.tool(TOOLS + "ClusterTool", "cluster-id", "--bootstrap-server", bootstrap)
    assert re.search(r"^Cluster ID: [A-Za-z0-9_-]{22}$", done.stdout, re.M), done.stdout


def test_latency_from_end_to_end(bootstrap, topic):
    """One record at a time, produced with acks=all, then consumed."""
    words = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "200"]
    words += ["--producer-acks", "all", "--record-size", "100"]
    done = kafka.tool(TOOLS + "EndToEndLatency", *words)
    assert "Avg latency" in done.stdout, done.stdout + done.stderr
