"""One function per kind of metadata record: what replaying it does to an image, and what changed.

Called by MetadataImage.apply alone. A record that contradicts the image (a partition of a topic
that nobody created, a hole in the partition numbers) raises ReplayFailed: the log is not one that a
controller wrote, and guessing would lose data.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from appliance.metadata.changes import (
    BrokerChanged,
    Change,
    ConfigChanged,
    ControllerChanged,
    FeatureChanged,
    KeptChanged,
    PartitionAdded,
    PartitionChanged,
    ProducerIdsTaken,
    QuotaChanged,
    TopicAdded,
    TopicRemoved,
    partition_changed,
)
from appliance.metadata.image_state import TOPIC, ImageState
from appliance.metadata.parts import (
    BrokerImage,
    ControllerImage,
    PartitionImage,
    TopicImage,
)
from appliance.wire import kraft_records as kraft

LEADER_UNCHANGED: Final = -2

K = TypeVar("K")
V = TypeVar("V")


class ReplayFailed(Exception):
    """A metadata record contradicts what the records before it said."""


OnFault = Callable[[object, Exception], None]
"""(record, its exception): takes a record that does not replay, which is skipped."""


def replay(image: ImageState, record: object, on_fault: OnFault | None = None) -> list[Change]:
    """Apply one record, or hold it back until its transaction ends (KIP-868). on_fault: takes what
    does not replay; without it the exception is raised."""
    if image.pending is not None and type(record) not in _BOUNDS:
        image.pending.append(record)
        return []
    if on_fault is None:
        return _replay_one(image, record)
    ends = image.pending is not None and isinstance(record, kraft.EndTransactionRecord)
    changes: list[Change] = []
    for one in _held(image) if ends else (record,):
        try:
            changes += _replay_one(image, one)
        except Exception as cause:
            on_fault(one, cause)
    return changes


def _begin(image: ImageState, record: kraft.BeginTransactionRecord) -> list[Change]:
    if image.pending is not None:
        raise ReplayFailed("a metadata transaction begins inside another one")
    image.pending = []
    return []


def _end(image: ImageState, record: kraft.EndTransactionRecord) -> list[Change]:
    return [change for one in _held(image) for change in _replay_one(image, one)]


def _abort(image: ImageState, record: kraft.AbortTransactionRecord) -> list[Change]:
    _held(image)
    return []


def _held(image: ImageState) -> list[object]:
    """Returns the records of the finished transaction."""
    held, image.pending = image.pending, None
    if held is None:
        raise ReplayFailed("a metadata transaction ends that never began")
    return held


def _replay_one(image: ImageState, record: object) -> list[Change]:
    function = _REPLAY.get(type(record))
    if function is None:
        image.skipped += 1
        return []
    return function(image, record)


def _topic(image: ImageState, topic_id: bytes) -> TopicImage:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise ReplayFailed(f"no topic has the id {topic_id.hex()}")
    return topic


def _add_topic(image: ImageState, record: kraft.TopicRecord) -> list[Change]:
    if record.name in image.topics_by_name or record.topic_id in image.topics_by_id:
        raise ReplayFailed(f"topic {record.name} is created twice")
    image.new_topic(record.name, record.topic_id)
    return [TopicAdded(record.name, record.topic_id)]


def _remove_topic(image: ImageState, record: kraft.RemoveTopicRecord) -> list[Change]:
    topic = _topic(image, record.topic_id)
    del image.topics_by_name[topic.name]
    del image.topics_by_id[topic.topic_id]
    image.configs.pop((TOPIC, topic.name), None)
    return [TopicRemoved(topic.name, topic.topic_id, len(topic.partitions))]


def _add_partition(image: ImageState, record: kraft.PartitionRecord) -> list[Change]:
    topic = image.editable(_topic(image, record.topic_id))
    index = record.partition_id
    partition = PartitionImage(
        index=index,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        replicas=record.replicas,
        isr=record.isr,
        directories=record.directories,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        leader_recovery_state=record.leader_recovery_state,
        eligible_leader_replicas=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
    )
    if index < len(topic.partitions):
        topic.partitions[index] = partition
        return [PartitionChanged(topic.name, topic.topic_id, index)]
    if index > len(topic.partitions):
        raise ReplayFailed(
            f"partition {index} of {topic.name} comes after {len(topic.partitions)} partitions"
        )
    topic.partitions.append(partition)
    return [PartitionAdded(topic.name, topic.topic_id, index)]


def _change_partition(image: ImageState, record: kraft.PartitionChangeRecord) -> list[Change]:
    """As KIP-631: every change bumps the partition epoch, a named leader the leader epoch too."""
    topic = image.editable(_topic(image, record.topic_id))
    if not 0 <= record.partition_id < len(topic.partitions):
        raise ReplayFailed(f"partition {record.partition_id} of {topic.name} does not exist")
    old = topic.partitions[record.partition_id]
    (
        index, leader, leader_epoch, partition_epoch, replicas, isr, directories, removing, adding,
        recovery, eligible, last,
    ) = old  # fmt: skip
    if record.leader != LEADER_UNCHANGED:
        leader, leader_epoch = record.leader, leader_epoch + 1
    new = topic.partitions[record.partition_id] = PartitionImage(
        index,
        leader,
        leader_epoch,
        partition_epoch + 1,
        _or(record.replicas, replicas),
        isr if record.isr is None else record.isr,
        _or(record.directories, directories),
        _or(record.removing_replicas, removing),
        _or(record.adding_replicas, adding),
        recovery if record.leader_recovery_state < 0 else record.leader_recovery_state,
        _or(record.eligible_leader_replicas, eligible),
        _or(record.last_known_elr, last),
    )
    return [partition_changed(topic, record.partition_id, old, new)]


def _or(new: V | None, old: V) -> V:
    """Returns the new value, or the old one if the record has none."""
    return old if new is None else new


def _replace(table: dict[K, dict[str, V]], key: K, name: str, value: V | None) -> None:
    """Set one value of an entry, or remove it: the entry is another one then."""
    new = dict(table.get(key, {}))
    if value is None:
        new.pop(name, None)
    else:
        new[name] = value
    if new:
        table[key] = new
    else:
        table.pop(key, None)


def _set_config(image: ImageState, record: kraft.ConfigRecord) -> list[Change]:
    key = (record.resource_type, record.resource_name)
    _replace(image.configs, key, record.name, record.value)
    return [ConfigChanged(record.resource_type, record.resource_name, record.name)]


def _set_feature(image: ImageState, record: kraft.FeatureLevelRecord) -> list[Change]:
    if record.feature_level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level
    return [FeatureChanged(record.name, record.feature_level)]


def _register_broker(image: ImageState, record: kraft.RegisterBrokerRecord) -> list[Change]:
    before = image.brokers.get(record.broker_id)
    served = before.served_epoch if before and record.fenced else record.broker_epoch
    image.brokers[record.broker_id] = BrokerImage(
        broker_id=record.broker_id,
        incarnation_id=record.incarnation_id,
        epoch=record.broker_epoch,
        endpoints=record.end_points,
        features=record.features,
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        cordoned_log_dirs=record.cordoned_log_dirs,
        served_epoch=served,
    )
    return [BrokerChanged(record.broker_id)]


def _broker(image: ImageState, broker_id: int, epoch: int) -> BrokerImage:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise ReplayFailed(f"broker {broker_id} is not registered with epoch {epoch}")
    return broker


def _unregister_broker(image: ImageState, record: kraft.UnregisterBrokerRecord) -> list[Change]:
    _broker(image, record.broker_id, record.broker_epoch)
    del image.brokers[record.broker_id]
    return [BrokerChanged(record.broker_id)]


def _fence(
    image: ImageState, record: kraft.FenceBrokerRecord | kraft.UnfenceBrokerRecord
) -> list[Change]:
    broker = _broker(image, record.id, record.epoch)
    fenced = isinstance(record, kraft.FenceBrokerRecord)
    served = broker.served_epoch if fenced else broker.epoch
    image.brokers[record.id] = replace(broker, fenced=fenced, served_epoch=served)
    return [BrokerChanged(record.id)]


def _change_broker(image: ImageState, record: kraft.BrokerRegistrationChangeRecord) -> list[Change]:
    broker = _broker(image, record.broker_id, record.broker_epoch)
    changed: dict[str, Any] = {}
    if record.fenced != 0:
        changed["fenced"] = record.fenced > 0
        changed["served_epoch"] = broker.served_epoch if record.fenced > 0 else broker.epoch
    if record.in_controlled_shutdown > 0:
        changed["in_controlled_shutdown"] = True
    if record.log_dirs:
        changed["log_dirs"] = record.log_dirs
    if record.cordoned_log_dirs is not None:
        changed["cordoned_log_dirs"] = record.cordoned_log_dirs
    image.brokers[record.broker_id] = replace(broker, **changed)
    return [BrokerChanged(record.broker_id)]


def _register_controller(image: ImageState, record: kraft.RegisterControllerRecord) -> list[Change]:
    image.controllers[record.controller_id] = ControllerImage(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=record.end_points,
        features=record.features,
    )
    return [ControllerChanged(record.controller_id)]


def _producer_ids(image: ImageState, record: kraft.ProducerIdsRecord) -> list[Change]:
    image.next_producer_id = record.next_producer_id
    return [ProducerIdsTaken(record.next_producer_id)]


def _quota(image: ImageState, record: kraft.ClientQuotaRecord) -> list[Change]:
    entity = tuple(sorted((e.entity_type, e.entity_name) for e in record.entity))
    _replace(image.quotas, entity, record.key, None if record.remove else record.value)
    return [QuotaChanged(entity)]


def _clear_elr(image: ImageState, record: kraft.ClearElrRecord) -> list[Change]:
    """Forget the eligible leader replicas (KIP-966) of one topic, or of all for the empty name."""
    named = image.topics_by_name.get(record.topic_name)
    topics = (
        list(image.topics_by_name.values()) if not record.topic_name else [named] if named else []
    )
    changes: list[Change] = []
    for topic in topics:
        for index, old in enumerate(topic.partitions):
            if old.eligible_leader_replicas or old.last_known_elr:
                topic = image.editable(topic)
                topic.partitions[index] = old._replace(
                    partition_epoch=old.partition_epoch + 1,
                    eligible_leader_replicas=(),
                    last_known_elr=(),
                )
                changes.append(PartitionChanged(topic.name, topic.topic_id, index))
    return changes


def _keep(image: ImageState, record: object) -> list[Change]:
    identity = _identity(record)
    image.kept[identity] = record
    return [KeptChanged(identity)]


def _drop(image: ImageState, record: object) -> list[Change]:
    identity = _identity(record)
    image.kept.pop(identity, None)
    return [KeptChanged(identity)]


def _identity(record: object) -> tuple[str, ...]:
    """Returns the key of a record about users, ACLs or tokens, by which its removal finds it."""
    match record:
        case kraft.AccessControlEntryRecord() | kraft.RemoveAccessControlEntryRecord():
            return ("acl", record.id.hex())
        case kraft.UserScramCredentialRecord() | kraft.RemoveUserScramCredentialRecord():
            return ("scram", record.name, str(record.mechanism))
        case kraft.DelegationTokenRecord() | kraft.RemoveDelegationTokenRecord():
            return ("token", record.token_id)
        case _:
            raise AssertionError(f"{type(record).__name__} is not kept")


def _nothing(image: ImageState, record: object) -> list[Change]:
    return []


_Replay = Callable[[ImageState, Any], list[Change]]
_BOUNDS: Final[dict[type, _Replay]] = {
    kraft.BeginTransactionRecord: _begin,
    kraft.EndTransactionRecord: _end,
    kraft.AbortTransactionRecord: _abort,
}
"""Of metadata transactions."""
_REPLAY: Final[dict[type, _Replay]] = {
    **_BOUNDS,
    kraft.TopicRecord: _add_topic,
    kraft.RemoveTopicRecord: _remove_topic,
    kraft.PartitionRecord: _add_partition,
    kraft.PartitionChangeRecord: _change_partition,
    kraft.ConfigRecord: _set_config,
    kraft.FeatureLevelRecord: _set_feature,
    kraft.RegisterBrokerRecord: _register_broker,
    kraft.UnregisterBrokerRecord: _unregister_broker,
    kraft.FenceBrokerRecord: _fence,
    kraft.UnfenceBrokerRecord: _fence,
    kraft.BrokerRegistrationChangeRecord: _change_broker,
    kraft.RegisterControllerRecord: _register_controller,
    kraft.ProducerIdsRecord: _producer_ids,
    kraft.ClientQuotaRecord: _quota,
    kraft.ClearElrRecord: _clear_elr,
    kraft.AccessControlEntryRecord: _keep,
    kraft.RemoveAccessControlEntryRecord: _drop,
    kraft.UserScramCredentialRecord: _keep,
    kraft.RemoveUserScramCredentialRecord: _drop,
    kraft.DelegationTokenRecord: _keep,
    kraft.RemoveDelegationTokenRecord: _drop,
    kraft.NoOpRecord: _nothing,
    kraft.ZkMigrationStateRecord: _nothing,
}
