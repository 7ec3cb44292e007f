"""Where the replicas of new partitions go, and whether a manual assignment is possible."""

from collections.abc import Callable, Collection, Sequence

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import Record, Situation
from appliance.controller.electorate import MIGRATING, UNASSIGNED
from appliance.controller.replica_placer import Stripes, UsableBroker
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import BrokerImage, PartitionImage
from appliance.metadata.snapshot import partition_record
from appliance.wire import kraft_records as kraft


def usable_brokers(image: MetadataImage) -> list[BrokerImage]:
    """Registered brokers that may get a replica, by id: those that do not end and have a folder
    that takes new partitions. Fenced ones may, but not the first."""
    return [
        broker
        for _, broker in sorted(image.brokers.items())
        if (broker.fenced or not broker.in_controlled_shutdown)
        and (not broker.log_dirs or set(broker.log_dirs) - set(broker.cordoned_log_dirs or ()))
    ]


def place(situation: Situation, count: int, factor: int, doing: str) -> list[tuple[int, ...]]:
    """Replicas of `count` partitions. Raises PeerError(INVALID_REPLICATION_FACTOR), whose text
    begins with what was `doing`, or INVALID_PARTITIONS where nodes are full."""
    brokers = usable_brokers(situation.image)
    if all(broker.fenced for broker in brokers):
        raise PeerError(
            errors.INVALID_REPLICATION_FACTOR,
            f"{doing}All brokers are currently fenced, or have all their log directories cordoned.",
        )
    if factor > len(brokers):
        raise PeerError(
            errors.INVALID_REPLICATION_FACTOR,
            f"{doing}The target replication factor of {factor} cannot be reached because only"
            f" {len(brokers)} broker(s) are registered or some brokers have all their log"
            f" directories cordoned. Ask for a replication factor of {len(brokers)}; if none was"
            " asked for, the broker's file or command line has to say"
            f" default.replication.factor={len(brokers)}.",
        )
    if len(brokers) == 1:
        return [(brokers[0].broker_id,)] * count
    return _striped(situation, brokers, count, factor)


def _striped(
    situation: Situation, brokers: Sequence[BrokerImage], count: int, factor: int
) -> list[tuple[int, ...]]:
    """Over the brokers, without each from the moment on at which it has no row left: where nobody
    is full, that is what Kafka does. Raises PeerError where too few are left."""
    rows = situation.rows
    left = rows.left(count)
    chance = _chance(situation.new_id)
    placed: list[tuple[int, ...]] = []
    while len(placed) < count:
        roomy = [one for one in brokers if left.get(one.broker_id, 1) > 0]
        if len(roomy) < factor or all(broker.fenced for broker in roomy):
            full = {broker.broker_id for broker in brokers} - {one.broker_id for one in roomy}
            raise rows.refusal(full, count)
        places = [UsableBroker(one.broker_id, one.rack or "", one.fenced) for one in roomy]
        stripes = Stripes(places, chance)
        placed += _until_full(stripes, factor, count - len(placed), left)
    return placed


def _until_full(
    stripes: Stripes, factor: int, count: int, left: dict[int, int]
) -> list[tuple[int, ...]]:
    """At least one partition, at most `count`. left: broker → rows, which these take."""
    placed: list[tuple[int, ...]] = []
    while len(placed) < count:
        placed.append(stripes.replicas(factor))
        for broker in left.keys() & placed[-1]:
            left[broker] -= 1
        if any(left.get(broker) == 0 for broker in placed[-1]):
            break
    return placed


def _chance(new_id: Callable[[], bytes]) -> Callable[[int], int]:
    """Numbers below the one that is given, from the chance that ids are made of."""
    left = 0

    def below(end: int) -> int:
        nonlocal left
        if left < end:
            left = int.from_bytes(new_id())
        left, found = divmod(left, end)
        return found

    return below


def unable(factor: int) -> str:
    """How Kafka begins to say that a topic cannot be created."""
    return f"Unable to replicate the partition {factor} time(s): "


def check_assignment(
    image: MetadataImage, replicas: Sequence[int], factor: int | None
) -> tuple[int, ...]:
    """A manual assignment of one partition as it may be used; `factor` is what the others have.

    Raises PeerError(INVALID_REPLICA_ASSIGNMENT).
    """
    wrong = "" if replicas else "an empty replica list. Name at least one broker."
    in_order = sorted(replicas)
    for broker, before in zip(in_order, [None, *in_order], strict=False):
        if broker not in image.brokers:
            known = ", ".join(map(str, sorted(image.brokers)))
            wrong = f"broker {broker}, but no such broker is registered. Registered: {known}."
        elif broker == before:
            wrong = f"the broker {broker} more than once."
        if wrong:
            break
    if not wrong and factor is not None and len(replicas) != factor:
        wrong = (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous"
            f" partitions, which have {factor} replica(s)."
        )
    if wrong:
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {wrong}"
        )
    return tuple(replicas)


def place_directory(situation: Situation, broker_id: int) -> bytes:
    """The folder of the broker for a new replica: the one with the fewest, the first of several
    such."""
    directories = _directories(situation, broker_id)
    if len(directories) == 1:
        return directories[0]
    if situation.counts is None:
        situation.counts = _count(situation.image)
    counts = situation.counts
    chosen = min(directories, key=lambda one: counts.get(one, 0))
    counts[chosen] = counts.get(chosen, 0) + 1
    return chosen


def _directories(situation: Situation, broker_id: int) -> Sequence[bytes]:
    """Those that take new partitions, at least one."""
    if broker_id == situation.node_id:
        return situation.directories or (situation.directory_id,)
    broker = situation.image.brokers.get(broker_id)
    if broker is None:
        return (UNASSIGNED,)
    cordoned = broker.cordoned_log_dirs or ()
    open_ones = [one for one in broker.log_dirs if one not in cordoned]
    return open_ones or broker.log_dirs or (MIGRATING,)


def _count(image: MetadataImage) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for topic in image.topics_by_name.values():
        for partition in topic.partitions:
            for one in partition.directories:
                counts[one] = counts.get(one, 0) + 1
    return counts


def new_partition(
    situation: Situation,
    topic_id: bytes,
    index: int,
    replicas: tuple[int, ...],
    active: Collection[int],
) -> kraft.PartitionRecord:
    """The record of a new partition: its first active replica leads, with leader epoch 0. active:
    brokers that are neither fenced nor ending, at least one of them a replica."""
    isr = tuple(broker for broker in replicas if broker in active)
    partition = PartitionImage(
        index=index,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        replicas=replicas,
        isr=isr,
        directories=tuple(place_directory(situation, broker) for broker in replicas),
    )
    return partition_record(topic_id, partition)


def check_active(
    placed: Sequence[tuple[int, ...]], first: int, active: Collection[int], *, manual: bool
) -> None:
    """That every new partition, of which the first has the number `first`, can have a leader.
    Raises PeerError."""
    for index, replicas in enumerate(placed, first):
        if not any(one in active for one in replicas):
            text = (
                f"All brokers specified in the manual partition assignment for partition {index}"
                " are fenced or in controlled shutdown."
            )
            if manual:
                raise PeerError(errors.INVALID_REPLICA_ASSIGNMENT, text)
            text = "All brokers are currently fenced or in controlled shutdown."
            raise PeerError(errors.INVALID_REPLICATION_FACTOR, unable(len(replicas)) + text)


def assign_directory(
    topic_id: bytes, partition: PartitionImage, node_id: int, directory_id: bytes
) -> list[Record]:
    """The record of a replica of this node that lies in another folder now; none when that is
    known."""
    places = dict(zip(partition.replicas, partition.directories, strict=False))
    if node_id not in partition.replicas or places.get(node_id) == directory_id:
        return []
    places[node_id] = directory_id
    directories = tuple(places.get(one, UNASSIGNED) for one in partition.replicas)
    return [
        kraft.PartitionChangeRecord(
            partition_id=partition.index, topic_id=topic_id, directories=directories
        )
    ]
