"""Apache Kafka's own tools for groups, unchanged, from its jars, and its Java consumer."""

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
    """Run a tool against the broker and return its output; it must end well."""

    def run(name, *arguments):
        done = java_tools.tool(TOOLS + name, "--bootstrap-server", bootstrap, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def groups(tool):
    return lambda *arguments: tool("consumer.group.ConsumerGroupCommand", *arguments)


def consume(tool, topic, group, count, *more):
    words = ["--topic", topic, "--group", group, "--max-messages", str(count)]
    said = tool("consumer.ConsoleConsumer", *words, "--timeout-ms", "60000", *more)
    return [line for line in said.splitlines() if line.isdigit()]


def test_a_console_consumer_goes_on_where_the_last_one_was(tool, filled, group):
    topic = filled(1, 10)
    first = consume(tool, topic, group, 4, "--from-beginning")
    second = consume(tool, topic, group, 6)
    assert first + second == [str(number) for number in range(10)]


def test_a_verifiable_consumer_of_each_strategy(tool, filled, fresh):
    topic = filled(2, 50)
    for strategy in ("RangeAssignor", "CooperativeStickyAssignor"):
        words = ["--topic", topic, "--group-id", fresh(), "--max-messages", "100"]
        name = "org.apache.kafka.clients.consumer." + strategy
        said = tool(
            "VerifiableConsumer", *words, "--reset-policy", "earliest",
            "--assignment-strategy", name,
        )  # fmt: skip
        assert '"name":"offsets_committed"' in said
        assert '"success":false' not in said
