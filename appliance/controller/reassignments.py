"""Where the replicas of partitions that exist are to be (KIP-455), as far as one node can do it.

Replicas on other nodes cannot be made here, so a reassignment either is done at once (fewer
replicas, another order) or is refused; none is ever under way but one that another controller
left behind, which can be cancelled. Decisions only.
"""

from collections.abc import Sequence

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import OK, Record, Result, Situation, failed
from appliance.controller.placement import UNASSIGNED_DIRECTORY, check_assignment
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import PartitionImage, TopicImage
from appliance.wire import kraft_records as kraft

Wanted = tuple[str, Sequence[tuple[int, Sequence[int] | None]]]
"""Topic → (partition, replicas); no replicas: cancel what is under way."""


def alter_reassignments(
    situation: Situation, wanted: Sequence[Wanted], *, may_change_factor: bool
) -> tuple[list[Record], list[tuple[str, list[tuple[int, Result]]]]]:
    """Records, and how it went for each partition, in the order of the request."""
    records: dict[tuple[str, int], list[Record]] = {}
    results = []
    for name, partitions in wanted:
        rows: list[tuple[int, Result]] = []
        for index, replicas in partitions:
            try:
                topic, partition = _find(situation.image, name, index)
                if replicas is None:
                    new = _cancel(topic, partition)
                else:
                    new = _reassign(situation, topic, partition, replicas, may_change_factor)
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
    """What is under way, of the partitions asked for or (None) of all, by topic."""
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


def _cancel(topic: TopicImage, partition: PartitionImage) -> list[Record]:
    if not _moving(partition):
        raise PeerError(
            errors.NO_REASSIGNMENT_IN_PROGRESS,
            f"No replica of {topic.name}-{partition.index} is on its way: nothing to cancel.",
        )
    staying = tuple(one for one in partition.replicas if one not in partition.adding_replicas)
    return [_moved(topic, partition, staying or partition.replicas)]


def _reassign(
    situation: Situation,
    topic: TopicImage,
    partition: PartitionImage,
    wanted: Sequence[int],
    may_change_factor: bool,
) -> list[Record]:
    replicas = check_assignment(situation.image, wanted, None)
    before = [one for one in partition.replicas if one not in partition.adding_replicas]
    if not may_change_factor and len(replicas) != len(before):
        raise PeerError(
            errors.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(before)} to {len(replicas)}; keep it,"
            " or allow the change.",
        )
    new = [one for one in replicas if one not in partition.replicas]
    if new:
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT,
            f"A replica of {topic.name}-{partition.index} on broker {new[0]} cannot be made:"
            f" replication is not served. Choose from {list(partition.replicas)}.",
        )
    if not any(one in partition.isr for one in replicas):
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT,
            f"None of {list(replicas)} is in sync; in sync are {list(partition.isr)}.",
        )
    if replicas == partition.replicas and not _moving(partition):
        return []
    return [_moved(topic, partition, replicas)]


def _moved(
    topic: TopicImage, partition: PartitionImage, replicas: tuple[int, ...]
) -> kraft.PartitionChangeRecord:
    """The partition with these of its replicas, none on its way any more."""
    places = dict(zip(partition.replicas, partition.directories, strict=False))
    isr = tuple(one for one in partition.isr if one in replicas)
    leads = partition.leader in replicas or not isr
    return kraft.PartitionChangeRecord(
        partition_id=partition.index,
        topic_id=topic.topic_id,
        leader=-2 if leads else isr[0],
        replicas=replicas,
        isr=isr,
        adding_replicas=(),
        removing_replicas=(),
        directories=tuple(places.get(one, UNASSIGNED_DIRECTORY) for one in replicas),
    )
