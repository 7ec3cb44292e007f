"""What each record of a consumer group does to a shard (see `replay`).

Any record with a value makes the group, whatever came first after compaction; the tombstone of its
epoch, the last one that is written, removes it. Tombstones for what is not there do nothing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from appliance.coordinators.consumer_group import ConsumerGroup
from appliance.coordinators.consumer_records import (
    ConsumerGroupMetadataKey,
    CurrentKey,
    MemberMetadataKey,
    PartitionMetadataKey,
    RegexKey,
    TargetKey,
    TargetMetadataKey,
)
from appliance.coordinators.reconcile import current_of, target_of

if TYPE_CHECKING:
    from appliance.coordinators.shard import Shard


def _group(shard: "Shard", key: Any, value: Any) -> ConsumerGroup | None:
    group = shard.groups.get(key.group)
    if isinstance(group, ConsumerGroup):
        return group
    if value is None:
        return None
    made = ConsumerGroup(key.group)
    shard.groups[key.group] = made
    return made


def _epoch(shard: "Shard", key: ConsumerGroupMetadataKey, value: Any) -> None:
    group = _group(shard, key, value)
    if group is None:
        return
    if value is None:
        del shard.groups[key.group]
    else:
        group.settle_epoch(value)


def _old_metadata(shard: "Shard", key: PartitionMetadataKey, value: Any) -> None:
    group = _group(shard, key, value)
    if group is not None:
        group.has_old_metadata = value is not None


def _member(shard: "Shard", key: MemberMetadataKey, value: Any) -> None:
    group = _group(shard, key, value)
    if group is not None:
        group.settle_member(key.member, value)


def _target_epoch(shard: "Shard", key: TargetMetadataKey, value: Any) -> None:
    group = _group(shard, key, value)
    if group is not None:
        group.settle_target_epoch(value)


def _target(shard: "Shard", key: TargetKey, value: Any) -> None:
    group = _group(shard, key, value)
    if group is not None:
        group.settle_target(key.member, None if value is None else target_of(value))


def _current(shard: "Shard", key: CurrentKey, value: Any) -> None:
    group = _group(shard, key, value)
    if group is not None:
        group.settle_current(key.member, None if value is None else current_of(value))


def _regex(shard: "Shard", key: RegexKey, value: Any) -> None:
    group = _group(shard, key, value)
    if group is not None:
        group.settle_regex(key.regex, value)


APPLY: Final[dict[type, Callable[["Shard", Any, Any], None]]] = {
    ConsumerGroupMetadataKey: _epoch,
    PartitionMetadataKey: _old_metadata,
    MemberMetadataKey: _member,
    TargetMetadataKey: _target_epoch,
    TargetKey: _target,
    CurrentKey: _current,
    RegexKey: _regex,
}
"""By the class of the record's key."""
