"""Descriptions of brokers, topics and partitions for Metadata, DescribeCluster and
DescribeTopicPartitions.
"""

from collections.abc import Collection, Generator, Sequence
from typing import Final

from appliance.authorization.needs import DESCRIBE_CLUSTER
from appliance.authorization.operations import CLUSTER, TOPIC
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.base.ids import INTERNAL_TOPICS, ZERO_TOPIC_ID
from appliance.controller.names import check_topic_name
from appliance.handlers import nodes
from appliance.handlers.exchange import Exchange, Host
from appliance.handlers.gather import MANY, Values
from appliance.metadata.image import BrokerImage, PartitionImage, TopicImage
from appliance.metadata.log_dirs import LOST, is_assigned
from appliance.wire.leaders import NodeEndpoint

NOT_ASKED_FOR = -2147483648  # authorized operations that nobody asked for
LISTENER_ERRORS: Final = 6
"""The version of Metadata from which on a leader without the client's listener is an error of its
own."""


def cluster_operations(rights: Rights) -> int:
    """The caller's allowed operations on the cluster; 0 without DESCRIBE."""
    return rights.operations(CLUSTER) if rights.may(DESCRIBE_CLUSTER) else 0


class View:
    """The cluster as one client is told of it: brokers by the listener that it came by.

    A replica is offline when its broker is fenced, has no listener for this client, or has lost the
    folder that it lies in.
    """

    __slots__ = ("_host", "_isolated", "_known", "_registered", "_told", "_version")

    def __init__(self, host: Host, x: Exchange) -> None:
        self._host, self._isolated = host, host.processes.isolated_ms > 0
        self._version = x.version
        self._registered = host.image.brokers
        self._known: dict[int, BrokerImage] = {}
        self._told: list[tuple[BrokerImage, NodeEndpoint]] = []
        for node_id, broker in sorted(self._registered.items()):
            where = nodes.endpoint(host, x, broker)
            if where is not None and not nodes.is_left_out(host, node_id):
                self._known[node_id] = broker
                self._told.append((broker, where))

    def brokers(self, *, with_fenced: bool = False, besides: Collection[int] = ()) -> list[Values]:
        """The living ones, and these; with_fenced: all."""
        rows = []
        for broker, where in self._told:
            if with_fenced or not broker.fenced or broker.broker_id in besides:
                values = {
                    "node_id": where.node_id,
                    "broker_id": where.node_id,
                    "host": where.host,
                    "port": where.port,
                    "rack": where.rack,
                    "is_fenced": broker.fenced,
                }
                rows.append(values)
        return rows

    def topic(
        self, image: TopicImage, rights: Rights | None, partitions: list[Values] | None = None
    ) -> Values:
        """A topic with these partitions, or all of its own, which are few. rights: of who asked
        what it may do with the topic."""
        if partitions is None:
            assert len(image.partitions) <= MANY, "they take several turns"
            partitions = list(map(self.partition, image.partitions))
        return {
            "error_code": errors.NONE,
            "name": image.name,
            "topic_id": image.topic_id,
            "is_internal": image.name in INTERNAL_TOPICS,
            "partitions": partitions,
            "topic_authorized_operations": NOT_ASKED_FOR
            if rights is None
            else rights.operations(TOPIC, image.name),
        }

    def partitions(
        self, images: Sequence[PartitionImage], *, only_living: bool = False
    ) -> Generator[None, None, list[Values]]:
        """Some partitions of a topic, with a stop after MANY. only_living: as `leave_out` has
        them."""
        made: list[Values] = []
        for at, image in enumerate(images, 1):
            one = self.partition(image)
            made.append(self.leave_out(one) if only_living else one)
            if at % MANY == 0:
                yield
        return made

    def partition(self, image: PartitionImage) -> Values:
        """A partition; one whose leader cannot be told has none."""
        known = self._known
        leader = image.leader if image.leader in known else nodes.NOBODY
        deserted = self._isolated and nodes.deserts(self._host, image)
        if deserted:
            leader = nodes.NOBODY
        offline, folders = [], image.directories
        for at, node_id in enumerate(image.replicas):
            broker = known.get(node_id)
            lives = broker is not None and not broker.fenced
            if broker is not None and broker.log_dirs and at < len(folders):
                where = folders[at]
                is_there = where in broker.log_dirs or (where != LOST and not is_assigned(where))
                lives = lives and is_there
            if not lives:
                offline.append(node_id)
        return {
            "error_code": errors.NONE if leader >= 0 else self._why_none(image.leader, deserted),
            "partition_index": image.index,
            "leader_id": leader,
            "leader_epoch": image.leader_epoch,
            "replica_nodes": image.replicas,
            "isr_nodes": image.isr,
            "eligible_leader_replicas": image.eligible_leader_replicas,
            "last_known_elr": image.last_known_elr,
            "offline_replicas": offline,
        }

    def _why_none(self, leader: int, deserted: bool) -> int:
        if leader in self._registered and self._version >= LISTENER_ERRORS and not deserted:
            return errors.LISTENER_NOT_FOUND
        return errors.LEADER_NOT_AVAILABLE

    def leave_out(self, partition: Values) -> Values:
        """A partition in version 0 of Metadata: only live replicas, and an error where some are
        not.
        """
        found: Values = {}
        for field in ("replica_nodes", "isr_nodes"):
            found[field] = [one for one in partition[field] if self._lives(one)]
            if not partition["error_code"] and len(found[field]) < len(partition[field]):
                found["error_code"] = errors.REPLICA_NOT_AVAILABLE
        return {**partition, **found}

    def _lives(self, node_id: int) -> bool:
        return node_id in self._known and not self._known[node_id].fenced


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
