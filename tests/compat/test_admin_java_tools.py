"""Apache Kafka's own tools at the rest of the Admin API, on a node with two log folders."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import kafka
from tests import java_tools
from tests.broker_process import KAFKA, Broker

TOOLS = "org.apache.kafka.tools."
pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("folders")
    return [base / "data", base / "more"]


@pytest.fixture(scope="module")
def broker(folders):
    """Names of Kafka's own log folders differ: it puts the first one below its data folder."""
    if KAFKA:
        pytest.skip("the tests look into folders of ours")
    settings = {"log.dirs": ",".join(map(str, folders)), "log.segment.bytes": "1048576"}
    with Broker(folders[0], settings) as running:
        yield running


@pytest.fixture(scope="module")
def bootstrap(broker):
    return broker.bootstrap


@pytest.fixture
def tool(bootstrap):
    def run(name, *arguments, code=0, stdin=None, option="--bootstrap-server"):
        name = name if name.startswith(("kafka.", "org.")) else TOOLS + name
        done = java_tools.tool(name, option, bootstrap, *arguments, stdin=stdin)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


def log_dirs(tool, topic):
    """Folder → {partition: (size, lag, is future)} as kafka-log-dirs shows it."""
    said = tool("LogDirsCommand", "--describe", "--topic-list", topic)
    (broker,) = json.loads(said.strip().splitlines()[-1])["brokers"]
    return {
        one["logDir"]: {
            p["partition"]: (p["size"], p["offsetLag"], p["isFuture"]) for p in one["partitions"]
        }
        for one in broker["logDirs"]
    }


def test_new_partitions_are_spread_over_the_folders(tool, new_topic, folders):
    topic = new_topic(4)
    found = log_dirs(tool, topic)
    assert set(found) == set(map(str, folders))
    assert [len(partitions) for partitions in found.values()] == [2, 2]
    for path, partitions in found.items():
        for name in partitions:
            assert (Path(path) / name / "partition.metadata").exists()


def test_kafka_reassign_partitions_moves_a_replica_between_folders(
    tool, new_topic, folders, tmp_path
):
    topic = new_topic()
    ((here, _),) = [(path, found) for path, found in log_dirs(tool, topic).items() if found]
    (there,) = [str(path) for path in folders if str(path) != here]
    tool("ConsoleProducer", "--topic", topic, stdin="".join(f"line {n}\n" for n in range(2000)))
    described = tool("TopicCommand", "--describe", "--topic", topic)
    node = int(re.search(r"Leader: (\d+)", described)[1])
    row = {"topic": topic, "partition": 0, "replicas": [node], "log_dirs": [there]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    said = tool("reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(plan),
                "--execute")  # fmt: skip
    assert f"to {there} for replica {topic}-0 with broker {node}" in said
    for _ in range(20):
        said = tool("reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(plan),
                    "--verify")  # fmt: skip
        if "completed successfully" in said:
            break
    assert f"Reassignment of replica {topic}-0-{node} completed successfully" in said
    found = log_dirs(tool, topic)
    assert list(found[there]) == [f"{topic}-0"] and not found[here]
    read = ["--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "2000"]
    got = tool("consumer.ConsoleConsumer", *read)
    assert got.splitlines() == [f"line {n}" for n in range(2000)]
