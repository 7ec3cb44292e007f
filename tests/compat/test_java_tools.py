"""Apache Kafka's own command line tools, unchanged, from its jars."""

import pytest

from benchmarks import kafka
from tests import java_tools

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
        done = java_tools.tool(name, option, bootstrap, *arguments, stdin=stdin)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


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


def test_latency_from_end_to_end(bootstrap, topic):
    """One record at a time, produced with acks=all, then consumed."""
    words = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "200"]
    words += ["--producer-acks", "all", "--record-size", "100"]
    done = java_tools.tool(TOOLS + "EndToEndLatency", *words)
    assert "Avg latency" in done.stdout, done.stdout + done.stderr
