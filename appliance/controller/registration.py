"""Records that a node writes about itself at its start: controller, broker, unfenced, leader again.

A partition that has no leader gets this node when it holds all there is; after an end without order
every partition that it leads gets a new leader epoch, because records may be missing and clients
must look (KIP-320).
"""

from dataclasses import replace
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.config.broker import BrokerConfig
from appliance.controller.decision import Record, Situation
from appliance.controller.electorate import ELR_FEATURE
from appliance.controller.eligible import settings_to_begin
from appliance.controller.features import FRESH, SUPPORTED
from appliance.metadata.image import METADATA_VERSION, MetadataImage
from appliance.metadata.parts import BrokerImage, ControllerImage, Endpoint, Feature, PartitionImage
from appliance.metadata.snapshot import broker_record, controller_record
from appliance.wire import kraft_records as kraft

UNFENCED: Final = -1


@dataclass(slots=True, frozen=True, kw_only=True)
class Incarnation:
    """This start of this node. controller_id, broker_id: 16 fresh bytes each."""

    controller_id: bytes
    broker_id: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    records_may_be_missing: bool


def bootstrap_records() -> list[Record]:
    """The first records of a new cluster, metadata.version before all others."""
    names = sorted(FRESH, key=lambda name: (name != METADATA_VERSION, name))
    return [kraft.FeatureLevelRecord(name=name, feature_level=FRESH[name]) for name in names]


def records_of_several(config: BrokerConfig) -> list[Record]:
    """Returns the additional first records of a cluster of several nodes: eligible leader replicas
    (KIP-966). config: of the controller that begins it."""
    feature = kraft.FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)
    return [feature, *settings_to_begin({}, config)]


def registered(image: MetadataImage, node: int, incarnation: Incarnation) -> bool:
    """True if the image has this incarnation of the node as broker and controller: a node that
    leads again writes nothing."""
    broker, controller = image.brokers.get(node), image.controllers.get(node)
    return (
        broker is not None
        and broker.incarnation_id == incarnation.broker_id
        and not broker.fenced
        and controller is not None
        and controller.incarnation_id == incarnation.controller_id
    )


def registration_records(
    situation: Situation, incarnation: Incarnation, next_offset: int
) -> list[Record]:
    """Everything this start says. next_offset: where the first of these records will stand; the
    broker's epoch is the offset of its registration."""
    node = situation.node_id
    features = tuple(
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED.items()
    )
    controller = ControllerImage(
        controller_id=node,
        incarnation_id=incarnation.controller_id,
        endpoints=(),
        features=features,
    )
    epoch = next_offset + 1
    broker = BrokerImage(
        broker_id=node,
        incarnation_id=incarnation.broker_id,
        epoch=epoch,
        endpoints=incarnation.endpoints,
        features=features,
        rack=incarnation.rack,
        log_dirs=situation.directories or (situation.directory_id,),
    )
    return [
        controller_record(controller),
        broker_record(broker),
        kraft.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=epoch, fenced=UNFENCED),
        *_leaders(situation.image, node, incarnation.records_may_be_missing),
    ]


def _leaders(image: MetadataImage, node: int, again: bool) -> list[Record]:
    """A leader for partitions that need one and can have this node."""
    return [
        _elect(topic.topic_id, partition, node)
        for topic in image.topics_by_name.values()
        for partition in topic.partitions
        if (again and partition.leader == node) or _may_lead(partition, node)
    ]


def _may_lead(partition: PartitionImage, node: int) -> bool:
    safe = partition.isr or partition.eligible_leader_replicas or partition.last_known_elr
    return partition.leader == -1 and node in safe


def _elect(topic_id: bytes, partition: PartitionImage, node: int) -> kraft.PartitionChangeRecord:
    record = kraft.PartitionChangeRecord(
        partition_id=partition.index, topic_id=topic_id, leader=node
    )
    if not partition.isr:
        record = replace(record, isr=(node,))
    if partition.eligible_leader_replicas:
        others = tuple(one for one in partition.eligible_leader_replicas if one != node)
        record = replace(record, eligible_leader_replicas=others)
    if partition.last_known_elr:
        record = replace(record, last_known_elr=())
    return record
