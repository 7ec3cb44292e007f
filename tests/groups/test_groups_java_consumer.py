"""Kafka's Java consumer and tools in groups of the consumer protocol (KIP-848), beside librdkafka:
joining, looking, changing the protocol of a working group, and the feature that allows it."""

import subprocess

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient
from group_members import LIMIT_S, fill, until
from test_groups_consumer_protocol import Consumer
from test_groups_java_tools import TOOLS
from test_groups_java_tools import groups as groups
from test_groups_java_tools import pytestmark as pytestmark
from test_groups_java_tools import tool as tool

from benchmarks import kafka
from tests import java_tools

NEW = ("--command-property", "group.protocol=consumer")


def rows(table):
    """The rows of a table that a tool printed, by its headings."""
    lines = [line.split() for line in table.splitlines() if line.strip()]
    at = next(n for n, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[at], line, strict=False)) for line in lines[at + 1 :]]


def consume(tool, topic, group, count, *more):
    words = ["--topic", topic, "--group", group, "--max-messages", str(count), *NEW]
    said = tool("consumer.ConsoleConsumer", *words, "--timeout-ms", "60000", *more)
    return [line for line in said.splitlines() if line.isdigit()]


@pytest.fixture
def member(bootstrap, group):
    made = []

    def make(topic, **settings):
        made.append(Consumer(bootstrap, group, [topic], **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def java_member(bootstrap, group):
    """A function that starts a verifiable consumer of a protocol: (topic, protocol) → process."""
    made = []

    def start(topic, protocol):
        words = ["--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group]
        words += ["--group-protocol", protocol, "--reset-policy", "earliest"]
        if protocol == "CLASSIC":
            words += ["--session-timeout", "6000"]
        made.append(subprocess.Popen(
            kafka.java(TOOLS + "VerifiableConsumer", *words),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ))  # fmt: skip
        return made[-1]

    yield start
    for process in made:
        stop(process)


def stop(process):
    """It leaves its group in order."""
    process.terminate()
    process.wait(LIMIT_S)


class Seen:
    """What the coordinator says of a group, asked each time."""

    def __init__(self, bootstrap, group):
        self.admin, self.group = AdminClient({"bootstrap.servers": bootstrap}), group

    def shared(self, kind, members, partitions):
        """Whether it is stable, of this protocol, and each partition has one owner."""
        found = self.admin.describe_consumer_groups([self.group])[self.group].result()
        owned = [p.partition for m in found.members for p in m.assignment.topic_partitions]
        return (
            found.type == kind
            and found.state == ck.ConsumerGroupState.STABLE
            and len(found.members) == members
            and sorted(owned) == list(range(partitions))
        )


CLASSIC, CONSUMER = ck.ConsumerGroupType.CLASSIC, ck.ConsumerGroupType.CONSUMER


def test_a_console_consumer_goes_on_where_the_last_one_was(tool, filled, group):
    topic = filled(1, 10)
    first = consume(tool, topic, group, 4, "--from-beginning")
    second = consume(tool, topic, group, 6)
    assert first + second == [str(number) for number in range(10)]


def test_a_verifiable_consumer_reads_and_commits(tool, filled, fresh):
    topic = filled(2, 50)
    for assignor in ("uniform", "range"):
        said = tool(
            "VerifiableConsumer", "--topic", topic, "--group-id", fresh(), "--max-messages", "100",
            "--reset-policy", "earliest", "--group-protocol", "CONSUMER",
            "--group-remote-assignor", assignor,
        )  # fmt: skip
        assert '"name":"offsets_committed"' in said
        assert '"success":false' not in said


def test_list_and_describe(tool, groups, member, filled, group):
    topic = filled(2, 5)
    one = member(topic, client_id="the-client")
    until([one], lambda: len(one.got) == 10)
    offsets = [ck.TopicPartition(topic, 0, 5), ck.TopicPartition(topic, 1, 3)]
    one.client.commit(offsets=offsets, asynchronous=False)
    found = rows(groups("--describe", "--group", group))
    assert {(r["PARTITION"], r["CURRENT-OFFSET"], r["LAG"], r["CLIENT-ID"]) for r in found} == {
        ("0", "5", "0", "the-client"),
        ("1", "3", "2", "the-client"),
    }
    (seen,) = rows(groups("--describe", "--group", group, "--members", "--verbose"))
    assert seen["#PARTITIONS"] == "2"
    assert int(seen["CURRENT-EPOCH"]) == int(seen["TARGET-EPOCH"]) > 0
    (state,) = rows(groups("--describe", "--group", group, "--state", "--verbose"))
    assert "Stable" in state.values()
    assert "uniform" in state.values()
    (line,) = [line for line in tool("GroupsCommand", "--list").splitlines() if group in line]
    assert line.split() == [group, "Consumer", "consumer"]
    typed = groups("--list", "--type", "consumer")
    assert group in typed.split()
    assert group not in groups("--list", "--type", "classic").split()


def test_a_group_of_java_changes_to_the_new_protocol_and_back(
    bootstrap, java_member, member, filled, group
):
    topic, seen = filled(4, 5), Seen(bootstrap, group)
    old = java_member(topic, "CLASSIC")
    until([], lambda: seen.shared(CLASSIC, 1, 4), 60)
    one = member(topic)
    until([one], lambda: seen.shared(CONSUMER, 2, 4) and one.owned, 60)
    one.close()
    until([], lambda: seen.shared(CLASSIC, 1, 4), 60)
    new = java_member(topic, "CONSUMER")
    until([], lambda: seen.shared(CONSUMER, 2, 4), 60)
    stop(old)
    until([], lambda: seen.shared(CONSUMER, 1, 4), 60)
    stop(new)


def test_a_new_group_of_java_goes_back_to_classic(bootstrap, java_member, member, filled, group):
    """The other way round: a group that began with the new protocol goes back to the classic one
    when only classic members are left."""
    topic, seen = filled(4, 5), Seen(bootstrap, group)
    new = java_member(topic, "CONSUMER")
    until([], lambda: seen.shared(CONSUMER, 1, 4), 60)
    settings = {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky",
                "session_timeout_ms": 6000, "heartbeat_interval_ms": 200}  # fmt: skip
    one = member(topic, **settings)
    until([one], lambda: seen.shared(CONSUMER, 2, 4) and one.owned, 60)
    stop(new)
    until([one], lambda: seen.shared(CLASSIC, 1, 4) and len(one.owned) == 4, 60)
    assert not one.told


def test_a_cluster_that_was_made_before_the_protocol(fresh_appliance, group):
    """Its group.version is 0: the protocol is refused with the reason, until the feature is
    raised with Kafka's own tool, and stays raised."""
    old = fresh_appliance()

    def features(*arguments):
        words = ["--bootstrap-server", old.bootstrap, *arguments]
        return java_tools.tool(TOOLS + "FeatureCommand", *words).stdout

    (line,) = [line for line in features("describe").splitlines() if "group.version" in line]
    assert "SupportedMaxVersion: 1" in line
    assert "FinalizedVersionLevel: 1" in line
    assert "was downgraded" in features("downgrade", "--feature", "group.version=0")
    old.restart()
    refused = Consumer(old.bootstrap, group, ["t"])
    until([refused], lambda: refused.told)
    refused.close()
    assert "was upgraded" in features("upgrade", "--feature", "group.version=1")
    old.restart()
    fill(old.bootstrap, "t", 1, 1)
    taken = Consumer(old.bootstrap, group, ["t"])
    until([taken], lambda: taken.owned == {("t", 0)})
    taken.close()
