"""The target of a consumer group: subscriptions compared with the metadata, the group epoch, each
member's target assignment and the steps that reconcile a member with it.

Invariant: whenever members or the topics they read have changed, the group's epoch grows, and a
target belongs to the epoch it was computed for. Callers: the heartbeat of either protocol.
"""

from hashlib import blake2b
from itertools import islice
from struct import Struct

from appliance.authorization.needs import DESCRIBE_TOPIC
from appliance.coordinators.groups import regex
from appliance.coordinators.groups.assignors import ASSIGNORS, Subscriber
from appliance.coordinators.groups.consumer_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentKey,
    MemberMetadataKey,
    PartitionMetadataKey,
    RegexKey,
    RegexValue,
    TargetKey,
    TargetMetadataKey,
    TargetMetadataValue,
)
from appliance.coordinators.groups.consumer_state import ConsumerState
from appliance.coordinators.groups.reconcile import (
    UNREVOKED,
    Current,
    Goal,
    Owned,
    current_value,
    reconcile,
    target_value,
)
from appliance.coordinators.groups.state import Turn
from appliance.coordinators.runtime.call import NEVER
from appliance.metadata.image import MetadataImage

_TOPIC = Struct(">16sI").pack
_NAMED = 20
"""Topics that a line of the log names at most."""


def refresh(turn: Turn, group: ConsumerState, *, bump: bool) -> None:
    """Hold the subscriptions against the metadata. The epoch grows when `bump` says so or when the
    topics that members read are other ones than before."""
    image = turn.state.image
    _resolve(turn, group)
    found = metadata_hash(group, image)
    if bump or found != group.metadata_hash:
        value = ConsumerGroupMetadataValue(epoch=group.epoch + 1, metadata_hash=found)
        turn.write_record(ConsumerGroupMetadataKey(group=group.group_id), value)
        if group.has_old_metadata:
            turn.write_record(PartitionMetadataKey(group=group.group_id), None)
    if group.rights is not None:
        group.image_offset = image.applied_offset


def metadata_hash(group: ConsumerState, image: MetadataImage) -> int:
    """A hash of the subscribed topics: their ids and partition counts. Only ever compared with
    itself; another broker's differs, and costs one new epoch.
    """
    digest = blake2b(digest_size=8)
    empty = True
    for name in sorted(group.topics()):
        topic = image.topics_by_name.get(name)
        if topic is not None:
            digest.update(_TOPIC(topic.topic_id, len(topic.partitions)))
            empty = False
    return 0 if empty else int.from_bytes(digest.digest(), "big", signed=True)


def _resolve(turn: Turn, group: ConsumerState) -> None:
    """Find the topics of every regular expression in use, forget those that nobody uses. They name
    what that member may see which was heard of last; who was not heard of since the group was
    loaded keeps what it had."""
    image, rights, left = turn.state.image, group.rights, turn.state.settings.regex_max_steps
    used = dict.fromkeys(one.topic_regex for one in group.members.values() if one.topic_regex)
    for expression in used if rights is not None else ():
        assert expression is not None and rights is not None
        before = group.regexes.get(expression)
        if before is not None and group.image_offset == image.applied_offset:
            continue
        left -= regex.count_work(expression, image.topics_by_name)
        if left < 0:  # there are more topics now, or more expressions: it keeps what it had
            topics = () if before is None else before.topics
        else:
            topics = regex.matching(expression, image.topics_by_name)
        if not rights.everything:
            topics = tuple(one for one in topics if rights.may(DESCRIBE_TOPIC, one))
        if before is None or before.topics != topics:
            value = RegexValue(topics=topics, version=image.applied_offset, timestamp=turn.wall_ms)
            turn.write_record(RegexKey(group=group.group_id, regex=expression), value)
    for expression in [one for one in group.regexes if one not in used]:
        turn.write_record(RegexKey(group=group.group_id, regex=expression), None)


def assign(turn: Turn, group: ConsumerState) -> None:
    """Compute the targets for the group's epoch; only those that changed are written."""
    image = turn.state.image
    subscribers = [
        Subscriber(
            member_id=member_id,
            instance_id=member.instance_id,
            topics=group.topic_ids_of(member, image),
            before=group.targets.get(member_id, {}),
        )
        for member_id, member in group.members.items()
    ]
    read = sorted({topic_id: None for one in subscribers for topic_id in sorted(one.topics)})
    partitions = {topic_id: len(image.topics_by_id[topic_id].partitions) for topic_id in read}
    name = preferred_assignor(group, turn.state.settings.consumer_assignors)
    targets = ASSIGNORS[name](subscribers, partitions)
    for member_id in sorted(targets):
        if group.targets.get(member_id) != targets[member_id]:
            key = TargetKey(group=group.group_id, member=member_id)
            turn.write_record(key, target_value(targets[member_id]))
    value = TargetMetadataValue(assignment_epoch=group.epoch, assignment_timestamp=turn.wall_ms)
    turn.write_record(TargetMetadataKey(group=group.group_id), value)
    topics = ",".join(islice(group.topics(), _NAMED))
    told = {"generation": group.epoch, "members": len(group.members), "topics": topics}
    turn.add_note("group-rebalanced", group.group_id, told, is_loss=False)


def preferred_assignor(group: ConsumerState, assignors: tuple[str, ...]) -> str:
    """The one that most members ask for; of equals, and when nobody asks, the first configured."""
    votes = dict.fromkeys(assignors, 0)
    for member in group.members.values():
        if member.server_assignor in votes:
            votes[member.server_assignor] += 1
    return max(votes, key=lambda name: votes[name])


def advance(
    turn: Turn, group: ConsumerState, member_id: str, owned: Owned, *, resubscribed: bool
) -> Current:
    """Lead a member towards its target as far as it can go now. owned: what it says it owns."""
    if group.epoch > group.assignment_epoch:
        assign(turn, group)
    before = group.current(member_id)
    if group.is_reconciled(member_id) and not resubscribed:
        return before
    goal = Goal(
        target=group.targets.get(member_id, {}),
        epoch=group.assignment_epoch,
        subscribed=group.topic_ids_of(group.members[member_id], turn.state.image),
        free=lambda topic_id, partition: group.is_free(member_id, topic_id, partition),
    )
    after = reconcile(before, goal, owned, resubscribed=resubscribed)
    if after != before:
        turn.write_record(CurrentKey(group=group.group_id, member=member_id), current_value(after))
        watch_revocation(turn, group, member_id)
    return after


def watch_revocation(turn: Turn, group: ConsumerState, member_id: str) -> None:
    """A member that must give something up has its rebalance timeout for it; classic members have
    the timeouts of JoinGroup and SyncGroup instead."""
    member, due = group.members[member_id], group.due(member_id)
    due.rebalance = NEVER
    if group.current(member_id).state == UNREVOKED and member.classic is None:
        due.rebalance = turn.now_ms + member.rebalance_timeout
        turn.wake_at(group, due.rebalance)


def write_member_tombstones(turn: Turn, group: ConsumerState, member_id: str) -> None:
    """Remove a member. What it holds goes first, what it is goes last."""
    turn.write_record(CurrentKey(group=group.group_id, member=member_id), None)
    turn.write_record(TargetKey(group=group.group_id, member=member_id), None)
    turn.write_record(MemberMetadataKey(group=group.group_id, member=member_id), None)


def write_group_tombstones(turn: Turn, group: ConsumerState) -> None:
    """Remove all records of the group."""
    for member_id in sorted(group.members):
        write_member_tombstones(turn, group, member_id)
    turn.write_record(TargetMetadataKey(group=group.group_id), None)
    for expression in list(group.regexes):
        turn.write_record(RegexKey(group=group.group_id, regex=expression), None)
    if group.has_old_metadata:
        turn.write_record(PartitionMetadataKey(group=group.group_id), None)
    turn.write_record(ConsumerGroupMetadataKey(group=group.group_id), None)
