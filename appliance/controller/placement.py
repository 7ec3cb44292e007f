"""Where the replicas of new partitions go, and whether a manual assignment is possible.

Kafka stripes leaders over racks and brokers; with the brokers in order of their id and one rack
that is a plain rotation, which is what this does.
"""

from collections.abc import Sequence

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import Record, Situation, duplicates
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import directory_of
from appliance.metadata.parts import PartitionImage
from appliance.metadata.snapshot import partition_record
from appliance.wire import kraft_records as kraft

UNASSIGNED_DIRECTORY = bytes(16)


def usable_brokers(image: MetadataImage) -> list[int]:
    """Registered brokers that may get a replica: neither fenced nor shutting down."""
    return sorted(
        broker.broker_id
        for broker in image.brokers.values()
        if not broker.fenced and not broker.in_controlled_shutdown
    )


def place(image: MetadataImage, first: int, count: int, factor: int) -> list[tuple[int, ...]]:
    """Replicas for partitions first … first+count-1; raises PeerError when `factor` is too high."""
    brokers = usable_brokers(image)
    if factor > len(brokers):
        raise PeerError(
            errors.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of"
            f" {factor} cannot be reached because only {len(brokers)} broker(s) are registered or"
            " some brokers have all their log directories cordoned."
            f" Ask for a replication factor of {len(brokers)}; if none was asked for, the broker's"
            f" file or command line has to say default.replication.factor={len(brokers)}.",
        )
    size = len(brokers)
    return [
        tuple(brokers[(index + replica) % size] for replica in range(factor))
        for index in range(first, first + count)
    ]


def check_assignment(
    image: MetadataImage, replicas: Sequence[int], factor: int | None
) -> tuple[int, ...]:
    """A manual assignment of one partition as it may be used; `factor` is what the others have.

    Raises PeerError(INVALID_REPLICA_ASSIGNMENT).
    """
    wrong = ""
    unknown = [broker for broker in replicas if broker not in image.brokers]
    if not replicas:
        wrong = "an empty replica list. Name at least one broker."
    elif twice := duplicates(list(replicas)):
        wrong = f"the broker {next(iter(twice))} more than once."
    elif unknown:
        known = ", ".join(map(str, sorted(image.brokers)))
        wrong = f"broker {unknown[0]}, but no such broker is registered. Registered: {known}."
    elif factor is not None and len(replicas) != factor:
        wrong = (
            f"a partition with {len(replicas)} replica(s), but the other partitions have"
            f" {factor}; give all partitions the same number."
        )
    if wrong:
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {wrong}"
        )
    return tuple(replicas)


def place_directory(situation: Situation) -> bytes:
    """The folder for a new partition: the one with the fewest, the first of several such."""
    directories = situation.directories
    if len(directories) < 2:
        return directories[0] if directories else situation.directory_id
    if situation.counts is None:
        situation.counts = _count(situation)
    counts = situation.counts
    chosen = min(directories, key=lambda one: counts.get(one, 0))
    counts[chosen] = counts.get(chosen, 0) + 1
    return chosen


def _count(situation: Situation) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for topic in situation.image.topics_by_name.values():
        for partition in topic.partitions:
            one = directory_of(partition, situation.node_id)
            counts[one] = counts.get(one, 0) + 1
    return counts


def new_partition(
    situation: Situation, topic_id: bytes, index: int, replicas: tuple[int, ...]
) -> kraft.PartitionRecord:
    """The record of a new partition: its first usable replica leads, with leader epoch 0."""
    usable = usable_brokers(situation.image)
    isr = tuple(broker for broker in replicas if broker in usable)
    if not isr:
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers of the assignment of partition {index} are fenced or shutting down.",
        )
    partition = PartitionImage(
        index=index,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        replicas=replicas,
        isr=isr,
        directories=tuple(
            place_directory(situation) if broker == situation.node_id else UNASSIGNED_DIRECTORY
            for broker in replicas
        ),
    )
    return partition_record(topic_id, partition)


def assign_directory(
    topic_id: bytes, partition: PartitionImage, node_id: int, directory_id: bytes
) -> list[Record]:
    """The record of a replica of this node that lies in another folder now; none when that is
    known."""
    places = dict(zip(partition.replicas, partition.directories, strict=False))
    if node_id not in partition.replicas or places.get(node_id) == directory_id:
        return []
    places[node_id] = directory_id
    directories = tuple(places.get(one, UNASSIGNED_DIRECTORY) for one in partition.replicas)
    return [
        kraft.PartitionChangeRecord(
            partition_id=partition.index, topic_id=topic_id, directories=directories
        )
    ]
