"""Where the replicas of partitions that exist are to be (KIP-455).

A reassignment adds the new replicas beside the old ones; when they are in sync the others go
(`partition_change.py`), which is at once when none is new. Decisions only.
"""

from collections.abc import Sequence

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import OK, Record, Result, Situation, failed
from appliance.controller.electorate import EligibleLeaders
from appliance.controller.partition_change import UNCLEAN, PartitionChange
from appliance.controller.placement import check_assignment
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import PartitionImage, TopicImage

Wanted = tuple[str, Sequence[tuple[int, Sequence[int] | None]]]
"""Topic → (partition, replicas); no replicas: cancel what is under way."""


def alter_reassignments(
    situation: Situation, wanted: Sequence[Wanted], *, may_change_factor: bool
) -> tuple[list[Record], list[tuple[str, list[tuple[int, Result]]]]]:
    """Records, and how it went for each partition, in the order of the request."""
    electorate = EligibleLeaders(situation)
    records: dict[tuple[str, int], list[Record]] = {}
    results = []
    for name, partitions in wanted:
        rows: list[tuple[int, Result]] = []
        for index, replicas in partitions:
            try:
                topic, partition = _find(situation.image, name, index)
                if replicas is None:
                    new = _cancel(electorate, topic, partition)
                else:
                    new = _reassign(electorate, topic, partition, replicas, may_change_factor)
            except PeerError as error:
                rows.append((index, failed(error)))
                continue
            records[name, index] = new  # of what is asked for twice the last one counts
            rows.append((index, OK))
        results.append((name, rows))
    return [record for new in records.values() for record in new], results


def reassignments(
    image: MetadataImage, asked: Sequence[tuple[str, Sequence[int]]] | None
) -> list[tuple[str, list[PartitionImage]]]:
    """Returns the ongoing reassignments by topic: of the partitions asked for, or (None) of all."""
    if asked is None:
        asked = [
            (topic.name, range(len(topic.partitions))) for topic in image.topics_by_name.values()
        ]
    found = []
    for name, indexes in asked:
        partitions = [image.partition(name, index) for index in dict.fromkeys(indexes)]
        moving = [one for one in partitions if one is not None and _moving(one)]
        if moving:
            found.append((name, moving))
    return found


def _moving(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _find(image: MetadataImage, name: str, index: int) -> tuple[TopicImage, PartitionImage]:
    topic = image.topics_by_name.get(name)
    if topic is None:
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name[:249]}."
        )
    partition = image.partition(name, index)
    if partition is None:
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    return topic, partition


def _cancel(
    electorate: EligibleLeaders, topic: TopicImage, partition: PartitionImage
) -> list[Record]:
    """Back to the replicas of before: none that was being added, all that were to go."""
    if not _moving(partition):
        raise PeerError(
            errors.NO_REASSIGNMENT_IN_PROGRESS,
            f"No replica of {topic.name}-{partition.index} is on its way: nothing to cancel.",
        )
    change = PartitionChange(electorate, topic, partition)
    unclean = electorate.unclean(topic)
    staying = tuple(one for one in partition.replicas if one not in partition.adding_replicas)
    isr = tuple(one for one in partition.isr if one not in partition.adding_replicas)
    if not staying:
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    if not isr and not unclean:
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{partition.index} because it"
            " would require an unclean leader election.",
        )
    if unclean:
        change.election = UNCLEAN
    change.isr = isr or staying[:1]
    change.replicas, change.adding, change.removing = staying, (), ()
    return _records(change)


def _reassign(
    electorate: EligibleLeaders,
    topic: TopicImage,
    partition: PartitionImage,
    wanted: Sequence[int],
    may_change_factor: bool,
) -> list[Record]:
    """The wanted replicas first, then those that go when the others are in sync."""
    replicas = check_assignment(electorate.situation.image, wanted, None)
    before = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    if not may_change_factor and len(replicas) != len(before):
        raise PeerError(
            errors.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(before)} to {len(replicas)}; keep it,"
            " or allow the change.",
        )
    new = set(replicas) - set(partition.replicas)
    rows = electorate.situation.rows
    rows.check([tuple(new)])
    rows.count_replicas([tuple(new)])
    change = PartitionChange(electorate, topic, partition)
    change.removing = tuple(sorted(set(partition.replicas) - set(replicas)))
    change.replicas = replicas + change.removing
    # What an earlier reassignment was adding stays so, wanted or not: a cancellation takes it out.
    change.adding = partition.adding_replicas
    if new:
        change.adding = tuple(sorted(new.union(partition.adding_replicas)))
    return _records(change)


def _records(change: PartitionChange) -> list[Record]:
    record = change.record()
    return [] if record is None else [record]
