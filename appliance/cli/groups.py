"""What the group commands ask a broker: groups, their members, their committed offsets.

Every group is asked for side by side; what one of them cannot be told is that group's failure.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from appliance.cli.exits import Failure, usage
from appliance.cli.link import Link
from appliance.cli.offsets import Bounds, bounds

Place = tuple[str, int]
"""A topic and a partition."""

_STATES: Final = {
    "PREPARING_REBALANCING": "preparing-rebalance",
    "COMPLETING_REBALANCING": "completing-rebalance",
}


@dataclass(slots=True, frozen=True)
class Member:
    """One member. places: what it reads now."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    places: tuple[Place, ...]


@dataclass(slots=True, frozen=True)
class Group:
    """One group. kind: classic or consumer, the protocol that it speaks."""

    name: str
    state: str
    kind: str
    assignor: str
    coordinator: int | None
    members: tuple[Member, ...]


def listed(link: Link, names: tuple[str, ...] = (), regex: str | None = None) -> list[Any]:
    """confluent-kafka's listings of the groups that are named or found, by name."""
    try:
        pattern = re.compile(regex or "")
    except re.error as wrong:
        raise usage(f"--regex {regex!r}: {wrong}") from None
    answer = link.wait(link.admin().list_consumer_groups(request_timeout=link.timeout_s))
    for problem in answer.errors:
        from appliance.cli.link import failure_of

        raise failure_of(problem.args[0])
    found = [one for one in answer.valid if not names or one.group_id in names]
    return sorted(
        (one for one in found if pattern.search(one.group_id)), key=lambda one: str(one.group_id)
    )


def state_name(state: Any) -> str:
    """`stable`, `empty`, `dead`, …"""
    name = str(state.name)
    return _STATES.get(name, name.lower().replace("_", "-"))


def described(link: Link, names: list[str]) -> list[Group]:
    """Raises Failure (GROUP_ID_NOT_FOUND) for a group that is not there."""
    if not names:
        return []
    answers = link.admin().describe_consumer_groups(names, request_timeout=link.timeout_s)
    groups = [_group(link.wait(answers[name], name)) for name in names]
    for group in groups:
        if group.state == "dead":
            raise missing(group.name)
    return groups


def missing(name: str) -> Failure:
    """There is no such group."""
    return Failure(
        f"{name}: there is no such group",
        "penstock group list shows the groups that there are",
        name="GROUP_ID_NOT_FOUND",
        kafka_code=69,
    )


def _group(found: Any) -> Group:
    members = [
        Member(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.host,
            tuple(sorted((p.topic, p.partition) for p in one.assignment.topic_partitions))
            if one.assignment
            else (),
        )
        for one in found.members
    ]
    return Group(
        found.group_id,
        state_name(found.state),
        found.type.name.lower() if getattr(found, "type", None) else "classic",
        found.partition_assignor or "",
        found.coordinator.id if found.coordinator else None,
        tuple(sorted(members, key=lambda one: (one.client_id, one.member_id))),
    )


def committed(link: Link, names: list[str]) -> dict[str, dict[Place, int]]:
    """What each group has committed; a group that nobody knows has nothing."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    admin = link.admin()
    answers = {
        name: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(name)], request_timeout=link.timeout_s
        )[name]
        for name in names
    }
    return {
        name: {
            (one.topic, one.partition): one.offset
            for one in sorted(
                link.wait(answer, name).topic_partitions, key=lambda p: (p.topic, p.partition)
            )
            if one.error is None and one.offset >= 0
        }
        for name, answer in answers.items()
    }


def edges(link: Link, places: list[Place]) -> dict[Place, Bounds]:
    """First and next offset of those places that exist."""
    from confluent_kafka import TopicPartition

    there = existing(link, [topic for topic, _ in places])
    asked: list[TopicPartition] = [
        TopicPartition(topic, number)
        for topic, number in dict.fromkeys(places)
        if number in there.get(topic, ())
    ]
    return bounds(link, asked)


def existing(link: Link, topics: list[str]) -> dict[str, list[int]]:
    """The partitions of those of the topics that exist."""
    if not topics:
        return {}
    metadata = link.admin().list_topics(timeout=link.timeout_s)
    wanted = set(topics)
    return {
        name: sorted(topic.partitions)
        for name, topic in metadata.topics.items()
        if name in wanted and topic.error is None
    }


def holders(group: Group) -> str:
    """Who holds a group, in words."""
    shown = [f"{one.client_id} at {one.host.lstrip('/')}" for one in group.members[:5]]
    more = len(group.members) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def refuse_live(group: Group, what: str) -> None:
    """Raises Failure (NON_EMPTY_GROUP) that names the members, when there are any."""
    if group.members:
        raise Failure(
            f"{group.name}: {what} while it has members: {holders(group)}",
            "stop them first; penstock group members shows who they are",
            name="NON_EMPTY_GROUP",
            kafka_code=68,
        )
