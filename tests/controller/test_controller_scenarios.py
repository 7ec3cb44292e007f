"""The controller as scripts: ask, look at what came back, replay, ask again."""

from itertools import count

import pytest

from appliance.base import errors
from appliance.config.broker import BrokerConfig
from appliance.config.internal_topics import OFFSETS
from appliance.controller import configs, features
from appliance.controller.config_resources import ConfigResource
from appliance.controller.configs import APPEND, DELETE, SET, SUBTRACT, ConfigOperation
from appliance.controller.decision import Situation
from appliance.controller.features import FeatureUpdate, update_features
from appliance.controller.partitions import MorePartitions, create_partitions
from appliance.controller.producer_ids import BLOCK, ProducerIdBlocks
from appliance.controller.registration import (
    Incarnation,
    bootstrap_records,
    registration_records,
)
from appliance.controller.topics import (
    NewTopic,
    TopicToDelete,
    create_topics,
    delete_topics,
    internal_topic,
)
from appliance.metadata import effective
from appliance.metadata.image import MetadataImage
from appliance.metadata.record_versions import encode
from appliance.metadata.snapshot import to_records
from appliance.wire import kraft_records as kraft

TOPIC, BROKER = 2, 4


class Cluster:
    """A cluster of one: node 1 in an image that only replay changes."""

    def __init__(self, node: int = 1, rows: int = 100, **settings: str) -> None:
        self.image = MetadataImage()
        self.numbers = count(1)
        named = {key.replace("_", "."): value for key, value in settings.items()}
        config = BrokerConfig.of({"node.id": str(node), **named})
        directory = b"d" * 16
        self.situation = Situation(self.image, config, node, directory, self.new_id, rows)
        self.replay(bootstrap_records())
        self.start()

    def new_id(self) -> bytes:
        return next(self.numbers).to_bytes(16, "big")

    def start(self, *, missing: bool = False) -> None:
        incarnation = Incarnation(
            controller_id=self.new_id(),
            broker_id=self.new_id(),
            endpoints=(),
            rack=None,
            records_may_be_missing=missing,
        )
        offset = self.image.applied_offset + 1
        self.replay(registration_records(self.situation, incarnation, offset))

    def replay(self, records) -> None:
        for record in records:
            written = encode(record, self.image.metadata_version or 30)
            self.image.apply(self.image.applied_offset + 1, kraft.decode(written))

    def create(self, *topics: NewTopic) -> dict:
        before = list(to_records(self.image))
        records, results = create_topics(self.situation, topics)
        assert list(to_records(self.image)) == before, "a decision changes nothing"
        self.replay(records)
        return {name: (result.code, result.message) for name, result, _ in results}

    def delete(self, *wanted: TopicToDelete) -> list:
        records, results = delete_topics(self.situation, wanted)
        self.replay(records)
        return [result.code for _, result, _ in results]

    def grow(self, *wanted: MorePartitions) -> dict:
        records, results = create_partitions(self.situation, wanted)
        self.replay(records)
        return {name: (result.code, result.message) for name, result in results}

    def alter(self, kind: int, name: str, *operations: ConfigOperation):
        wanted = [(ConfigResource(kind, name), operations)]
        records, [(_, result)] = configs.alter_incrementally(self.situation, wanted)
        self.replay(records)
        return result.code, result.message or ""


OK = (errors.NONE, None)


def test_a_topic_lives_and_dies():
    cluster = Cluster()
    assert cluster.create(NewTopic("flights", 3, 1)) == {"flights": OK}
    topic = cluster.image.topics_by_name["flights"]
    assert [(p.index, p.leader, p.leader_epoch, p.replicas, p.isr) for p in topic.partitions] == [
        (index, 1, 0, (1,), (1,)) for index in range(3)
    ]
    assert topic.partitions[0].directories == (b"d" * 16,)
    assert cluster.create(NewTopic("flights"))["flights"][0] == errors.TOPIC_ALREADY_EXISTS
    assert cluster.grow(MorePartitions("flights", 5)) == {"flights": OK}
    assert len(topic.partitions) == 5
    assert cluster.delete(TopicToDelete("flights")) == [errors.NONE]
    assert cluster.image.topics_by_name == {} == cluster.image.topics_by_id
    assert cluster.delete(TopicToDelete("flights")) == [errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_defaults_come_from_the_broker():
    cluster = Cluster(num_partitions="4")
    assert cluster.create(NewTopic("a")) == {"a": OK}
    assert len(cluster.image.topics_by_name["a"].partitions) == 4


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "empty"),
        (".", "'.'"),
        ("..", "'..'"),
        ("a/b", "other than ASCII"),
        ("../x", "other than ASCII"),
        ("ä", "other than ASCII"),
        ("a\n", "other than ASCII"),
        ("x" * 250, "249"),
    ],
)
def test_names_that_do_not_exist(name, says):
    code, text = Cluster().create(NewTopic(name))[name]
    assert code == errors.INVALID_TOPIC_EXCEPTION
    assert says in text


def test_the_longest_name_is_fine_and_the_metadata_log_is_not_ours_to_create():
    cluster = Cluster()
    assert cluster.create(NewTopic("x" * 249)) == {"x" * 249: OK}
    code, _ = cluster.create(NewTopic("__cluster_metadata"))["__cluster_metadata"]
    assert code == errors.TOPIC_AUTHORIZATION_FAILED


def test_names_that_collide_in_metrics():
    cluster = Cluster()
    results = cluster.create(NewTopic("a.b"), NewTopic("a_b"), NewTopic("a-b"))
    assert results["a.b"] == OK == results["a-b"]
    assert results["a_b"][0] == errors.INVALID_TOPIC_EXCEPTION
    assert "collides with existing topic: a.b" in cluster.create(NewTopic("a_b"))["a_b"][1]


def test_a_name_twice_in_one_request():
    results = Cluster().create(NewTopic("a"), NewTopic("b"), NewTopic("a"))
    assert results["a"][0] == errors.INVALID_REQUEST
    assert results["b"] == OK


@pytest.mark.parametrize("partitions", [0, -2, -(2**31)])
def test_partition_counts_out_of_range(partitions):
    code, text = Cluster().create(NewTopic("a", partitions))["a"]
    assert code == errors.INVALID_PARTITIONS
    assert str(partitions) in text and "at least 1" in text


def test_a_count_without_room_is_refused_before_anything_is_built():
    cluster = Cluster(rows=10)
    assert cluster.create(NewTopic("a", 2**31 - 1))["a"][0] == errors.POLICY_VIOLATION
    assert cluster.create(NewTopic("a", 11))["a"][0] == errors.INVALID_PARTITIONS
    results = cluster.create(NewTopic("a", 6), NewTopic("b", 6))
    assert results["a"] == OK
    assert "room for 4 more" in results["b"][1]
    assert cluster.grow(MorePartitions("a", 2**31 - 1))["a"][0] == errors.INVALID_PARTITIONS


def test_replication_factors():
    cluster = Cluster()
    code, text = cluster.create(NewTopic("a", 1, 3))["a"]
    assert code == errors.INVALID_REPLICATION_FACTOR
    assert "only 1 broker(s) are registered" in text and "Ask for a replication factor of 1" in text
    assert cluster.create(NewTopic("a", 1, 0))["a"][0] == errors.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("topic", "code", "says"),
    [
        (
            NewTopic("a", -1, 1, [(0, [1])]),
            errors.INVALID_REQUEST,
            "replication factor was not set to -1",
        ),
        (
            NewTopic("a", 1, -1, [(0, [1])]),
            errors.INVALID_REQUEST,
            "numPartitions was not set to -1",
        ),
        (NewTopic("a", -1, -1, [(1, [1])]), errors.INVALID_REPLICA_ASSIGNMENT, "0 to 0"),
        (NewTopic("a", -1, -1, [(0, [1]), (0, [1])]), errors.INVALID_REPLICA_ASSIGNMENT, "once"),
        (NewTopic("a", -1, -1, [(0, [])]), errors.INVALID_REPLICA_ASSIGNMENT, "empty"),
        (NewTopic("a", -1, -1, [(0, [1, 1])]), errors.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (NewTopic("a", -1, -1, [(0, [7])]), errors.INVALID_REPLICA_ASSIGNMENT, "broker 7"),
    ],
)
def test_manual_assignments_that_are_wrong(topic, code, says):
    found, text = Cluster().create(topic)["a"]
    assert found == code
    assert says in text


def test_manual_assignments():
    cluster = Cluster()
    assert cluster.create(NewTopic("a", -1, -1, [(1, [1]), (0, [1])])) == {"a": OK}
    assert cluster.grow(MorePartitions("a", 3, [[1]])) == {"a": OK}
    assert cluster.grow(MorePartitions("a", 5, [[1]]))["a"][0] == errors.INVALID_REPLICA_ASSIGNMENT


def test_partitions_only_grow():
    cluster = Cluster()
    cluster.create(NewTopic("a", 3))
    code, text = cluster.grow(MorePartitions("a", 2))["a"]
    assert code == errors.INVALID_PARTITIONS
    assert "currently has 3 partition(s); 2 would not be an increase" in text
    assert cluster.grow(MorePartitions("b", 2))["b"][0] == errors.UNKNOWN_TOPIC_OR_PARTITION
    twice = cluster.grow(MorePartitions("a", 4), MorePartitions("a", 5))
    assert twice["a"][0] == errors.INVALID_REQUEST


def test_the_offsets_topic_keeps_its_partitions():
    """A group lives in a partition by its name and their number: growth would lose its offsets."""
    cluster = Cluster()
    cluster.create(internal_topic(cluster.situation, OFFSETS))
    before = list(to_records(cluster.image))
    code, text = cluster.grow(MorePartitions("__consumer_offsets", 60))["__consumer_offsets"]
    assert code == errors.INVALID_REQUEST
    assert "committed offsets" in text
    assert list(to_records(cluster.image)) == before


def test_delete_by_id_and_other_ways_to_name_a_topic():
    cluster = Cluster()
    cluster.create(NewTopic("a"), NewTopic("b"))
    ids = {name: topic.topic_id for name, topic in cluster.image.topics_by_name.items()}
    both = TopicToDelete("a", ids["a"])
    assert cluster.delete(both, TopicToDelete()) == [errors.INVALID_REQUEST] * 2
    assert cluster.delete(TopicToDelete(None, b"?" * 16)) == [errors.UNKNOWN_TOPIC_ID]
    by_id = TopicToDelete(None, ids["a"])
    for again in ((by_id, TopicToDelete("a")), (by_id, by_id), (TopicToDelete("a"),) * 2):
        assert cluster.delete(*again) == [errors.INVALID_REQUEST]  # once, and it stays
    assert cluster.delete(by_id, TopicToDelete("b")) == [errors.NONE] * 2


def test_deletion_may_be_disabled():
    cluster = Cluster(delete_topic_enable="false")
    cluster.create(NewTopic("a"))
    assert cluster.delete(TopicToDelete("a")) == [errors.TOPIC_DELETION_DISABLED]


# Settings -----------------------------------------------------------------------------------------


def test_settings_of_a_new_topic_are_checked():
    cluster = Cluster()
    good = NewTopic("a", configs={"retention.ms": "1000", "cleanup.policy": "compact"})
    assert cluster.create(good) == {"a": OK}
    assert cluster.image.config(TOPIC, "a") == {"retention.ms": "1000", "cleanup.policy": "compact"}
    for config, says in [
        ({"retention.ms": "soon"}, "retention.ms"),
        ({"retention.mss": "1"}, "did you mean retention.ms"),
        ({"segment.bytes": "14"}, "1048576"),
        ({"retention.ms": None}, "Null value"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "conflict"),
    ]:
        code, text = cluster.create(NewTopic("b", configs=config))["b"]
        assert code == errors.INVALID_CONFIG
        assert says in text
    assert cluster.delete(TopicToDelete("a")) == [errors.NONE]
    assert cluster.image.configs == {}


def test_settings_set_append_subtract_and_unset():
    cluster = Cluster()
    cluster.create(NewTopic("a"))
    rules = lambda: effective.log_config(cluster.image, cluster.situation.config, "a")  # noqa: E731
    assert cluster.alter(TOPIC, "a", ConfigOperation("cleanup.policy", APPEND, "compact"))[0] == 0
    assert cluster.image.config(TOPIC, "a") == {"cleanup.policy": "delete,compact"}
    assert rules().compact and rules().delete
    assert cluster.alter(TOPIC, "a", ConfigOperation("cleanup.policy", SUBTRACT, "delete"))[0] == 0
    assert not rules().delete
    assert cluster.alter(TOPIC, "a", ConfigOperation("cleanup.policy", DELETE, None))[0] == 0
    assert cluster.image.configs == {}
    code, text = cluster.alter(TOPIC, "a", ConfigOperation("retention.ms", APPEND, "1"))
    assert code == errors.INVALID_CONFIG and "not LIST" in text
    assert cluster.alter(TOPIC, "a", ConfigOperation("x", SET, None))[0] == errors.INVALID_REQUEST
    assert cluster.alter(TOPIC, "a", ConfigOperation("x", 9, "1"))[0] == errors.INVALID_REQUEST
    same = ConfigOperation("retention.ms", SET, "1")
    assert cluster.alter(TOPIC, "a", same, same)[0] == errors.INVALID_REQUEST
    assert cluster.image.configs == {}


def test_a_setting_that_does_not_change_gives_no_record():
    cluster = Cluster()
    cluster.create(NewTopic("a", configs={"retention.ms": "5"}))
    wanted = [(ConfigResource(TOPIC, "a"), [ConfigOperation("retention.ms", SET, "5")])]
    assert configs.alter_incrementally(cluster.situation, wanted)[0] == []


def test_replace_all_unsets_what_is_not_named():
    cluster = Cluster()
    cluster.create(NewTopic("a", configs={"retention.ms": "5", "segment.ms": "6"}))
    wanted = [(ConfigResource(TOPIC, "a"), [("segment.ms", "7")])]
    records, [(_, result)] = configs.replace_all(cluster.situation, wanted)
    cluster.replay(records)
    assert result.code == errors.NONE
    assert cluster.image.config(TOPIC, "a") == {"segment.ms": "7"}
    wanted = [(ConfigResource(TOPIC, "a"), [("segment.ms", None)])]
    assert configs.replace_all(cluster.situation, wanted)[1][0][1].code == errors.INVALID_REQUEST


def test_broker_settings_and_what_cannot_change_while_it_runs():
    cluster = Cluster()
    cluster.create(NewTopic("a"))
    rules = lambda: effective.log_config(cluster.image, cluster.situation.config, "a")  # noqa: E731
    assert cluster.alter(BROKER, "", ConfigOperation("log.retention.ms", SET, "77"))[0] == 0
    assert rules().retention_ms == 77
    assert cluster.alter(BROKER, "1", ConfigOperation("log.retention.ms", SET, "78"))[0] == 0
    assert rules().retention_ms == 78
    assert cluster.alter(TOPIC, "a", ConfigOperation("retention.ms", SET, "79"))[0] == 0
    assert rules().retention_ms == 79
    for name, key, says in [
        ("", "node.id", "dynamically"),
        ("1", "no.such.thing", "Unknown"),
        ("", "sasl.enabled.mechanisms", "broker id must be specified"),
        ("1", "ssl.keystore.location", "per-listener"),
    ]:
        code, text = cluster.alter(BROKER, name, ConfigOperation(key, SET, "1"))
        assert code == errors.INVALID_REQUEST and says in text
    code, text = cluster.alter(BROKER, "1", ConfigOperation("log.segment.bytes", SET, "1"))
    assert code == errors.INVALID_REQUEST and "1048576" in text


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "", errors.INVALID_REQUEST),
        (TOPIC, "nope", errors.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "x", errors.INVALID_REQUEST),
        (BROKER, "7", errors.INVALID_REQUEST),
        (8, "1", errors.INVALID_CONFIG),
        (8, "2", errors.INVALID_REQUEST),
        (16, "m", errors.INVALID_REQUEST),
        (32, "", errors.INVALID_REQUEST),
        (32, "g", errors.INVALID_CONFIG),
        (99, "", errors.INVALID_REQUEST),
    ],
)
def test_resources_that_have_no_settings_here(kind, name, code):
    assert Cluster().alter(kind, name, ConfigOperation("a", SET, "1"))[0] == code


def test_where_a_value_comes_from():
    cluster = Cluster(log_retention_hours="2")
    cluster.create(NewTopic("a", configs={"retention.ms": "5"}))
    cluster.alter(BROKER, "", ConfigOperation("log.retention.ms", SET, "9"))
    image, config = cluster.image, cluster.situation.config
    explained = effective.explain_topic(image, config, image.config(TOPIC, "a"))
    retention = next(one for one in explained if one.name == "retention.ms")
    assert (retention.value, retention.source) == ("5", effective.TOPIC_OVERRIDE)
    assert retention.synonyms == (
        ("retention.ms", "5", effective.TOPIC_OVERRIDE),
        ("log.retention.ms", "9", effective.DYNAMIC_DEFAULT),
        ("log.retention.hours", "2", effective.STATIC),
        ("log.retention.hours", "168", effective.DEFAULT),
    )
    cluster.alter(TOPIC, "a", ConfigOperation("retention.ms", DELETE, None))
    cluster.alter(BROKER, "", ConfigOperation("log.retention.ms", DELETE, None))
    explained = effective.explain_topic(image, config, image.config(TOPIC, "a"))
    retention = next(one for one in explained if one.name == "retention.ms")
    assert (retention.value, retention.source) == ("7200000", effective.STATIC)


# Features, producer ids, registration -------------------------------------------------------------


def test_features_change_together_or_not_at_all():
    cluster = Cluster()
    up = FeatureUpdate("metadata.version", 31)
    records, [(_, result)] = update_features(cluster.situation, [up])
    assert records == [] and result.code == errors.INVALID_UPDATE_VERSION
    assert "17-30" in result.message
    same = FeatureUpdate("metadata.version", 30)
    assert update_features(cluster.situation, [same])[1][0][1].code == errors.NONE
    records, results = update_features(cluster.situation, [same, FeatureUpdate("nope", 1)])
    assert records == [] and [result.code for _, result in results] == [0, 95]
    behind = [FeatureUpdate(f"nope-{number}", 1) for number in range(1000)]
    assert len(update_features(cluster.situation, behind)[1]) == 1, "the first one is told"
    down = FeatureUpdate("metadata.version", 29, features.UNSAFE_DOWNGRADE)
    assert update_features(cluster.situation, [down])[1][0][1].code == 95


def test_metadata_version_can_be_raised():
    cluster = Cluster()
    cluster.replay([kraft.FeatureLevelRecord(name="metadata.version", feature_level=22)])
    records, [(_, result)] = update_features(
        cluster.situation, [FeatureUpdate("metadata.version", 30)]
    )
    assert result.code == errors.NONE
    cluster.replay(records)
    assert cluster.image.metadata_version == 30


def test_producer_ids_are_never_given_twice():
    cluster = Cluster()
    given: list[int] = []
    for start in range(3):
        ids = ProducerIdBlocks()  # a restart loses the rest of the block
        for _ in range(BLOCK + 10 * start):
            records, producer_id = ids.take_id(cluster.situation)
            cluster.replay(records)
            given.append(producer_id)
    assert len(set(given)) == len(given)
    assert cluster.image.next_producer_id > max(given)


def test_a_block_whose_record_was_lost_is_taken_again():
    cluster = Cluster()
    ids = ProducerIdBlocks()
    ids.take_id(cluster.situation)
    records, producer_id = ids.take_id(cluster.situation)
    assert records and producer_id == 0


def test_a_block_that_was_lost_and_went_to_somebody_else_is_given_up():
    cluster = Cluster()
    ids = ProducerIdBlocks()
    ids.take_id(cluster.situation)  # its record never comes true
    records, first = ids.block(cluster.situation)
    cluster.replay(records)
    assert first == 0
    records, producer_id = ids.take_id(cluster.situation)
    assert records and producer_id == BLOCK


def test_an_end_without_order_bumps_the_leader_epochs():
    cluster = Cluster()
    cluster.create(NewTopic("a", 2))
    partitions = cluster.image.topics_by_name["a"].partitions
    cluster.start()
    assert [p.leader_epoch for p in partitions] == [0, 0]
    cluster.start(missing=True)
    assert [(p.leader, p.leader_epoch) for p in partitions] == [(1, 1), (1, 1)]
    broker = cluster.image.brokers[1]
    assert not broker.fenced and broker.epoch == cluster.image.applied_offset - 3


def test_a_partition_without_leader_gets_one():
    cluster = Cluster()
    cluster.create(NewTopic("a"))
    topic = cluster.image.topics_by_name["a"]
    cluster.replay(
        [
            kraft.PartitionChangeRecord(
                partition_id=0,
                topic_id=topic.topic_id,
                isr=(),
                leader=-1,
                eligible_leader_replicas=(1,),
                last_known_elr=(1,),
            )
        ]
    )
    assert topic.partitions[0].leader == -1
    cluster.start()
    found = topic.partitions[0]
    assert (found.leader, found.isr, found.leader_epoch) == (1, (1,), 2)
    assert (found.eligible_leader_replicas, found.last_known_elr) == ((), ())
