"""Which committed offsets, and which empty groups, have outlived their use (KIP-211).

Rules: an offset with an end of its own (old clients) goes then. Otherwise offsets.retention.minutes
count from the moment the group became empty; or, for a group in Stable, from the commit, but only
for topics that no member subscribes to; or, for a group that nobody ever joined, from the commit. A
group that is not Stable loses nothing: an offset of a topic that a member reads never expires,
however long its unread data waits. Nor does one that an open transaction may replace. An empty
group without offsets goes with its last offset, but not while a transaction has some for it. Old is
what the believed time says: a clock that jumps ahead takes nothing away.
"""

from appliance.coordinators.groups.offsets import write_tombstone
from appliance.coordinators.groups.records import OffsetCommitValue
from appliance.coordinators.groups.state import Group, Turn
from appliance.coordinators.runtime.turn import Timed


class Rounds(Timed):
    """A look at all groups every offsets.retention.check.interval.ms."""

    def begin_rounds(self, turn: Turn) -> None:
        """The first one is due after one interval."""
        interval = turn.state.settings.offsets_retention_check_interval_ms
        turn.wake_at(self, turn.now_ms + interval)

    def wake_up(self, turn: Turn) -> None:
        self.begin_rounds(turn)
        expire_offsets(turn)


def expire_offsets(turn: Turn) -> None:
    """One round over all groups."""
    state = turn.state
    now_ms = state.believed(turn.wall_ms)
    for group in list(state.groups.values()):
        group_id = group.group_id
        pending = state.pending.by_group.get(group_id, ())
        for topic, partition, value in state.offsets.of_group(group_id):
            if group.is_subscribed_to(topic) or (topic, partition) in pending:
                continue
            if _outlived(turn, group, value, now_ms):
                write_tombstone(turn, group_id, topic, partition)
        unused = group.is_empty() and group.size() == 0 and not pending
        if unused and not state.offsets.topics(group_id):
            group.write_tombstones(turn)


def _outlived(turn: Turn, group: Group, value: OffsetCommitValue, now_ms: int) -> bool:
    since = group.offset_kept_from(value.commit_timestamp)
    if since is None:
        return False
    if value.expire_timestamp != -1:
        return now_ms >= value.expire_timestamp
    return now_ms - since >= turn.state.settings.offsets_retention_ms
