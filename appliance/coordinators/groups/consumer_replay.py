"""The effect of each consumer group record on a shard (see `replay`).

Any record with a value makes the group, whatever came first after compaction; the tombstone of its
epoch, the last one that is written, removes it. Tombstones for what is not there do nothing.
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.coordinators.groups.consumer_group import ConsumerGroup
from appliance.coordinators.groups.consumer_records import (
    ConsumerGroupMetadataKey,
    CurrentKey,
    MemberMetadataKey,
    PartitionMetadataKey,
    RegexKey,
    TargetKey,
    TargetMetadataKey,
)
from appliance.coordinators.groups.reconcile import current_of, target_of
from appliance.coordinators.groups.state import GroupsState


def _group(state: GroupsState, key: Any, value: Any) -> ConsumerGroup | None:
    group = state.groups.get(key.group)
    if isinstance(group, ConsumerGroup):
        return group
    if value is None:
        return None
    if group is not None:
        group.release()
    made = ConsumerGroup(key.group, state.held)
    state.groups[key.group] = made
    return made


def _epoch(state: GroupsState, key: ConsumerGroupMetadataKey, value: Any) -> None:
    group = _group(state, key, value)
    if group is None:
        return
    if value is None:
        group.release()
        del state.groups[key.group]
    else:
        group.settle_epoch(value)


def _old_metadata(state: GroupsState, key: PartitionMetadataKey, value: Any) -> None:
    group = _group(state, key, value)
    if group is not None:
        group.has_old_metadata = value is not None


def _member(state: GroupsState, key: MemberMetadataKey, value: Any) -> None:
    group = _group(state, key, value)
    if group is not None:
        group.settle_member(key.member, value)


def _target_epoch(state: GroupsState, key: TargetMetadataKey, value: Any) -> None:
    group = _group(state, key, value)
    if group is not None:
        group.settle_target_epoch(value)


def _target(state: GroupsState, key: TargetKey, value: Any) -> None:
    group = _group(state, key, value)
    if group is not None:
        group.settle_target(key.member, None if value is None else target_of(value))


def _current(state: GroupsState, key: CurrentKey, value: Any) -> None:
    group = _group(state, key, value)
    if group is not None:
        group.settle_current(key.member, None if value is None else current_of(value))


def _regex(state: GroupsState, key: RegexKey, value: Any) -> None:
    group = _group(state, key, value)
    if group is not None:
        group.settle_regex(key.regex, value)


APPLY: Final[dict[type, Callable[[GroupsState, Any, Any], None]]] = {
    ConsumerGroupMetadataKey: _epoch,
    PartitionMetadataKey: _old_metadata,
    MemberMetadataKey: _member,
    TargetMetadataKey: _target_epoch,
    TargetKey: _target,
    CurrentKey: _current,
    RegexKey: _regex,
}
"""By the class of the record's key."""
