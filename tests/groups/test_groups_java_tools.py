"""Apache Kafka's own tools for groups, unchanged, from its jars, and its Java consumer."""

import pytest
from group_members import Member, until

from benchmarks import kafka

TOOLS = "org.apache.kafka.tools."
pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]


@pytest.fixture
def tool(bootstrap):
    """Run a tool against the broker and return its output; it must end well."""

    def run(name, *arguments):
        done = kafka.tool(TOOLS + name, "--bootstrap-server", bootstrap, *arguments, timeout_s=120)
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


def rows(table):
    """The rows of a table that a tool printed, by its headings."""
    lines = [line.split() for line in table.splitlines() if line.strip()]
    at = next(n for n, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[at], line, strict=False)) for line in lines[at + 1 :]]


def test_a_console_consumer_goes_on_where_the_last_one_was(tool, filled, group):
    topic = filled(1, 10)
    first = consume(tool, topic, group, 4, "--from-beginning")
    second = consume(tool, topic, group, 6)
    assert first + second == [str(number) for number in range(10)]


def test_list_and_describe(tool, groups, bootstrap, filled, group):
    topic = filled(2, 5)
    member = Member(bootstrap, group, topic, client_id="the-client")
    until([member], lambda: len(member.got) == 10)
    member.commit({0: 5, 1: 3})
    listed = groups("--list", "--state")
    assert any(line.split()[:1] == [group] and "Stable" in line for line in listed.splitlines())
    found = rows(groups("--describe", "--group", group))
    assert {(r["PARTITION"], r["CURRENT-OFFSET"], r["LAG"]) for r in found} == {
        ("0", "5", "0"),
        ("1", "3", "2"),
    }
    assert {(r["HOST"], r["CLIENT-ID"]) for r in found} == {("/127.0.0.1", "the-client")}
    (seen,) = rows(groups("--describe", "--group", group, "--members", "--verbose"))
    assert (seen["GROUP"], seen["#PARTITIONS"]) == (group, "2")
    (state,) = rows(groups("--describe", "--group", group, "--state"))
    assert "Stable" in state.values()
    kinds = tool("GroupsCommand", "--list")
    (line,) = [line for line in kinds.splitlines() if line.startswith(group + " ")]
    assert line.split()[1:] == ["Classic", "consumer"]
    member.close()


def test_reset_offsets(tool, groups, filled, group):
    topic = filled(1, 10)
    assert len(consume(tool, topic, group, 10, "--from-beginning")) == 10
    words = ["--reset-offsets", "--group", group, "--topic", topic, "--execute"]
    (row,) = rows(groups(*words, "--to-offset", "7"))
    assert row["NEW-OFFSET"] == "7"
    assert consume(tool, topic, group, 3) == ["7", "8", "9"]
    (row,) = rows(groups(*words, "--to-earliest"))
    assert row["NEW-OFFSET"] == "0"


def test_delete(tool, groups, bootstrap, filled, group):
    topic = filled(1, 3)
    member = Member(bootstrap, group, topic)
    until([member], lambda: len(member.got) == 3)
    member.commit({0: 3})
    assert "GroupNotEmptyException" in groups("--delete", "--group", group)
    member.close()
    said = groups("--delete-offsets", "--group", group, "--topic", topic)
    assert "Successful" in said
    assert "successful" in groups("--delete", "--group", group)
    assert group not in groups("--list").split()


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
