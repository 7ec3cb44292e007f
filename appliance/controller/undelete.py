"""Bring a deleted topic back: the records that make it as it was, its id included.

The I/O processes find the folders of its partitions by that id and take them back. Settings are
those of the moment of the deletion; every leader epoch is one higher, as after any change of
leaders. Invariant: a partition is led by a node that was in sync when it was deleted and has the
folder still, and so is everybody in its ISR: who has it not would lead an empty log, to which
the others cut theirs off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import Record, Situation
from appliance.controller.electorate import active_brokers
from appliance.controller.names import Collisions
from appliance.controller.topics import CreatedTopic, NewTopic
from appliance.metadata.trash import Buried, Kept
from appliance.wire import kraft_records as kraft
from appliance.wire.uuids import format_uuid

UNDELETE: Final = "penstock.undelete"
"""The setting of CreateTopics that asks for it: `true`, or the id of the topic as text."""

Everywhere = Mapping[int, Sequence[Kept]]
"""Node → what it keeps of deleted topics of a name, of each node that has said so."""


def wants_undelete(topic: NewTopic) -> bool:
    """True if this CreateTopics entry asks for an undelete."""
    return UNDELETE in topic.configs


def undelete(
    situation: Situation, kept: Everywhere, topic: NewTopic
) -> tuple[list[Record], CreatedTopic]:
    """The records and the topic. Raises PeerError."""
    _check_alone(topic)
    image = situation.image
    if topic.name in image.topics_by_name:
        raise PeerError(
            errors.TOPIC_ALREADY_EXISTS,
            f"Topic '{topic.name}' exists again; delete or rename that one first.",
        )
    other = Collisions(image.topics_by_name).with_name(topic.name)
    if other is not None:
        raise PeerError(
            errors.INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic.name}' collides with existing topic: {other}"
            " ('.' and '_' are the same in metric names).",
        )
    buried = _find(kept, topic.name, topic.configs)
    if topic.partitions not in (-1, buried.partitions):
        raise PeerError(
            errors.INVALID_PARTITIONS,
            f"The deleted topic has {buried.partitions} partition(s), not {topic.partitions};"
            " leave the number out (-1).",
        )
    placed = _check_room(situation, buried)
    holders = {
        node: one.held
        for node, found in kept.items()
        for one in found
        if one.buried.topic_id == buried.topic_id
    }
    nothing = frozenset[int]()
    found = _again(situation, buried, {node: holders.get(node, nothing) for node in kept})
    situation.rows.count_replicas(placed)
    return found


def _check_room(situation: Situation, buried: Buried) -> list[tuple[int, ...]]:
    """The replicas of each partition, for which there is room. Raises PeerError."""
    if situation.alone and buried.partitions > situation.free_rows:
        raise situation.rows.refuse(
            f"This appliance has room for {max(situation.free_rows, 0)} more partition(s), the"
            f" deleted topic has {buried.partitions}; delete others first."
        )
    records = map(kraft.decode, buried.values)
    placed = [tuple(one.replicas) for one in records if isinstance(one, kraft.PartitionRecord)]
    situation.rows.check(placed)
    return placed


def _check_alone(topic: NewTopic) -> None:
    if len(topic.configs) > 1 or topic.assignments:
        raise PeerError(
            errors.INVALID_REQUEST,
            f"With {UNDELETE} a topic comes back as it was: name no other setting and no"
            " assignment; change them afterwards.",
        )


def _find(kept: Everywhere, name: str, configs: Mapping[str, str | None]) -> Buried:
    """The topic that was deleted last, as it was when it was deleted last: a node that was away may
    know of an earlier deletion of the same topic, whose leaders and ISR count no more."""
    asked = configs[UNDELETE] or ""
    newest: dict[bytes, Buried] = {}
    for one in (one.buried for several in kept.values() for one in several):
        meant = asked in ("true", format_uuid(one.topic_id), one.topic_id.hex())
        other = newest.get(one.topic_id)
        if not meant or one.name != name:
            continue
        if other is None or (other.values != one.values and _age(other) < _age(one)):
            newest[one.topic_id] = one
    found = max(reversed(newest.values()), key=lambda one: one.deleted_ms, default=None)
    if found is None:
        which = "" if asked == "true" else f" with id {asked[:50]!r}"
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION,
            f"There is no deleted topic '{name[:249]}'{which} that could be brought back: it was"
            " never there, or its time in the trash is over.",
        )
    return found


def _age(buried: Buried) -> int:
    """How many changes its partitions had had; clocks of nodes may differ."""
    records = map(kraft.decode, buried.values)
    return sum(one.partition_epoch for one in records if isinstance(one, kraft.PartitionRecord))


def _again(
    situation: Situation, buried: Buried, holders: Mapping[int, frozenset[int]]
) -> tuple[list[Record], CreatedTopic]:
    """holders: node → the partitions that it has, of each node that has said so."""
    records: list[Record] = []
    configs: dict[str, str] = {}
    factor = 1
    for value in buried.values:
        record = kraft.decode(value)
        if isinstance(record, kraft.PartitionRecord):
            factor = len(record.replicas)
            record = _led(situation, buried.name, record, holders)
        elif isinstance(record, kraft.ConfigRecord):
            assert record.value is not None
            configs[record.name] = record.value
        records.append(record)
    return records, CreatedTopic(buried.topic_id, buried.partitions, factor, configs)


def _led(
    situation: Situation,
    name: str,
    record: kraft.PartitionRecord,
    holders: Mapping[int, frozenset[int]],
) -> kraft.PartitionRecord:
    """In sync are those who were, are there and have it; who led goes on if it can. Where nobody
    was in sync those who were eligible had everything (KIP-966). Raises PeerError."""
    image, index = situation.image, record.partition_id
    active = active_brokers(image) if image.brokers else [situation.node_id]
    eligible = record.eligible_leader_replicas or ()
    had_all = record.isr or eligible
    have = [one for one in had_all if index in holders.get(one, ())]
    able = tuple(one for one in have if one in active)
    if not able:
        away = [one for one in had_all if one not in holders] + have
        raise _nobody(f"{name}-{index}", had_all, away)
    leader = record.leader if record.leader in able else able[0]
    others = tuple(one for one in eligible if index in holders.get(one, ()))
    return replace(
        record,
        leader=leader,
        isr=able if record.isr else (leader,),
        eligible_leader_replicas=tuple(one for one in others if record.isr or one != leader)
        or None,
        last_known_elr=None,
        leader_epoch=record.leader_epoch + 1,
        partition_epoch=record.partition_epoch + 1,
    )


def _nobody(partition: str, had_all: Sequence[int], away: Sequence[int]) -> PeerError:
    """Why the partition cannot be brought back. away: who may have it and cannot lead now."""
    if away:
        return PeerError(
            errors.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"Only {_nodes(away, 'or')} may still have what was in {partition}, and cannot lead it"
            " now: nothing was changed; start it, and ask again.",
        )
    return PeerError(
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        f"The topic cannot be brought back whole: {partition} is gone from"
        f" {_nodes(had_all, 'and')}, in sync when it was deleted. Nothing was changed.",
    )


def _nodes(numbers: Sequence[int], word: str) -> str:
    return f" {word} ".join(f"node {one}" for one in sorted(set(numbers)))
