"""Election rules of partitions: which broker may lead, and under which settings.

Made once for a decision, in which it answers for any number of partitions: a topic's own settings
are looked up, the brokers' are read once.
"""

from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.controller.decision import Situation
from appliance.metadata.effective import broker_config
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.metadata.log_dirs import LOST, is_assigned
from appliance.metadata.parts import PartitionImage, TopicImage

ELR_FEATURE: Final = "eligible.leader.replicas.version"
MIGRATING: Final = bytes(16)
UNASSIGNED: Final = bytes(15) + b"\1"
"""Ids of folders that are words (KIP-858): the broker names no folders; it has not chosen one
yet."""

_MIN_ISR: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"


class EligibleLeaders:
    """active: brokers that may lead. elr: whether eligible leader replicas are kept (KIP-966)."""

    __slots__ = ("_defaults", "active", "elr", "situation")

    def __init__(self, situation: Situation, *, without: int = -1, also: int = -1) -> None:
        """without: a broker that goes. also: one that comes, which the image does not say yet."""
        image = situation.image
        self.situation = situation
        self.active = frozenset(active_brokers(image)) - {without} | ({also} - {-1})
        self.elr = image.features.get(ELR_FEATURE, 0) > 0
        self._defaults: BrokerConfig = broker_config(image, situation.config)

    def may_lead(self, partition: PartitionImage, broker_id: int) -> bool:
        """True if the broker is active and the directory of its replica is online."""
        if broker_id not in self.active:
            return False
        at = directory(partition, broker_id)
        online = self.situation.image.brokers[broker_id].log_dirs
        return at in online or (at != LOST and (not online or not is_assigned(at)))

    def min_isr(self, topic: TopicImage) -> int:
        """`min.insync.replicas` of the topic, but never more than it has replicas."""
        text = self.situation.image.config(TOPIC, topic.name).get(_MIN_ISR)
        usual = self._defaults.int(_MIN_ISR)
        wanted = int(text) if text is not None and text.isdecimal() else usual
        return min(wanted, len(topic.partitions[0].replicas))

    def unclean(self, topic: TopicImage) -> bool:
        """True if unclean.leader.election.enable holds for the topic."""
        text = self.situation.image.config(TOPIC, topic.name).get(_UNCLEAN)
        return self._defaults.bool(_UNCLEAN) if text is None else text.lower() == "true"


def active_brokers(image: MetadataImage) -> list[int]:
    """Registered brokers that are neither fenced nor shutting down, by id."""
    return sorted(
        broker.broker_id
        for broker in image.brokers.values()
        if not broker.fenced and not broker.in_controlled_shutdown
    )


def directory(partition: PartitionImage, broker_id: int) -> bytes:
    """The folder of the broker's replica; UNASSIGNED when none is named."""
    for replica, found in zip(partition.replicas, partition.directories, strict=False):
        if replica == broker_id:
            return found
    return UNASSIGNED


def partitions_of(
    image: MetadataImage, broker_id: int, *, eligible: bool = False
) -> list[tuple[TopicImage, PartitionImage]]:
    """Partitions that have the broker in the ISR, or (eligible) in the ELR. One pass over all
    partitions: for changes of a broker's state, not for its heartbeats."""
    return [
        (topic, partition)
        for topic in image.topics_by_id.values()
        for partition in topic.partitions
        if broker_id in partition.isr
        or (eligible and broker_id in partition.eligible_leader_replicas)
    ]


def partitions_that_count_on(
    image: MetadataImage, broker_id: int
) -> list[tuple[TopicImage, PartitionImage]]:
    """Partitions that have the broker in the ISR or the ELR, or know it as who led last."""
    return [
        (topic, partition)
        for topic in image.topics_by_id.values()
        for partition in topic.partitions
        if broker_id in partition.isr
        or broker_id in partition.eligible_leader_replicas
        or broker_id in partition.last_known_elr
    ]


def leaderless(image: MetadataImage) -> list[tuple[TopicImage, PartitionImage]]:
    """Partitions that have no leader."""
    return [
        (topic, partition)
        for topic in image.topics_by_id.values()
        for partition in topic.partitions
        if partition.leader == -1
    ]


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    """True if the broker leads a partition."""
    return any(
        partition.leader == broker_id
        for topic in image.topics_by_id.values()
        for partition in topic.partitions
    )
