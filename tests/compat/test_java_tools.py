"""Apache Kafka's own command line tools, unchanged, from its jars."""

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


def test_features(tool):
    said = tool("FeatureCommand", "describe")
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.", said)


def test_latency_from_end_to_end(bootstrap, topic):
    """One record at a time, produced with acks=all, then consumed."""
    words = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "200"]
    words += ["--producer-acks", "all", "--record-size", "100"]
    done = kafka.tool(TOOLS + "EndToEndLatency", *words)
    assert "Avg latency" in done.stdout, done.stdout + done.stderr
