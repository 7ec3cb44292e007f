"""The changes that lead from one image to another, for a process that skipped records.

Called by the follower when the log's beginning went away under it and it began again from a
snapshot, so that the shells see one kind of news only.
"""

from typing import TypeVar

from appliance.metadata.changes import (
    BrokerChanged,
    Change,
    ConfigChanged,
    ControllerChanged,
    FeatureChanged,
    KeptChanged,
    PartitionAdded,
    ProducerIdsTaken,
    QuotaChanged,
    TopicAdded,
    TopicRemoved,
    partition_changed,
)
from appliance.metadata.image import MetadataImage

K = TypeVar("K")
V = TypeVar("V")


def changes_between(old: MetadataImage, new: MetadataImage) -> list[Change]:
    """Returns the changes that lead from `old` to `new`; removals come first."""
    changes: list[Change] = [
        TopicRemoved(topic.name, topic.topic_id, len(topic.partitions))
        for topic in old.topics_by_name.values()
        if topic.topic_id not in new.topics_by_id
    ]
    for topic in new.topics_by_name.values():
        before = old.topics_by_id.get(topic.topic_id)
        if before is None:
            changes.append(TopicAdded(topic.name, topic.topic_id))
        known = before.partitions if before else []
        for partition in topic.partitions:
            index = partition.index
            if index >= len(known):
                changes.append(PartitionAdded(topic.name, topic.topic_id, index))
            elif known[index] != partition:
                changes.append(partition_changed(topic, index, known[index], partition))
    for resource in _differing(old.configs, new.configs):
        keys = _differing(old.configs.get(resource, {}), new.configs.get(resource, {}))
        changes.extend(ConfigChanged(resource[0], resource[1], key) for key in keys)
    changes.extend(BrokerChanged(broker) for broker in _differing(old.brokers, new.brokers))
    changes.extend(ControllerChanged(one) for one in _differing(old.controllers, new.controllers))
    changes.extend(
        FeatureChanged(name, new.features.get(name, 0))
        for name in _differing(old.features, new.features)
    )
    changes.extend(QuotaChanged(entity) for entity in _differing(old.quotas, new.quotas))
    changes.extend(KeptChanged(identity) for identity in _differing(old.kept, new.kept))
    if old.next_producer_id != new.next_producer_id:
        changes.append(ProducerIdsTaken(new.next_producer_id))
    return changes


def _differing(old: dict[K, V], new: dict[K, V]) -> list[K]:
    """Keys whose values differ, those of `old` first; the order depends on nothing else."""
    return [key for key in {**old, **new} if old.get(key) != new.get(key)]
