"""Consumer groups: which there are, their members, what they have committed, and changing that.

Every group is asked for side by side; what one of them cannot be told is that group's failure.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from appliance.base import errors
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check, failure_of, name_of_code
from console.model.cluster import cluster
from console.model.groups.offsets import Bounds, bounds
from console.model.topics.topics import compiled
from console.model.topics.topics import listed as listed_topics

Place = tuple[str, int]
"""A topic and a partition."""

OTHER_KINDS: Final = ("share", "streams")
"""Kinds of groups that other Kafkas have (KIP-932, KIP-1071): known by name and state."""
_LIST_GROUPS: Final = (16, 5)
_OFFSET_DELETE: Final = 47
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
    """One group. kind: classic or consumer, the protocol that it speaks; share and streams groups
    have no more than a state here. server: HOST:PORT of its coordinator, None when nobody says."""

    name: str
    state: str
    kind: str
    assignor: str
    coordinator: int | None
    members: tuple[Member, ...]
    server: str | None = None


@dataclass(slots=True, frozen=True)
class Listed:
    """A group as the list has it. kind: classic, consumer, share or streams. is_simple: nobody ever
    joined it, somebody only commits there."""

    name: str
    state: str
    kind: str
    is_simple: bool = False

    @property
    def is_told(self) -> bool:
        """True if its members and positions can be requested here."""
        return self.kind not in OTHER_KINDS


def listed(link: Link, names: tuple[str, ...] = (), regex: str | None = None) -> list[Listed]:
    """The groups that are named or found by the expression, by name. Raises Failure."""
    pattern = compiled(regex)
    answer = link.wait(link.admin().list_consumer_groups(request_timeout=link.timeout_s))
    for problem in answer.errors:
        raise failure_of(problem.args[0] if isinstance(problem, Exception) else problem)
    found = [
        Listed(
            str(one.group_id),
            _state_name(one.state),
            one.type.name.lower(),
            bool(one.is_simple_consumer_group),
        )
        for one in answer.valid
    ] + _others(link)
    wanted = [one for one in found if not names or one.name in names]
    return sorted((one for one in wanted if pattern.search(one.name)), key=lambda one: one.name)


def _others(link: Link) -> list[Listed]:
    """Share and streams groups, which confluent-kafka leaves out: by ListGroups (KIP-848's version)
    of each broker. An older broker has none, and over SASL nobody is asked."""
    if not link.is_asked:
        return []
    found: dict[str, Listed] = {}
    asked = {"states_filter": [], "types_filter": list(OTHER_KINDS)}
    with suppress(Failure):
        for server in cluster.read_cluster(link).brokers.values():
            for one in ask_server(link, *_LIST_GROUPS, asked, server).groups:
                kind = one.group_type.lower()
                if kind in OTHER_KINDS:  # whatever a filter of its own lets pass
                    found[one.group_id] = Listed(one.group_id, _spelled(one.group_state), kind)
    return list(found.values())


def _spelled(state: str) -> str:
    """PreparingRebalance → preparing-rebalance."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", state).lower()


def other(link: Link, name: str) -> Group | None:
    """The share or streams group of that name, None when there is none."""
    found = next((one for one in _others(link) if one.name == name), None)
    return Group(name, found.state, found.kind, "", None, ()) if found is not None else None


def _state_name(state: Any) -> str:
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


def still_there(link: Link, names: list[str]) -> list[Group]:
    """Those that are there of groups that were just listed. Raises Failure."""
    if not names:
        return []
    answers = link.admin().describe_consumer_groups(names, request_timeout=link.timeout_s)
    found = []
    for name in names:
        try:
            found.append(_group(link.wait(answers[name], name)))
        except Failure as failure:
            if failure.name != "GROUP_ID_NOT_FOUND":
                raise
    return [one for one in found if one.state != "dead"]


def missing(name: str) -> Failure:
    """There is no such group."""
    return Failure(
        f"there is no group {name}",
        "penstock group list shows the groups",
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
        _state_name(found.state),
        found.type.name.lower() if getattr(found, "type", None) else "classic",
        found.partition_assignor or "",
        found.coordinator.id if found.coordinator else None,
        tuple(sorted(members, key=lambda one: (one.client_id, one.member_id))),
        f"{found.coordinator.host}:{found.coordinator.port}" if found.coordinator else None,
    )


def committed(link: Link, names: list[str]) -> dict[str, dict[Place, int]]:
    """The committed offsets of each group; an unknown group has none."""
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
    wanted = set(topics)
    return {
        name: list(topic.partitions)
        for name, topic in listed_topics(link).items()
        if name in wanted and topic.partitions
    }


def holders(group: Group) -> str:
    """The members that hold a group, as text."""
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


def delete(link: Link, names: list[str]) -> dict[str, Failure | None]:
    """Delete groups that nobody reads with: name → why it failed, None where it did not."""
    answers = link.admin().delete_consumer_groups(names, request_timeout=link.timeout_s)
    return {name: link.refused(answers[name], name) for name in names}


def commit(link: Link, name: str, offsets: dict[Place, int]) -> None:
    """Say where a group without members is. Raises Failure."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    wanted = [TopicPartition(topic, number, at) for (topic, number), at in offsets.items()]
    request = [ConsumerGroupTopicPartitions(name, wanted)]
    answers = link.admin().alter_consumer_group_offsets(request, request_timeout=link.timeout_s)
    for one in link.wait(answers[name], name).topic_partitions:
        if one.error is not None:
            raise failure_of(one.error)


def delete_offsets(
    link: Link, name: str, places: list[Place], server: str | None = None
) -> dict[Place, str]:
    """Forget what a group has committed there: place → the name of the error, of those that were
    not deleted. By OffsetDelete (API key 47), which confluent-kafka does not offer. server: its
    coordinator's. Raises Failure."""
    topics: dict[str, list[int]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(number)
    asked = [
        {"name": topic, "partitions": [{"partition_index": number} for number in numbers]}
        for topic, numbers in topics.items()
    ]
    answer = ask_server(link, _OFFSET_DELETE, 0, {"group_id": name, "topics": asked}, server)
    check(int(answer.error_code), None, name)
    return {
        (topic.name, one.partition_index): name_of_code(int(one.error_code))
        for topic in answer.topics
        for one in topic.partitions
        if int(one.error_code) != errors.NONE
    }
