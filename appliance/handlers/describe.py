"""What Metadata, DescribeCluster and DescribeTopicPartitions say of brokers, topics and
partitions."""

from appliance.authorization.needs import DESCRIBE_CLUSTER
from appliance.authorization.operations import CLUSTER, TOPIC
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.base.ids import INTERNAL_TOPICS, ZERO_TOPIC_ID
from appliance.controller.names import check_topic_name
from appliance.handlers.exchange import Exchange, Host
from appliance.handlers.gather import Values
from appliance.metadata.image import PartitionImage, TopicImage

NOT_ASKED_FOR = -2147483648  # authorized operations that nobody asked for


def cluster_operations(rights: Rights) -> int:
    """What the caller may do with the cluster; nothing is told to who may not see it."""
    return 0 if rights.refusal(DESCRIBE_CLUSTER) else rights.operations(CLUSTER)


def brokers(host: Host, x: Exchange) -> list[Values]:
    """The registered brokers. This one is named by the address that the client reached it at."""
    name, port = host.reached(x)
    mine = host.config.int("node.id")
    rows = []
    for broker_id, broker in sorted(host.image.brokers.items()):
        where = (name, port)
        if broker_id != mine and broker.endpoints:
            where = (broker.endpoints[0].host, broker.endpoints[0].port)
        rows.append(
            {
                "node_id": broker_id,
                "broker_id": broker_id,
                "host": where[0],
                "port": where[1],
                "rack": broker.rack,
                "is_fenced": broker.fenced,
            }
        )
    return rows


def topic(image: TopicImage, rights: Rights | None) -> Values:
    """A topic with all of its partitions. rights: of who asked what it may do with the topic."""
    return {
        "error_code": errors.NONE,
        "name": image.name,
        "topic_id": image.topic_id,
        "is_internal": image.name in INTERNAL_TOPICS,
        "partitions": [partition(item) for item in image.partitions],
        "topic_authorized_operations": NOT_ASKED_FOR
        if rights is None
        else rights.operations(TOPIC, image.name),
    }


def unknown_code(name: str) -> int:
    """Why there is no topic of this name: it cannot be one, or is not one."""
    try:
        check_topic_name(name)
    except PeerError as error:
        if error.code == errors.INVALID_TOPIC_EXCEPTION:
            return error.code
    return errors.UNKNOWN_TOPIC_OR_PARTITION


def unknown_topic(
    code: int,
    name: str | None,
    topic_id: bytes = ZERO_TOPIC_ID,
    operations: int = NOT_ASKED_FOR,
) -> Values:
    return {
        "error_code": code,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": [],
        "topic_authorized_operations": operations,
    }


def partition(image: PartitionImage) -> Values:
    return {
        "error_code": errors.NONE if image.leader >= 0 else errors.LEADER_NOT_AVAILABLE,
        "partition_index": image.index,
        "leader_id": image.leader,
        "leader_epoch": image.leader_epoch,
        "replica_nodes": image.replicas,
        "isr_nodes": image.isr,
        "eligible_leader_replicas": image.eligible_leader_replicas,
        "last_known_elr": image.last_known_elr,
        "offline_replicas": (),
    }
