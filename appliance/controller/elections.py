"""Which replica leads, because somebody asked for it (ElectLeaders, KIP-183 and KIP-460).

A preferred election gives leadership back to a partition's first replica, an unclean one gives a
partition without a leader to any living replica, which may lose records. On one node neither is
needed as a rule, and that is the answer. Decisions only, as everywhere in this room.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from appliance.base import errors
from appliance.controller.decision import OK, Record, Result, Situation
from appliance.controller.placement import usable_brokers
from appliance.metadata.parts import PartitionImage
from appliance.wire import kraft_records as kraft

PREFERRED: Final = 0
UNCLEAN: Final = 1

NOT_NEEDED: Final = Result(
    errors.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)

Results = list[tuple[str, list[tuple[int, Result]]]]
"""Topic → (partition, how it went), in the order of the request."""


def elect_leaders(
    situation: Situation, kind: int, wanted: Sequence[tuple[str, Sequence[int]]] | None
) -> tuple[list[Record], Result, Results]:
    """Records, how it went as a whole, and for each partition. wanted None: all partitions, of
    which those that need no election are left out of the results."""
    image = situation.image
    everywhere = wanted is None
    if wanted is None:
        wanted = [
            (topic.name, range(len(topic.partitions))) for topic in image.topics_by_name.values()
        ]
    if kind not in (PREFERRED, UNCLEAN):
        text = f"Unknown election type {kind}; types are 0 (preferred) and 1 (unclean)."
        refused = Result(errors.INVALID_REQUEST, text)
        return [], refused, [(name, [(at, refused) for at in indexes]) for name, indexes in wanted]
    records: dict[tuple[bytes, int], Record] = {}
    results: Results = []
    for name, indexes in wanted:
        rows = []
        for index in indexes:
            result = _elect(situation, kind, name, index, records)
            if not (everywhere and result is NOT_NEEDED):
                rows.append((index, result))
        results.append((name, rows))
    return list(records.values()), OK, results


def _elect(
    situation: Situation, kind: int, name: str, index: int, records: dict[tuple[bytes, int], Record]
) -> Result:
    """Adds the record of one election; asked for twice it is one."""
    image = situation.image
    topic = image.topics_by_name.get(name)
    partition = image.partition(name, index)
    if topic is None:
        return Result(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name[:249]}")
    if partition is None:
        return Result(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    preferred = partition.replicas[0]
    if partition.leader >= 0 and (kind == UNCLEAN or partition.leader == preferred):
        return NOT_NEEDED
    alive = usable_brokers(image)
    if kind == UNCLEAN:
        able = [one for one in partition.replicas if one in alive]
        safe = [one for one in able if one in partition.isr]
        if not able:
            text = f"No replica of {name}-{index} is alive; start one of {partition.replicas}."
            return Result(errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
        record = _record(topic.topic_id, partition, (safe or able)[0])
    elif preferred in alive and preferred in partition.isr:
        record = _record(topic.topic_id, partition, preferred)
    else:
        text = f"The preferred leader {preferred} of {name}-{index} is not alive or not in sync."
        return Result(errors.PREFERRED_LEADER_NOT_AVAILABLE, text)
    records[topic.topic_id, index] = record
    return OK


def _record(topic_id: bytes, partition: PartitionImage, leader: int) -> kraft.PartitionChangeRecord:
    record = kraft.PartitionChangeRecord(
        partition_id=partition.index, topic_id=topic_id, leader=leader
    )
    if leader not in partition.isr:
        return replace(record, isr=(leader,), eligible_leader_replicas=(), last_known_elr=())
    return record
