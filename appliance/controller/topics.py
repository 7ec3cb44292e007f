"""Create and delete topics, by request or because a client named one that does not exist.

Decisions only: `create_topics` and `delete_topics` give records and results, nothing changes here.
A request's topics are decided one by one; the records of one topic come together or not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.config.internal_topics import InternalTopic
from appliance.controller.configs import topic_config_records
from appliance.controller.decision import OK, Record, Result, Situation, duplicates, failed
from appliance.controller.electorate import active_brokers
from appliance.controller.names import Collisions, check_topic_name
from appliance.controller.node_rows import MOST
from appliance.controller.placement import (
    check_active,
    check_assignment,
    new_partition,
    place,
    unable,
    usable_brokers,
)
from appliance.metadata.effective import broker_config
from appliance.metadata.parts import TopicImage
from appliance.wire import kraft_records as kraft

MAX_PARTITIONS_PER_REQUEST: Final = 10_000  # Kafka's limit for one batch of metadata records
REPLICAS: Final = 3
MIN_ISR: Final = "min.insync.replicas"


@dataclass(slots=True, frozen=True)
class NewTopic:
    """One topic to create. partitions, replication_factor: -1 for the broker's default.

    assignments: (partition, broker ids) pairs; when there are any, both counts must be -1.
    configs: value None is refused.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class CreatedTopic:
    """A topic that exists as soon as its records are replayed."""

    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class TopicToDelete:
    """By name or by id; exactly one must be given."""

    name: str | None = None
    topic_id: bytes | None = None


def internal_topic(situation: Situation, topic: InternalTopic) -> NewTopic:
    """A coordinator's topic as the settings say, but never with more replicas than there are
    brokers with room for it. Where they say nothing, it has Kafka's three as far as there are so
    many."""
    config = situation.config
    factor = config.int(topic.replication_factor)
    if config.entry(topic.replication_factor) is None:
        factor = max(factor, REPLICAS)
    factor = min(factor, max(1, _available(situation, config.int(topic.partitions))))
    configs = {name: str(config.int(setting)) for name, setting in topic.settings.items()}
    min_isr = topic.settings.get(MIN_ISR)
    if factor >= REPLICAS and min_isr is not None and config.entry(min_isr) is None:
        configs[MIN_ISR] = str(factor - 1)
    return NewTopic(
        topic.name,
        partitions=config.int(topic.partitions),
        replication_factor=factor,
        configs={**topic.configs, **configs},
    )


def _available(situation: Situation, count: int) -> int:
    """How many brokers may get replicas of so many partitions."""
    left = situation.rows.left(count)
    usable = usable_brokers(situation.image)
    return sum(left.get(broker.broker_id, count) >= count for broker in usable)


def create_topics(
    situation: Situation, wanted: Sequence[NewTopic]
) -> tuple[list[Record], list[tuple[str, Result, CreatedTopic | None]]]:
    """Records, and per distinct name how it went; a name that comes twice is refused (once)."""
    twice = duplicates([topic.name for topic in wanted])
    records: list[Record] = []
    results: list[tuple[str, Result, CreatedTopic | None]] = []
    names = Collisions(situation.image.topics_by_name)
    partitions = 0
    for name in twice:
        text = "Duplicate topic name. A request may name each topic once."
        results.append((name, Result(errors.INVALID_REQUEST, text), None))
    for topic in wanted:
        if topic.name in twice:
            continue
        try:
            new, created = _create(situation, topic, names, partitions)
        except PeerError as error:
            results.append((topic.name, failed(error), None))
            continue
        names.add(topic.name)
        partitions += created.partitions
        records += new
        results.append((topic.name, OK, created))
    return records, results


def _create(
    situation: Situation, topic: NewTopic, names: Collisions, partitions_before: int
) -> tuple[list[Record], CreatedTopic]:
    check_topic_name(topic.name)
    image = situation.image
    if topic.name in image.topics_by_name:
        raise PeerError(
            errors.TOPIC_ALREADY_EXISTS,
            f"Topic '{topic.name}' already exists. Delete it first or choose another name.",
        )
    other = names.with_name(topic.name)
    if other is not None:
        raise PeerError(
            errors.INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic.name}' collides with existing topic: {other}"
            " ('.' and '_' are the same in metric names).",
        )
    assignment = _assignment(situation, topic)
    _check_room(situation, partitions_before, len(assignment))
    situation.rows.check(assignment)
    topic_id = situation.new_id()
    records: list[Record] = [kraft.TopicRecord(name=topic.name, topic_id=topic_id)]
    configs, config_records = topic_config_records(situation, topic.name, topic.configs)
    records += config_records
    active = active_brokers(image)
    check_active(assignment, 0, active, manual=bool(topic.assignments))
    for index, replicas in enumerate(assignment):
        records.append(new_partition(situation, topic_id, index, replicas, active))
    situation.check_disk()
    situation.permit(len(assignment))
    situation.rows.count_replicas(assignment)
    created = CreatedTopic(topic_id, len(assignment), len(assignment[0]), configs)
    return records, created


def _check_room(situation: Situation, before: int, count: int) -> None:
    if before + count > MAX_PARTITIONS_PER_REQUEST:
        raise PeerError(
            errors.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {before + count}, the limit is"
            f" {MAX_PARTITIONS_PER_REQUEST}; create them in several requests.",
        )
    if situation.alone and before + count > situation.free_rows:
        raise situation.rows.refuse(
            f"This appliance has room for {max(situation.free_rows - before, 0)} more"
            f" partition(s), {count} were asked for; ask for fewer, or raise {MOST}."
        )


def _assignment(situation: Situation, topic: NewTopic) -> list[tuple[int, ...]]:
    """Replicas per partition, from the request or by placement."""
    if topic.assignments:
        return _manual(situation, topic)
    config = situation.config
    count = config.int("num.partitions") if topic.partitions == -1 else topic.partitions
    factor = topic.replication_factor
    if factor == -1:
        factor = broker_config(situation.image, config).int("default.replication.factor")
    if count <= 0:
        raise PeerError(
            errors.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value."
            f" It is {count}; at least 1 is possible, or -1 for the broker's num.partitions.",
        )
    if factor <= 0:
        raise PeerError(
            errors.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value."
            f" It is {factor}; the default is the broker's default.replication.factor.",
        )
    _check_room(situation, 0, count)
    return place(situation, count, factor, unable(factor))


def _manual(situation: Situation, topic: NewTopic) -> list[tuple[int, ...]]:
    for name, value in (
        ("replication factor", topic.replication_factor),
        ("numPartitions", topic.partitions),
    ):
        if value != -1:
            raise PeerError(
                errors.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1."
                f" It is {value}; the assignment says how many there are.",
            )
    by_index = dict(topic.assignments)
    count = len(topic.assignments)
    _check_room(situation, 0, count)
    if sorted(by_index) != list(range(count)):
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence:"
            f" name each of 0 to {count - 1} exactly once",
        )
    assignment: list[tuple[int, ...]] = []
    factor: int | None = None
    for index in range(count):
        replicas = check_assignment(situation.image, by_index[index], factor)
        factor = len(replicas)
        assignment.append(replicas)
    return assignment


def delete_topics(
    situation: Situation, wanted: Sequence[TopicToDelete]
) -> tuple[list[Record], list[tuple[TopicToDelete, Result, TopicImage | None]]]:
    """Records, and how it went for each topic named (the topic that goes, when it goes).

    With delete.topic.enable=false all are refused with TOPIC_DELETION_DISABLED."""
    records: list[Record] = []
    results: list[tuple[TopicToDelete, Result, TopicImage | None]] = []
    distinct, repeated = _distinct(situation, wanted)
    results += [(item, Result(errors.INVALID_REQUEST, text), None) for item, text in repeated]
    for item in distinct:
        try:
            topic = _find(situation, item)
            situation.permit(len(topic.partitions))
        except PeerError as error:
            results.append((item, failed(error), None))
            continue
        records.append(kraft.RemoveTopicRecord(topic_id=topic.topic_id))
        results.append((item, OK, topic))
    return records, results


def _distinct(
    situation: Situation, wanted: Sequence[TopicToDelete]
) -> tuple[list[TopicToDelete], list[tuple[TopicToDelete, str]]]:
    """Splits the topics into those named once, and each repeated one with the refusal."""
    by_name = [one.name for one in wanted if one.topic_id is None and one.name is not None]
    by_id = [one.topic_id for one in wanted if one.name is None and one.topic_id is not None]
    names, ids = duplicates(by_name), duplicates(by_id)
    again = "Duplicate topic {}. A request may name each topic once, by name or by id."
    repeated = [(TopicToDelete(name), again.format("name")) for name in names]
    repeated += [(TopicToDelete(topic_id=one), again.format("id")) for one in ids]
    both: dict[bytes, None] = {}
    for name in dict.fromkeys(by_name):
        topic = situation.image.topics_by_name.get(name)
        if topic is not None and topic.topic_id in by_id:
            text = "The provided topic name maps to an ID that was already supplied."
            repeated.append((TopicToDelete(name, topic.topic_id), text))
            names[name] = both[topic.topic_id] = None
    gone = {**ids, **both}
    return [
        one
        for one in wanted
        if (one.name is not None and one.topic_id is not None)
        or (one.name not in names if one.name is not None else one.topic_id not in gone)
    ], repeated


def _find(situation: Situation, item: TopicToDelete) -> TopicImage:
    if not situation.config.bool("delete.topic.enable"):
        raise PeerError(
            errors.TOPIC_DELETION_DISABLED,
            "Topic deletion is disabled; set delete.topic.enable=true and restart.",
        )
    image = situation.image
    if item.topic_id is not None:
        if item.name is not None:
            raise PeerError(
                errors.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        topic = image.topics_by_id.get(item.topic_id)
        if topic is None:
            raise PeerError(errors.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic
    if item.name is None:
        raise PeerError(errors.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = image.topics_by_name.get(item.name)
    if topic is None:
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION,
            f"This server does not host this topic-partition. No topic is named"
            f" '{item.name[:249]}'.",
        )
    return topic
