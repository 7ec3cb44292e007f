"""Which replica leads, because somebody asked for it (ElectLeaders, KIP-183 and KIP-460).

A preferred election gives leadership back to a partition's first replica, an unclean one gives a
partition without a leader to any living replica, which may lose records. `balance` and
`elect_unclean` are for nobody's request: whoever drives the controller asks now and then.
"""

from collections.abc import Sequence
from typing import Final

from appliance.base import errors
from appliance.controller import partition_change
from appliance.controller.decision import OK, Record, Result, Situation
from appliance.controller.electorate import EligibleLeaders, leaderless
from appliance.controller.partition_change import LAST_RESORT, PartitionChange

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
    electorate = EligibleLeaders(situation)
    records: dict[tuple[bytes, int], Record] = {}
    results: Results = []
    for name, indexes in wanted:
        rows = []
        for index in indexes:
            how = LAST_RESORT if kind == UNCLEAN else partition_change.PREFERRED
            result = _elect(electorate, kind, name, index, records, how)
            if not (everywhere and result is NOT_NEEDED):
                rows.append((index, result))
        results.append((name, rows))
    return list(records.values()), OK, results


def _elect(
    electorate: EligibleLeaders,
    kind: int,
    name: str,
    index: int,
    records: dict[tuple[bytes, int], Record],
    how: int = partition_change.PREFERRED,
) -> Result:
    """Adds the record of one election; asked for twice it is one."""
    image = electorate.situation.image
    topic = image.topics_by_name.get(name)
    partition = image.partition(name, index)
    if topic is None:
        return Result(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name[:249]}")
    if partition is None:
        return Result(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    preferred = partition.replicas[0]
    if partition.leader == preferred or (kind == UNCLEAN and partition.leader >= 0):
        return NOT_NEEDED
    change = PartitionChange(electorate, topic, partition)
    change.election = how
    record = change.record()
    if record is not None:
        records[topic.topic_id, index] = record
        return OK
    if kind == UNCLEAN:
        text = f"No replica of {name}-{index} is alive; start one of {partition.replicas}."
        return Result(errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
    text = f"The preferred leader {preferred} of {name}-{index} is not alive or not in sync."
    return Result(errors.PREFERRED_LEADER_NOT_AVAILABLE, text)


def balance(situation: Situation, most: int) -> list[Record]:
    """Leadership back to preferred replicas that can have it, of at most so many partitions:
    whoever gets so many asks again soon (auto.leader.rebalance.enable)."""
    electorate = EligibleLeaders(situation)
    records: dict[tuple[bytes, int], Record] = {}
    for topic in situation.image.topics_by_name.values():
        for partition in topic.partitions:
            if partition.leader not in (partition.replicas[0], -1):
                _elect(electorate, PREFERRED, topic.name, partition.index, records)
                if len(records) == most:
                    return list(records.values())
    return list(records.values())


def elect_unclean(situation: Situation, most: int) -> list[Record]:
    """Leaders out of sync for partitions without one, where the topic allows that; most: as for
    `balance`. For a setting that changed: when a broker goes or comes this is done at once."""
    electorate = EligibleLeaders(situation)
    records: dict[tuple[bytes, int], Record] = {}
    for topic, partition in leaderless(situation.image):
        if electorate.unclean(topic):
            how = partition_change.UNCLEAN
            _elect(electorate, UNCLEAN, topic.name, partition.index, records, how)
            if len(records) == most:
                break
    return list(records.values())
