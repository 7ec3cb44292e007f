"""Elections, reassignments and the settings of groups, as Apache Kafka 4.3 answers on one node."""

from dataclasses import replace

import pytest
from test_controller_scenarios import BROKER, TOPIC, Cluster

from appliance.base import errors
from appliance.controller.configs import APPEND, DELETE, SET, ConfigOperation
from appliance.controller.elections import elect_leaders
from appliance.controller.reassignments import alter_reassignments, reassignments
from appliance.controller.topics import NewTopic
from appliance.metadata import effective_groups
from appliance.metadata.effective import broker_config, explain_broker, explain_topic
from appliance.metadata.snapshot import broker_record, partition_record

GROUP, LOGGER = 32, 8
NOT_NEEDED, UNKNOWN = errors.ELECTION_NOT_NEEDED, errors.UNKNOWN_TOPIC_OR_PARTITION
WRONG = errors.INVALID_REPLICA_ASSIGNMENT


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.create(NewTopic("t", 2))
    return cluster


def shape(cluster, index=0, **changed):
    """Make a partition what another controller may have left behind."""
    topic = cluster.image.topics_by_name["t"]
    new = topic.partitions[index]._replace(**changed)
    cluster.replay([partition_record(topic.topic_id, new)])


def neighbour(cluster, fenced=False):
    """A second broker, which runs if it is not fenced."""
    other = replace(cluster.image.brokers[1], broker_id=2, fenced=fenced, epoch=99)
    cluster.replay([broker_record(other)])


def elect(cluster, kind, wanted):
    records, whole, results = elect_leaders(cluster.situation, kind, wanted)
    cluster.replay(records)
    return whole.code, [(t, [(i, r.code) for i, r in rows]) for t, rows in results]


def move(cluster, wanted, allow=True):
    asked = [("t", [wanted])] if isinstance(wanted[0], int) else [wanted]
    records, results = alter_reassignments(cluster.situation, asked, may_change_factor=allow)
    cluster.replay(records)
    ((_, ((_, result),)),) = results
    return result.code


def test_no_election_is_needed_where_the_only_replica_leads(cluster):
    wanted = [("t", [0, 7]), ("nope", [0])]
    expected = [("t", [(0, NOT_NEEDED), (7, UNKNOWN)]), ("nope", [(0, UNKNOWN)])]
    for kind in (0, 1):
        assert elect(cluster, kind, wanted) == (0, expected)
        assert elect(cluster, kind, None) == (0, [("t", [])])
    code, rows = elect(cluster, 7, [("t", [0])])
    assert (code, rows) == (errors.INVALID_REQUEST, [("t", [(0, errors.INVALID_REQUEST)])])


def test_leadership_goes_back_to_the_preferred_replica_when_it_is_in_sync(cluster):
    neighbour(cluster)
    shape(cluster, replicas=(1, 2), isr=(2,), leader=2, directories=(b"d" * 16, b"d" * 16))
    assert elect(cluster, 0, [("t", [0])])[1] == [
        ("t", [(0, errors.PREFERRED_LEADER_NOT_AVAILABLE)])
    ]
    shape(cluster, replicas=(1, 2), isr=(2, 1), leader=2, leader_epoch=5)
    assert elect(cluster, 0, [("t", [0, 0])])[1] == [("t", [(0, 0), (0, 0)])]
    found = cluster.image.partition("t", 0)
    assert (found.leader, found.leader_epoch) == (1, 6), "asked for twice it is one election"


def test_an_unclean_election_is_for_partitions_without_a_leader(cluster):
    neighbour(cluster, fenced=True)
    shape(cluster, replicas=(2,), isr=(2,), leader=-1)
    assert elect(cluster, 1, [("t", [0])])[1] == [
        ("t", [(0, errors.ELIGIBLE_LEADERS_NOT_AVAILABLE)])
    ]
    shape(cluster, replicas=(2, 1), isr=(2,), leader=-1)
    assert elect(cluster, 1, None)[1] == [("t", [(0, 0)])]
    found = cluster.image.partition("t", 0)
    assert (found.leader, found.isr) == (1, (1,))


@pytest.mark.parametrize("replicas", [[2], [1, 1], [], [-1], [1, 2]])
def test_a_reassignment_to_what_is_not_there_is_refused(cluster, replicas):
    assert move(cluster, (0, replicas)) == WRONG


def test_a_reassignment_to_what_is_changes_nothing(cluster):
    before = cluster.image.partition("t", 0)
    assert move(cluster, (0, [1])) == 0
    assert cluster.image.partition("t", 0) == before
    assert move(cluster, (0, None)) == errors.NO_REASSIGNMENT_IN_PROGRESS
    assert move(cluster, (9, [1])) == UNKNOWN == move(cluster, ("nope", [(0, None)]))
    assert reassignments(cluster.image, None) == []


def test_replicas_of_nodes_that_are_gone_can_be_given_up(cluster):
    neighbour(cluster, fenced=True)
    shape(cluster, replicas=(2, 1), isr=(2, 1), leader=2, directories=(b"b" * 16, b"d" * 16))
    assert move(cluster, (0, [1]), allow=False) == errors.INVALID_REPLICATION_FACTOR
    assert move(cluster, (0, [1])) == 0
    found = cluster.image.partition("t", 0)
    assert (found.replicas, found.isr, found.leader) == ((1,), (1,), 1)
    assert found.directories == (b"d" * 16,)
    shape(cluster, 1, replicas=(2, 1), isr=(2,), leader=-1)
    assert move(cluster, (1, [1])) == 0
    found = cluster.image.partition("t", 1)
    assert (found.replicas, found.removing_replicas) == ((1, 2), (2,)), "1 has not everything yet"


def test_a_reassignment_that_was_under_way_is_told_and_can_be_cancelled(cluster):
    neighbour(cluster)
    shape(cluster, replicas=(1, 2), isr=(1,), leader=1, adding_replicas=(2,))
    ((name, (found,)),) = reassignments(cluster.image, None)
    assert (name, found.index, found.adding_replicas) == ("t", 0, (2,))
    assert reassignments(cluster.image, [("t", [1, 5]), ("nope", [0])]) == []
    assert move(cluster, (0, None)) == 0
    found = cluster.image.partition("t", 0)
    assert (found.replicas, found.adding_replicas, found.leader) == ((1,), (), 1)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("nope", "1", "Unknown group config name: nope"),
        ("consumer.session.timeout.ms", "x", "Invalid value"),
        ("consumer.session.timeout.ms", "5", "group.consumer.min.session.timeout.ms"),
        ("consumer.session.timeout.ms", "70000", "group.consumer.max.session.timeout.ms"),
        ("consumer.heartbeat.interval.ms", "60000", "group.consumer.max.heartbeat.interval.ms"),
        ("share.auto.offset.reset", "x", "either 'earliest', 'latest' or of the format"),
    ],
)
def test_a_group_setting_that_is_refused(cluster, key, value, words):
    code, text = cluster.alter(GROUP, "g", ConfigOperation(key, SET, value))
    assert code == errors.INVALID_CONFIG and words in text


@pytest.mark.parametrize(
    ("durations", "code"),
    [
        ("P1D PT1H PT1H1M1S PT1.5S PT1,5S PT1.S PT0S PT+1S +PT1S -PT-1S P-1DT25H pt1h p1dt1s", 0),
        ("P PT P1DT x P1D2H PT1H1D PT1S1H PT1.5H PT.5S P2W P1Y", errors.INVALID_CONFIG),
        ("-PT1H PT-0.5S P-1D PT0.1234567891S PT9223372036854775808S", errors.INVALID_CONFIG),
        (f"PT{'9' * 20_000}S", errors.INVALID_CONFIG),
    ],
)
def test_where_a_share_group_begins_is_a_duration_as_java_reads_it(cluster, durations, code):
    for one in durations.split():
        change = ConfigOperation("share.auto.offset.reset", SET, f"by_duration:{one}")
        assert cluster.alter(GROUP, "g", change)[0] == code, one[:50]


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (
            "num.io.threads",
            "3",
            "num.io.threads=3, value should be at least half the current value",
        ),
        ("num.io.threads", "17", "value should not be greater than double the current value 8"),
        ("num.network.threads", "7", "Dynamic thread count update validation failed for num.net"),
        ("remote.log.reader.threads", "4", "at least half the current value 10"),
        ("log.cleaner.threads", "0", "Log cleaner threads should be at least 1"),
        ("log.cleaner.threads", "3", "cannot be increased to more than double the current value 1"),
    ],
)
def test_threads_are_halved_or_doubled_at_most(cluster, name, key, value, words):
    code, text = cluster.alter(BROKER, name, ConfigOperation(key, SET, value))
    assert code == errors.INVALID_REQUEST and words in text


def test_threads_change_in_steps_from_what_is_in_force(cluster):
    def set_to(value, name="1"):
        return cluster.alter(BROKER, name, ConfigOperation("log.cleaner.threads", SET, value))

    assert set_to("2")[0] == set_to("4")[0] == 0
    code, text = set_to("1")
    assert code == errors.INVALID_REQUEST and "reduced to less than half the current" in text
    assert set_to("1", "")[0] == 0, "the broker's own value stays in force"
    assert cluster.alter(BROKER, "1", ConfigOperation("log.cleaner.threads", DELETE, None))[0] == 0


def test_a_group_has_settings_of_its_own_over_the_brokers(cluster):
    key = "consumer.session.timeout.ms"

    def now():
        rows = effective_groups.explain_group(cluster.image, cluster.situation.config, "g")
        assert len(rows) == 17
        (row,) = [row for row in rows if row.name == key]
        return row.value, row.source, row.synonyms[-1]

    behind = ("group.consumer.session.timeout.ms", "45000", 5)
    assert now() == ("45000", 5, behind)
    assert cluster.alter(GROUP, "g", ConfigOperation(key, SET, "50000"))[0] == 0
    assert now() == ("50000", 8, behind)
    assert cluster.alter(GROUP, "g", ConfigOperation(key, APPEND, "1"))[0] == errors.INVALID_CONFIG
    assert cluster.alter(GROUP, "g", ConfigOperation(key, DELETE, None))[0] == 0
    assert now() == ("45000", 5, behind)


def test_heartbeats_come_more_often_than_sessions_end():
    cluster = Cluster(group_consumer_max_heartbeat_interval_ms="60000")
    change = ConfigOperation("consumer.heartbeat.interval.ms", SET, "50000")
    code, text = cluster.alter(GROUP, "g", change)
    assert code == errors.INVALID_CONFIG and "consumer.session.timeout.ms (45000)" in text


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        (BROKER, "", "num.io.threads", "9"),
        (BROKER, "1", "sasl.kerberos.service.name", "kafka"),
        (BROKER, "1", "listener.name.plaintext.sasl.jaas.config", "secret"),
        (TOPIC, "t", "preallocate", "true"),
        (GROUP, "g", "share.auto.offset.reset", "earliest"),
    ],
)
def test_what_has_no_effect_can_be_set_as_in_kafka(cluster, kind, name, key, value):
    """Tools that set everything go through; what has no effect says so in its description."""
    code, text = cluster.alter(kind, name, ConfigOperation(key, SET, value))
    assert (code, text) == (0, "")
    image, config = cluster.image, cluster.situation.config
    rows = {
        BROKER: lambda: explain_broker(image, config, 1),
        TOPIC: lambda: explain_topic(image, config, image.config(TOPIC, name)),
        GROUP: lambda: effective_groups.explain_group(image, config, name),
    }[kind]()
    (row,) = [row for row in rows if row.name == key]
    assert row.read_only == key.startswith("listener.name.")  # as Apache Kafka says
    assert row.sensitive or row.value == value
    assert "no effect" in row.doc
    broker_config(image, config)  # and a broker starts with it
    assert cluster.alter(kind, name, ConfigOperation(key, DELETE, None))[0] == 0


def test_what_would_lose_records_without_an_effect_is_refused(cluster):
    wanted = ConfigOperation("remote.storage.enable", SET, "true")
    code, text = cluster.alter(TOPIC, "t", wanted)
    assert code == errors.INVALID_CONFIG and text.startswith("Tiered Storage functionality is")


def test_levels_of_loggers_are_checked_and_are_no_metadata(cluster):
    before = cluster.image.applied_offset
    for key, level in (("root", "DEBUG"), ("penstock.netproc", "FATAL")):
        assert cluster.alter(LOGGER, "1", ConfigOperation(key, SET, level)) == (0, "")
    assert cluster.alter(LOGGER, "1", ConfigOperation("penstock.netproc", DELETE, None))[0] == 0
    assert cluster.image.applied_offset == before
    for key, level in (("root", "LOUD"), ("kafka.server", "INFO")):
        code, text = cluster.alter(LOGGER, "1", ConfigOperation(key, SET, level))
        assert code == errors.INVALID_CONFIG and key in text
    code, _ = cluster.alter(LOGGER, "1", ConfigOperation("root", DELETE, None))
    assert code == errors.INVALID_REQUEST


def test_a_list_grows_no_longer_than_a_string(cluster):
    members = ",".join(f"10.0.{n // 250}.{n % 250}:{n}" for n in range(1700))
    change = ConfigOperation("max.connections.per.ip.overrides", APPEND, members)
    assert cluster.alter(BROKER, "", change)[0] == 0
    more = ConfigOperation(
        "max.connections.per.ip.overrides", APPEND, "1" + members.replace(",", ",1")
    )
    code, text = cluster.alter(BROKER, "", more)
    assert code == errors.INVALID_CONFIG and "32767" in text


def test_new_partitions_go_to_the_folder_with_the_fewest(cluster):
    first, second = b"d" * 16, b"e" * 16

    def places(name):
        found = cluster.image.topics_by_name[name].partitions
        return [partition.directories[0] for partition in found]

    def create(name, partitions):
        cluster.situation.counts = None  # as at the beginning of every request
        cluster.create(NewTopic(name, partitions))

    assert places("t") == [first, first]
    cluster.situation.directories = (first, second)
    create("u", 5)
    assert places("u") == [second, second, first, second, first]
    create("v", 2)
    assert places("v") == [second, first]
    cluster.situation.directories = (second,)
    create("w", 2)
    assert places("w") == [second, second], "the other one is away, or takes no more"
