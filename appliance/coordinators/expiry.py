"""Which committed offsets, and which empty groups, have outlived their use (KIP-211).

Rules: an offset with an end of its own (old clients) goes then. Otherwise offsets.retention.minutes
count from the moment the group became empty; or, for a group in Stable, from the commit, but only
for topics that no member subscribes to; or, for a group that nobody ever joined, from the commit. A
group that is not Stable loses nothing: an offset of a topic that a member reads never expires,
however long its unread data waits. An empty group without offsets goes with its last offset.
"""

from appliance.coordinators.group import Group
from appliance.coordinators.offsets import write_tombstone
from appliance.coordinators.records import OffsetCommitValue
from appliance.coordinators.turn import Turn


def expire_offsets(turn: Turn) -> None:
    """One round over all groups."""
    for group in list(turn.shard.groups.values()):
        for topic, partition, value in turn.shard.offsets.of_group(group.group_id):
            if not group.is_subscribed_to(topic) and _outlived(turn, group, value):
                write_tombstone(turn, group.group_id, topic, partition)
        unused = group.is_empty() and group.size() == 0
        if unused and not turn.shard.offsets.topics(group.group_id):
            group.write_tombstones(turn)


def _outlived(turn: Turn, group: Group, value: OffsetCommitValue) -> bool:
    since = group.offset_kept_from(value.commit_timestamp)
    if since is None:
        return False
    if value.expire_timestamp != -1:
        return turn.now_ms >= value.expire_timestamp
    return turn.now_ms - since >= turn.shard.settings.offsets_retention_ms
