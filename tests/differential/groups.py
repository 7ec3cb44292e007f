"""What the scripts of groups share."""

BUSY = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")

GROUP_MAX = 3
"""No group of either protocol may have more members on both brokers."""


def group_of(s, word="group"):
    """The name of a new group, whose coordinator serves."""
    group = s.name(word)
    for api, field, asked in (
        ("FindCoordinator", "coordinators", {"key_type": 0, "coordinator_keys": [group]}),
        ("DescribeGroups", "groups", {"groups": [group]}),
    ):
        s.until(lambda answer, field=field: answer[field][0]["error_code"] not in BUSY,
                api, s.highest(api), **asked)  # fmt: skip
    return group


def look(s, step, group):
    """Note everything that can be asked about a group."""
    described = s.call("ConsumerGroupDescribe", group_ids=[group])
    for member in described["groups"][0]["members"]:
        member["subscribed_topic_names"].sort()  # Kafka's order is that of a hash table
    s.note(f"{step}: described", described, "ConsumerGroupDescribe")
    s.ask(f"{step}: described as classic", "DescribeGroups", groups=[group])
    listed = s.call("ListGroups")
    found = [one for one in listed["groups"] if one["group_id"] == group]
    s.note(f"{step}: listed", {"groups": found}, "ListGroups")


def offsets(topic, *committed):
    """What OffsetCommit takes: (partition, offset) pairs of a topic, by its name."""
    return [{"name": topic, "partitions": [
        {"partition_index": partition, "committed_offset": offset, "committed_leader_epoch": -1}
        for partition, offset in committed
    ]}]  # fmt: skip


def simple(s, group, topic, *committed):
    """Commit offsets as nobody's member does."""
    answer = s.call("OffsetCommit", 8, group_id=group, generation_id_or_member_epoch=-1,
                    topics=offsets(topic, *committed or [(0, 3)]))  # fmt: skip
    codes = {one["error_code"] for row in answer["topics"] for one in row["partitions"]}
    assert codes == {"NONE"}, answer


def topic_for(s, group, word="topic", **more):
    """A new topic that the group's coordinator knows of: Kafka's hears of topics a moment later
    than those who answer Metadata, and its groups then go through one more epoch."""
    topic = s.topic(word, **more)
    probe = next(one for number in range(10_000)
                 if _shard(one := f"{word}-{number}-{group}") == _shard(group))  # fmt: skip
    said = {"group_id": probe, "member_id": "probe", "subscribed_topic_names": [topic],
            "rebalance_timeout": 60_000, "topic_partitions": []}  # fmt: skip
    s.until(lambda answer: (answer["assignment"] or {}).get("topic_partitions"),
            "ConsumerGroupHeartbeat", s.highest("ConsumerGroupHeartbeat"), **said)  # fmt: skip
    s.call("ConsumerGroupHeartbeat", **{**said, "member_epoch": -1})
    s.call("DeleteGroups", groups_names=[probe])
    return topic


def _shard(group):
    """The partition of __consumer_offsets that has a group, as Java's hash of its name says."""
    found = 0
    for letter in group:
        found = (31 * found + ord(letter)) & 0xFFFFFFFF
    return min(found, (1 << 32) - found) % 50
