"""An image as the records that would replay into it: what a `.checkpoint` file holds between its
header and its footer.

Invariant: replaying `to_records(image)` into an empty image gives an equal image, offsets aside.
The first record is the metadata.version, as every reader expects.
"""

from collections.abc import Iterator

from appliance.metadata.image import METADATA_VERSION, MetadataImage
from appliance.metadata.parts import BrokerImage, ControllerImage, PartitionImage
from appliance.wire import kraft_records as kraft


def to_records(image: MetadataImage) -> Iterator[object]:
    """The records of a snapshot, in the order in which they can be replayed."""
    assert image.pending is None, "no snapshot in the middle of a metadata transaction"
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield kraft.FeatureLevelRecord(name=name, feature_level=image.features[name])
    for controller in image.controllers.values():
        yield controller_record(controller)
    for broker in image.brokers.values():
        yield broker_record(broker)
    for topic in image.topics_by_name.values():
        yield kraft.TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            yield partition_record(topic.topic_id, partition)
    for (resource_type, resource_name), settings in image.configs.items():
        for key, value in settings.items():
            yield kraft.ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=key, value=value
            )
    for entity, quotas in image.quotas.items():
        entities = tuple(
            kraft.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
        )
        for key, limit in quotas.items():
            yield kraft.ClientQuotaRecord(entity=entities, key=key, value=limit, remove=False)
    if image.next_producer_id:
        yield kraft.ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )
    yield from image.kept.values()


def partition_record(topic_id: bytes, partition: PartitionImage) -> kraft.PartitionRecord:
    """The record that creates this partition as it is."""
    return kraft.PartitionRecord(
        partition_id=partition.index,
        topic_id=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.eligible_leader_replicas or None,
        last_known_elr=partition.last_known_elr or None,
    )


def broker_record(broker: BrokerImage) -> kraft.RegisterBrokerRecord:
    """The record that registers this broker as it is."""
    return kraft.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        is_migrating_zk_broker=False,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=broker.endpoints,
        features=broker.features,
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs,
    )


def controller_record(controller: ControllerImage) -> kraft.RegisterControllerRecord:
    """The record that registers this controller as it is."""
    return kraft.RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=False,
        end_points=controller.endpoints,
        features=controller.features,
    )
