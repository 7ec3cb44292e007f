"""Topics: which there are, what is in them, making, changing and deleting them.

What is done to several topics returns name → why it failed, None where it did not.
"""

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.model.asking import configs
from console.model.asking.failure import Failure, unknown_topic, usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.groups.offsets import Bounds, Lost, bounds, parse, partitions_of, resolve

_CREATE: Final = (19, 7)
PARTITIONS_MOST: Final = 100_000
"""How many partitions a topic may be asked to have: librdkafka's limit."""
_UNDELETE: Final = "penstock.undelete"
_DELETED: Final = "penstock:deleted"
_LEADERLESS: Final = ("LEADER_NOT_AVAILABLE", "_NOENT")
"""Said by a broker, and by librdkafka when it finds no leader of any of several partitions."""

Outcomes = dict[str, Failure | None]


@dataclass(slots=True, frozen=True)
class Listed:
    """A topic by its metadata alone. replicas: of each partition. under_replicated: how many
    partitions have a replica that is not in sync."""

    name: str
    partitions: tuple[int, ...]
    replicas: int
    under_replicated: int = 0


@dataclass(slots=True, frozen=True)
class Partition:
    """start, end: first and next offset; None, with the problem, where the broker does not say.
    leader, replicas, isr: ids of nodes."""

    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    start: int | None
    end: int | None
    records: int | None
    problem: str | None


@dataclass(slots=True, frozen=True)
class Topic:
    """A topic with its partitions. records: from start to end of all of them."""

    name: str
    id: str
    internal: bool
    partition_count: int
    replicas: int
    records: int
    partitions: list[Partition]


@dataclass(slots=True, frozen=True)
class Deleted:
    """A deleted topic that can be brought back. deleted, until: local time, ISO 8601."""

    name: str
    deleted: str
    until: str
    partitions: int
    records: int
    bytes: int
    id: str


@dataclass(slots=True, frozen=True)
class Resolved:
    """The properties of a topic to create. partitions, replicas: None where unknown. settings: key,
    value and source of each, none where unknown.
    """

    partitions: int | None
    replicas: int | None
    settings: list[configs.Place]


@dataclass(slots=True, frozen=True)
class Trimmed:
    """The effect of a trim on one partition. start, end: first and next offset."""

    partition: int
    start: int
    new_start: int
    end: int
    deleted: int


def listed(link: Link) -> dict[str, Listed]:
    """Every topic of the broker, by name."""
    metadata = link.admin().list_topics(timeout=link.timeout_s)
    return {
        name: Listed(
            name,
            tuple(sorted(topic.partitions)),
            max((len(one.replicas) for one in topic.partitions.values()), default=0),
            sum(len(one.isrs) < len(one.replicas) for one in topic.partitions.values()),
        )
        for name, topic in sorted(metadata.topics.items())
    }


def choose(
    found: Mapping[str, Listed], names: tuple[str, ...], regex: str | None, *, internal: bool
) -> dict[str, Listed]:
    """Those that are named or found by the expression; raises Failure for a wrong expression."""
    pattern = compiled(regex)
    return {
        name: found[name]
        for name in found
        if (not names or name in names)
        and pattern.search(name)
        and (internal or name in names or not name.startswith("__"))
    }


def compiled(regex: str | None) -> re.Pattern[str]:
    """The expression of --regex, which finds everything when there is none. Raises Failure."""
    try:
        return re.compile(regex or "")
    except re.error as wrong:
        raise usage(f"--regex {regex!r}: {wrong}") from None


def records(link: Link, topics: Iterable[Listed], lost: Lost | None = None) -> dict[str, int]:
    """Topic → records in it. lost: as in `bounds`."""
    from confluent_kafka import TopicPartition

    chosen = list(topics)
    places = [TopicPartition(one.name, number) for one in chosen for number in one.partitions]
    counts = {one.name: 0 for one in chosen}
    for (name, _), edge in bounds(link, places, lost).items():
        counts[name] += edge.high - edge.low
    return counts


def described(link: Link, names: list[str]) -> list[Topic]:
    """Raises Failure for a topic that is not there."""
    from confluent_kafka import TopicCollection, TopicPartition

    answers = link.admin().describe_topics(TopicCollection(names), request_timeout=link.timeout_s)
    found = {name: link.wait(answers[name], name) for name in names}
    places = [TopicPartition(name, one.id) for name in names for one in found[name].partitions]
    lost: Lost = {}
    known = bounds(link, places, lost)
    return [_topic(found[name], known, lost) for name in names]


def _topic(found: Any, known: dict[tuple[str, int], Bounds], lost: Lost) -> Topic:
    partitions = []
    for one in sorted(found.partitions, key=lambda p: int(p.id)):
        edge = known.get((found.name, one.id))
        partitions.append(
            Partition(
                partition=one.id,
                leader=one.leader.id if one.leader else None,
                replicas=[node.id for node in one.replicas],
                isr=[node.id for node in one.isr],
                start=edge.low if edge else None,
                end=edge.high if edge else None,
                records=edge.high - edge.low if edge else None,
                problem=_problem(lost.get((found.name, one.id))),
            )
        )
    return Topic(
        name=found.name,
        id=str(found.topic_id),
        internal=bool(found.is_internal),
        partition_count=len(partitions),
        replicas=max((len(p.replicas) for p in partitions), default=0),
        records=sum(p.records or 0 for p in partitions),
        partitions=partitions,
    )


def _problem(failure: Failure | None) -> str | None:
    if failure is None:
        return None
    if failure.name == "KAFKA_STORAGE_ERROR":
        return "offline: storage error; the appliance's log names the file (partition-offline)"
    if failure.name in _LEADERLESS:
        return "no leader"
    return f"{failure.name}: {failure.message}"


def partition_counts(
    link: Link, names: list[str], *, may_be_missing: bool = False
) -> dict[str, int]:
    """How many partitions topics have. may_be_missing: one that is not there is left out, a new one
    for example, which brokers of Apache Kafka learn of a moment later; else it raises Failure."""
    from confluent_kafka import TopicCollection

    if not names:
        return {}
    answers = link.admin().describe_topics(TopicCollection(names), request_timeout=link.timeout_s)
    found = {}
    for name in names:
        try:
            found[name] = len(link.wait(answers[name], name).partitions)
        except Failure as failure:
            if not may_be_missing or failure.name != "UNKNOWN_TOPIC_OR_PARTITION":
                raise
    return found


def default_partitions(link: Link) -> int:
    """How many a new topic gets when nothing is said."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    broker = min(link.admin().list_topics(timeout=link.timeout_s).brokers)
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    answers = link.admin().describe_configs([resource], request_timeout=link.timeout_s)
    return int(link.wait(answers[resource])["num.partitions"].value)


def create(
    link: Link,
    names: Iterable[str],
    *,
    partitions: int | None = None,
    replicas: int | None = None,
    settings: Mapping[str, str],
    dry_run: bool,
) -> Outcomes:
    """Make topics; what is None is decided by the broker's settings."""
    from confluent_kafka.admin import NewTopic

    topics = [
        NewTopic(
            name,
            num_partitions=partitions or -1,
            replication_factor=replicas or -1,
            config=dict(settings),
        )
        for name in dict.fromkeys(names)
    ]
    answers = link.admin().create_topics(
        topics, request_timeout=link.timeout_s, validate_only=dry_run
    )
    return {name: link.refused(answer) for name, answer in answers.items()}


def resolved(
    link: Link,
    name: str,
    partitions: int | None,
    replicas: int | None,
    given: Mapping[str, str],
) -> Resolved:
    """The properties that the broker would give a new topic: CreateTopics v7, validate_only. Over
    SASL it is only checked, and only what is given is known. Raises Failure.
    """
    if not link.is_asked:
        outcome = create(
            link, [name], partitions=partitions, replicas=replicas, settings=given, dry_run=True
        )[name]
        if outcome is not None:
            raise outcome
        return Resolved(partitions, replicas, [])
    topic = {
        "name": name, "num_partitions": partitions or -1, "replication_factor": replicas or -1,
        "assignments": [],
        "configs": [{"name": key, "value": value} for key, value in given.items()],
    }  # fmt: skip
    asked = {"topics": [topic], "timeout": round(link.timeout_s * 1000), "validate_only": True}
    (found,) = ask_server(link, *_CREATE, asked).topics
    check(int(found.error_code), found.error_message, name)
    return Resolved(
        found.num_partitions if found.num_partitions > 0 else None,
        found.replication_factor if found.replication_factor > 0 else None,
        [
            configs.Place(one.name, one.value, configs.source_name(int(one.config_source)))
            for one in sorted(found.configs or (), key=lambda one: str(one.name))
        ],
    )


def delete(link: Link, names: list[str]) -> Outcomes:
    """Delete topics with all of their records."""
    answers = link.admin().delete_topics(names, request_timeout=link.timeout_s)
    return {name: link.refused(answer) for name, answer in answers.items()}


def missing(name: str) -> Failure:
    """There is no such topic."""
    return unknown_topic(f"{name}: there is no such topic")


def undelete(link: Link, names: Iterable[str], topic_id: str | None, *, dry_run: bool) -> Outcomes:
    """Bring deleted topics back. topic_id: which one, when several had the name."""
    found = create(link, names, settings={_UNDELETE: topic_id or "true"}, dry_run=dry_run)
    for name, failure in found.items():
        if failure is not None and failure.name == "UNKNOWN_TOPIC_OR_PARTITION":
            failure.hint = "penstock topic list --deleted shows what can be brought back"
        elif failure is not None and failure.name == "TOPIC_ALREADY_EXISTS":
            failure.hint = f"penstock topic delete {name} makes way for it"
    return found


def deleted(link: Link) -> list[Deleted]:
    """The topics that can be undeleted, the newest deletion first. Raises Failure from another
    broker.
    """
    from confluent_kafka.admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, _DELETED)
    answers = link.admin().describe_configs([resource], request_timeout=link.timeout_s)
    try:
        found = link.wait(answers[resource])
    except Failure as failure:
        if failure.name in ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"):
            failure.message = "this broker keeps no deleted topics"
            failure.hint = "it is not an appliance of ours, or an older one"
        raise
    rows = []
    for topic_id, entry in found.items():
        told = json.loads(entry.value)
        rows.append(
            Deleted(
                name=told["name"],
                deleted=_local(told["deleted_ms"]),
                until=_local(told["until_ms"]),
                partitions=told["partitions"],
                records=told["records"],
                bytes=told["bytes"],
                id=topic_id,
            )
        )
    return sorted(rows, key=lambda row: (row.deleted, row.name), reverse=True)


def _local(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(ms / 1000))


def add_partitions(link: Link, name: str, total: int, *, dry_run: bool) -> None:
    """Let a topic have `total` partitions. Raises Failure."""
    from confluent_kafka.admin import NewPartitions

    answers = link.admin().create_partitions(
        [NewPartitions(name, total)], request_timeout=link.timeout_s, validate_only=dry_run
    )
    link.wait(answers[name], name)


def trimmed(
    link: Link, name: str, offset: str, partitions: tuple[int, ...], now_ms: int
) -> list[Trimmed]:
    """The effect of `trim` before an offset (of the grammar of `-o`) on these partitions or all.
    Raises Failure.
    """
    place, stop = parse(offset, now_ms)
    if stop:
        raise usage("-o e@TIME says where to stop, which has no meaning here")
    places = partitions_of(link, [name], partitions)
    known = bounds(link, places)
    plan = []
    for key, target in resolve(link, places, place, known).items():
        edge = known[key]
        if target > edge.high:
            raise Failure(
                f"{name} partition {key[1]} ends at {edge.high}, before {target}",
                name="OFFSET_OUT_OF_RANGE",
                kafka_code=1,
            )
        first = max(target, edge.low)
        plan.append(Trimmed(key[1], edge.low, first, edge.high, first - edge.low))
    return plan


def trim(link: Link, name: str, starts: Mapping[int, int]) -> dict[int, int]:
    """Delete the records before an offset (partition → offset): where each begins now. Raises
    Failure."""
    from confluent_kafka import TopicPartition

    wanted: list[TopicPartition] = [
        TopicPartition(name, number, start) for number, start in starts.items()
    ]
    answers = link.admin().delete_records(wanted, request_timeout=link.timeout_s)
    return {one.partition: link.wait(answer).low_watermark for one, answer in answers.items()}
