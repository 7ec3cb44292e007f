"""A broker says in which of its folders its replicas are: AssignReplicasToDirs (API key 73,
version 0; KIP-858)."""

from collections.abc import Sequence

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.controller.broker_states import check_broker_epoch, elect
from appliance.controller.decision import Record, Situation
from appliance.controller.electorate import EligibleLeaders, directory
from appliance.controller.partition_change import (
    LEADER_UNCHANGED,
    NO_LEADER,
    PartitionChange,
)
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LOST, is_assigned
from appliance.metadata.parts import BrokerImage, PartitionImage, TopicImage


@dataclass(slots=True, frozen=True)
class Assigned:
    """The replica of a partition and the id of the folder that it is in."""

    directory_id: bytes
    topic_id: bytes
    index: int


def assign_replicas(
    situation: Situation, broker_id: int, broker_epoch: int, assigned: Sequence[Assigned]
) -> tuple[list[Record], list[int]]:
    """Records, and an error code for each replica, in the order of the request. What is in a folder
    that is offline is in sync no more, and not eligible where it is said to be LOST: nobody knows
    what it will have when it is back (KIP-966 says so of brokers). What is back may lead where
    nobody does; what begins anew on another disk may not, and is refused until somebody leads, so
    that an unclean election finds who has more. Raises PeerError(STALE_BROKER_EPOCH)."""
    image = situation.image
    broker = check_broker_epoch(image, broker_id, broker_epoch)
    electorate = EligibleLeaders(situation)
    records: list[Record] = []
    codes: list[int] = []
    offline: dict[tuple[bytes, int], tuple[TopicImage, PartitionImage]] = {}
    lost: dict[tuple[bytes, int], tuple[TopicImage, PartitionImage]] = {}
    for one in assigned:
        code, found = _find(image, broker_id, one)
        if found is not None and _begins_anew(electorate, broker, *found):
            code, found = errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, None
        codes.append(code)
        if found is None:
            continue
        change = PartitionChange(electorate, *found)
        change.directories[broker_id] = one.directory_id
        record = change.record()
        if record is not None:
            records.append(record)
        if one.directory_id == LOST:
            lost[one.topic_id, one.index] = found
        elif broker.log_dirs and one.directory_id not in broker.log_dirs:
            offline[one.topic_id, one.index] = found
        elif found[1].leader == NO_LEADER and record and record.leader == LEADER_UNCHANGED:
            assert record.directories is not None, "nothing else can have changed"
            back = found[1]._replace(directories=record.directories)
            records += elect(electorate, [(found[0], back)])
    if offline or lost:
        gone = EligibleLeaders(situation, without=broker_id)
        records += elect(gone, offline.values(), without=broker_id)
        doubted = broker_id if gone.elr else NO_LEADER
        records += elect(gone, lost.values(), without=broker_id, lost=doubted)
    return records, codes


def _begins_anew(
    electorate: EligibleLeaders, broker: BrokerImage, topic: TopicImage, partition: PartitionImage
) -> bool:
    """True if the partition has no leader and the directory of the broker's replica is gone."""
    where = directory(partition, broker.broker_id)
    return (
        partition.leader == NO_LEADER
        and electorate.elr
        and len(partition.replicas) > 1
        and bool(broker.log_dirs)
        and is_assigned(where)
        and where not in broker.log_dirs
        and not electorate.unclean(topic)
    )


def _find(
    image: MetadataImage, broker_id: int, asked: Assigned
) -> tuple[int, tuple[TopicImage, PartitionImage] | None]:
    topic = image.topics_by_id.get(asked.topic_id)
    if topic is None:
        return errors.UNKNOWN_TOPIC_ID, None
    if not 0 <= asked.index < len(topic.partitions):
        return errors.UNKNOWN_TOPIC_OR_PARTITION, None
    partition = topic.partitions[asked.index]
    if broker_id not in partition.replicas:
        return errors.NOT_LEADER_OR_FOLLOWER, None
    return errors.NONE, (topic, partition)
