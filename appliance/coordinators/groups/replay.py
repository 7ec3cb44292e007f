"""The effect of each record on a state: the only code that changes durable state.

Runs live, on the record that was just decided, and at load, on the record as decoded. It must not
look at anything but the shard and the record, and must not fail on any order that compaction can
leave behind.
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.coordinators.groups import consumer_replay
from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from appliance.coordinators.groups.state import GroupsState


def _offset_commit(
    state: GroupsState, key: OffsetCommitKey, value: OffsetCommitValue | None
) -> None:
    """Offsets of a group that nobody joined make it a group: a simple one."""
    if value is None:
        state.offsets.remove(key.group, key.topic, key.partition)
        if state.pending.by_group:
            state.pending.remove((key.group, key.topic, key.partition))
        return
    if key.group not in state.groups:
        state.groups[key.group] = ClassicGroup(key.group, state.held)
    state.offsets.put_offset(key.group, key.topic, key.partition, value)
    if state.pending.by_group:
        state.pending.outdate((key.group, key.topic, key.partition))


def _pending_commit(
    state: GroupsState, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue | None
) -> None:
    """The group is there from now on, whatever becomes of the transaction."""
    if value is None:
        _offset_commit(state, key, None)
        return
    if key.group not in state.groups:
        state.groups[key.group] = ClassicGroup(key.group, state.held)
    state.pending.put_offset(producer_id, (key.group, key.topic, key.partition), value)


def ended(state: GroupsState, producer_id: int, *, committed: bool) -> None:
    """The marker of a producer's transaction."""
    for (group, topic, partition), value in state.pending.end_transaction(
        producer_id, committed=committed
    ):
        state.offsets.put_offset(group, topic, partition, value)


def _group_metadata(
    state: GroupsState, key: GroupMetadataKey, value: GroupMetadataValue | None
) -> None:
    """The record of a classic group; its tombstone does not touch a group of another protocol."""
    group = state.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            group.release()
            del state.groups[key.group]
        return
    if not isinstance(group, ClassicGroup):
        group = ClassicGroup(key.group, state.held)
        state.groups[key.group] = group
    group.apply_record(value)


APPLY: Final[dict[type, Callable[[GroupsState, Any, Any], None]]] = {
    OffsetCommitKey: _offset_commit,
    GroupMetadataKey: _group_metadata,
    **consumer_replay.APPLY,
}
"""By the class of the record's key; a protocol that adds records adds its own."""

HOLD: Final[dict[type, Callable[[GroupsState, int, Any, Any], None]]] = {
    OffsetCommitKey: _pending_commit,
}
"""The same for a record of an open transaction."""
