"""kafka-python's admin client: elections, folders, reassignments, settings of brokers, groups."""

import kafka
import kafka.errors as errors
import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from waiting import until

LIMIT_S = 60


@pytest.fixture
def admin(bootstrap):
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture
def node(admin):
    (one,) = admin.describe_cluster()["brokers"]
    return one["broker_id"]


@pytest.mark.parametrize("kind", [0, 1])
def test_elections_are_not_needed(admin, new_topic, kind):
    topic = new_topic(2)
    found = admin.elect_leaders(kind, {topic: [0, 1]}, raise_errors=False)
    assert str(found).count("error_code=84") == 2, found


def test_reassignments(admin, topic, node):
    place = TopicPartition(topic, 0)
    assert admin.list_partition_reassignments() == {}
    assert admin.list_partition_reassignments({topic: [0]}) == {}

    def ask(replicas):
        return admin.alter_partition_reassignments({place: replicas})[place]

    assert ask([node]) is None
    assert ask([node + 7]).errno == 39
    assert ask(None).errno == 85


def test_a_move_to_the_folder_where_it_is_and_to_none(admin, topic, node):
    (logs,) = admin.describe_log_dirs([topic])
    replica = (topic, 0, node)

    def ask(path):
        ((_, code),) = admin.alter_replica_log_dirs({replica: path}).items()
        return code

    assert ask(logs["log_dirs"][0]["log_dir"]) is errors.NoError
    assert ask("/not/there") is errors.LogDirNotFoundError


def test_resources_with_settings(admin, topic, node):
    group = ConfigResource(
        ConfigResourceType.GROUP, topic, {"consumer.session.timeout.ms": "50000"}
    )
    admin.alter_configs([group])
    found = {str(kind).lower(): names for kind, names in admin.list_config_resources().items()}
    assert topic in found["topic"] and topic in found["group"]
    assert str(node) in found["broker"]
    admin.reset_configs([group])
    found = admin.list_config_resources(["GROUP"])
    assert topic not in [name for names in found.values() for name in names]


def test_settings_of_a_broker(admin, node):
    resource = ConfigResource(ConfigResourceType.BROKER, str(node))
    found = admin.describe_configs([resource], config_filter="all")["broker"][str(node)]
    assert found["num.partitions"]["read_only"]
    assert not found["log.retention.ms"]["read_only"]
    assert found["ssl.keystore.password"]["value"] is None


def test_a_broker_setting_is_in_force_at_once(admin, bootstrap, topic, node):
    """The limit of all topics goes down and up again."""
    resource = ConfigResource(ConfigResourceType.BROKER, str(node), {"message.max.bytes": "3000"})
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, retries=0, acks=1)
    try:
        producer.send(topic, b"x" * 5000).get(LIMIT_S)
        admin.alter_configs([resource])
        try:
            until(lambda: refused(producer, topic))
        finally:
            admin.reset_configs([resource])
        until(lambda: not refused(producer, topic))
    finally:
        producer.close(timeout=LIMIT_S)


def refused(producer, topic):
    try:
        producer.send(topic, b"x" * 5000).get(LIMIT_S)
    except errors.MessageSizeTooLargeError:
        return True
    return False
