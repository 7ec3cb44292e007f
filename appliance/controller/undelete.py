"""Bring a deleted topic back: the records that make it as it was, its id included.

The I/O processes find the folders of its partitions by that id and take them back. Leaders and
settings are those of the moment of the deletion; every leader epoch is one higher, as after any
change of leaders.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import Record, Situation
from appliance.controller.electorate import active_brokers
from appliance.controller.names import Collisions
from appliance.controller.partition_change import NO_LEADER
from appliance.controller.topics import CreatedTopic, NewTopic
from appliance.metadata.trash import Buried, Trash
from appliance.wire import kraft_records as kraft
from appliance.wire.uuids import format_uuid

UNDELETE: Final = "penstock.undelete"
"""The setting of CreateTopics that asks for it: `true`, or the id of the topic as text."""


def wants_undelete(topic: NewTopic) -> bool:
    """Whether this creation asks for a topic of before."""
    return UNDELETE in topic.configs


def undelete(
    situation: Situation, trash: Trash, missing: Callable[[Buried], str], topic: NewTopic
) -> tuple[list[Record], CreatedTopic]:
    """The records and the topic. missing: which folder of it is not there any more, or "". Raises
    PeerError."""
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
    buried = _find(trash, topic.name, topic.configs)
    if topic.partitions not in (-1, buried.partitions):
        raise PeerError(
            errors.INVALID_PARTITIONS,
            f"The deleted topic has {buried.partitions} partition(s), not {topic.partitions};"
            " leave the number out (-1).",
        )
    if buried.partitions > situation.free_rows:
        raise PeerError(
            errors.INVALID_PARTITIONS,
            f"This appliance has room for {max(situation.free_rows, 0)} more partition(s), the"
            f" deleted topic has {buried.partitions}; delete others first.",
        )
    gone = missing(buried)
    if gone:
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic '{topic.name}' cannot be brought back whole: {gone} is not there any more.",
        )
    return _again(buried, active_brokers(image) if image.brokers else None)


def _check_alone(topic: NewTopic) -> None:
    if len(topic.configs) > 1 or topic.assignments:
        raise PeerError(
            errors.INVALID_REQUEST,
            f"With {UNDELETE} a topic comes back as it was: name no other setting and no"
            " assignment; change them afterwards.",
        )


def _find(trash: Trash, name: str, configs: Mapping[str, str | None]) -> Buried:
    asked = configs[UNDELETE] or ""
    if asked == "true":
        found = trash.newest(name)
    else:
        found = next(
            (
                one
                for one in trash.topics.values()
                if one.name == name and asked in (format_uuid(one.topic_id), one.topic_id.hex())
            ),
            None,
        )
    if found is None:
        which = "" if asked == "true" else f" with id {asked[:50]!r}"
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION,
            f"There is no deleted topic '{name[:249]}'{which} that could be brought back: it was"
            " never there, or its time in the trash is over.",
        )
    return found


def _again(buried: Buried, active: Collection[int] | None) -> tuple[list[Record], CreatedTopic]:
    """active: who may lead; None: nobody is registered, and all is as it was."""
    records: list[Record] = []
    configs: dict[str, str] = {}
    factor = 1
    for value in buried.values:
        record = kraft.decode(value)
        if isinstance(record, kraft.PartitionRecord):
            factor = len(record.replicas)
            record = replace(
                record,
                leader_epoch=record.leader_epoch + 1,
                partition_epoch=record.partition_epoch + 1,
            )
            if active is not None and not set(record.isr) <= set(active):
                record = _living(record, active)
        elif isinstance(record, kraft.ConfigRecord):
            assert record.value is not None
            configs[record.name] = record.value
        records.append(record)
    return records, CreatedTopic(buried.topic_id, buried.partitions, factor, configs)


def _living(record: kraft.PartitionRecord, active: Collection[int]) -> kraft.PartitionRecord:
    """In sync are those who are there, of whom one leads; with none it waits for who led."""
    able = tuple(one for one in record.isr if one in active)
    if not able:
        return replace(record, leader=NO_LEADER, isr=(record.leader,))
    leader = record.leader if record.leader in able else able[0]
    return replace(record, leader=leader, isr=able)
