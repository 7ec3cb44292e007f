"""librdkafka's admin client: topics, configs, partitions, offsets, and the errors Kafka gives."""

import confluent_kafka as ck
import pytest
from confluent_kafka import admin as ka
from test_confluent_kafka import LIMIT_S, Reader, send
from waiting import until


@pytest.fixture
def admin(bootstrap):
    return ka.AdminClient({"bootstrap.servers": bootstrap})


def only(futures):
    """The single result of an admin call; its error is raised."""
    (future,) = futures.values()
    return future.result(LIMIT_S)


def code_of(futures):
    with pytest.raises(ck.KafkaException) as told:
        only(futures)
    return told.value.args[0].code()


def test_create_list_describe_delete(admin, fresh):
    name = fresh()
    only(admin.create_topics([ka.NewTopic(name, 3, 1, config={"retention.ms": "1234567"})]))

    def partitions():
        return admin.list_topics(name, timeout=LIMIT_S).topics[name].partitions

    until(lambda: sorted(partitions()) == [0, 1, 2])
    assert all(p.leader == p.replicas[0] == p.isrs[0] for p in partitions().values())
    assert name in admin.list_topics(timeout=LIMIT_S).topics
    described = only(admin.describe_topics(ck.TopicCollection([name])))
    assert (described.name, len(described.partitions), described.is_internal) == (name, 3, False)
    assert str(described.topic_id) not in ("", "AAAAAAAAAAAAAAAAAAAAAA")
    only(admin.delete_topics([name]))
    until(lambda: name not in admin.list_topics(timeout=LIMIT_S).topics)
    assert code_of(admin.delete_topics([name])) == ck.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_what_create_refuses(admin, topic, fresh):
    assert code_of(admin.create_topics([ka.NewTopic(topic, 1, 1)])) == 36
    for bad in ("..", "a/b", "ä", "x" * 250, "a b"):
        assert code_of(admin.create_topics([ka.NewTopic(bad, 1, 1)])) == 17, bad
    assert code_of(admin.create_topics([ka.NewTopic(fresh(), 1, 3)])) == 38
    wrong = {"retention.ms": "soon"}
    assert code_of(admin.create_topics([ka.NewTopic(fresh(), 1, 1, config=wrong)])) == 40
    wrong = {"no.such.config": "1"}
    assert code_of(admin.create_topics([ka.NewTopic(fresh(), 1, 1, config=wrong)])) == 40


def test_validate_only_creates_nothing(admin, fresh):
    name = fresh()
    only(admin.create_topics([ka.NewTopic(name, 1, 1)], validate_only=True))
    assert name not in admin.list_topics(timeout=LIMIT_S).topics


def test_topic_configs(admin, topic):
    resource = ka.ConfigResource(ka.ResourceType.TOPIC, topic)
    before = only(admin.describe_configs([resource]))
    assert before["retention.ms"].value == "604800000"
    assert before["retention.ms"].is_default
    assert before["cleanup.policy"].value == "delete"
    entry = ka.ConfigEntry("retention.ms", "99999", incremental_operation=ka.AlterConfigOpType.SET)
    change = ka.ConfigResource(ka.ResourceType.TOPIC, topic, incremental_configs=[entry])
    only(admin.incremental_alter_configs([change]))
    until(lambda: only(admin.describe_configs([resource]))["retention.ms"].value == "99999")
    after = only(admin.describe_configs([resource]))["retention.ms"]
    assert (after.source, after.is_default) == (ka.ConfigSource.DYNAMIC_TOPIC_CONFIG.value, False)
    entry = ka.ConfigEntry("retention.ms", None, incremental_operation=ka.AlterConfigOpType.DELETE)
    change = ka.ConfigResource(ka.ResourceType.TOPIC, topic, incremental_configs=[entry])
    only(admin.incremental_alter_configs([change]))
    until(lambda: only(admin.describe_configs([resource]))["retention.ms"].value == "604800000")


def test_a_list_config_grows_and_shrinks(admin, topic):
    resource = ka.ConfigResource(ka.ResourceType.TOPIC, topic)

    def policy():
        return only(admin.describe_configs([resource]))["cleanup.policy"].value

    for operation, expected in (("APPEND", "delete,compact"), ("SUBTRACT", "delete")):
        kind = ka.AlterConfigOpType[operation]
        entry = ka.ConfigEntry("cleanup.policy", "compact", incremental_operation=kind)
        change = ka.ConfigResource(ka.ResourceType.TOPIC, topic, incremental_configs=[entry])
        only(admin.incremental_alter_configs([change]))
        until(lambda: policy() == expected)  # noqa: B023 - called before the loop goes on


@pytest.mark.parametrize(
    ("key", "value"),
    [("segment.bytes", "-5"), ("retention.ms", "x"), ("no.such", "1"), ("cleanup.policy", "keep")],
)
def test_a_wrong_config_is_refused(admin, topic, key, value):
    entry = ka.ConfigEntry(key, value, incremental_operation=ka.AlterConfigOpType.SET)
    change = ka.ConfigResource(ka.ResourceType.TOPIC, topic, incremental_configs=[entry])
    assert code_of(admin.incremental_alter_configs([change])) == 40


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
def test_replacing_all_configs(admin, topic):
    def alter(**configs):
        change = ka.ConfigResource(ka.ResourceType.TOPIC, topic, set_config=configs)
        only(admin.alter_configs([change]))

    resource = ka.ConfigResource(ka.ResourceType.TOPIC, topic)
    alter(**{"retention.ms": "5", "max.message.bytes": "2000"})
    alter(**{"max.message.bytes": "3000"})

    def replaced():
        now = only(admin.describe_configs([resource]))
        return (now["retention.ms"].value, now["max.message.bytes"].value) == ("604800000", "3000")

    until(replaced)


def test_broker_configs(admin):
    node = str(next(iter(admin.list_topics(timeout=LIMIT_S).brokers)))
    configs = only(admin.describe_configs([ka.ConfigResource(ka.ResourceType.BROKER, node)]))
    assert configs["log.retention.hours"].value == "168"
    assert configs["node.id"].value == node
    assert configs["node.id"].is_read_only
    assert not configs["log.retention.ms"].is_read_only


def test_configs_of_an_unknown_topic(admin, fresh):
    resource = ka.ConfigResource(ka.ResourceType.TOPIC, fresh())
    assert code_of(admin.describe_configs([resource])) == ck.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topics_own_message_limit(bootstrap, new_topic):
    topic = new_topic(max_message_bytes="1000")
    send(bootstrap, topic, [{"value": b"x" * 900}])
    with pytest.raises(ck.KafkaException) as told:
        send(bootstrap, topic, [{"value": b"x" * 1000}])
    assert told.value.args[0].code() == ck.KafkaError.MSG_SIZE_TOO_LARGE


def test_more_partitions(admin, bootstrap, topic):
    only(admin.create_partitions([ka.NewPartitions(topic, 4)]))

    def partitions():
        return sorted(admin.list_topics(topic, timeout=LIMIT_S).topics[topic].partitions)

    until(lambda: partitions() == [0, 1, 2, 3])
    send(bootstrap, topic, [{"value": b"x", "partition": 3}])
    with Reader(bootstrap, (topic, 3, 0)) as reader:
        assert reader.take(1)[0].value() == b"x"
    for count in (4, 2):
        assert code_of(admin.create_partitions([ka.NewPartitions(topic, count)])) == 37


def test_delete_records(admin, bootstrap, topic):
    send(bootstrap, topic, [{"value": b"%d" % i} for i in range(100)])
    gone = only(admin.delete_records([ck.TopicPartition(topic, 0, 60)]))
    assert gone.low_watermark == 60
    with Reader(bootstrap, (topic, 0, ck.OFFSET_BEGINNING)) as reader:
        assert reader.take(1)[0].value() == b"60"
        assert reader.client.get_watermark_offsets(ck.TopicPartition(topic, 0), LIMIT_S) == (
            60,
            100,
        )
    assert code_of(admin.delete_records([ck.TopicPartition(topic, 0, 101)])) == 1
    gone = only(admin.delete_records([ck.TopicPartition(topic, 0, ck.OFFSET_END)]))
    assert gone.low_watermark == 100


def test_offsets_of_every_kind(admin, bootstrap, topic):
    stamps = [1_600_000_000_000 + i for i in (5, 9, 1, 3)]
    send(bootstrap, topic, [{"value": b"x", "timestamp": stamp} for stamp in stamps])

    def listed(spec):
        return only(admin.list_offsets({ck.TopicPartition(topic, 0): spec}))

    assert listed(ka.OffsetSpec.earliest()).offset == 0
    assert listed(ka.OffsetSpec.latest()).offset == 4
    newest = listed(ka.OffsetSpec.max_timestamp())
    assert (newest.offset, newest.timestamp) == (1, stamps[1])
    found = listed(ka.OffsetSpec.for_timestamp(stamps[0] + 1))
    assert (found.offset, found.timestamp) == (1, stamps[1])
    assert listed(ka.OffsetSpec.for_timestamp(stamps[1] + 1)).offset == -1


def test_describe_cluster(admin):
    cluster = admin.describe_cluster().result(LIMIT_S)
    assert len(cluster.nodes) == 1
    assert cluster.controller.id == cluster.nodes[0].id
    assert len(cluster.cluster_id) == 22
