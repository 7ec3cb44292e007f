"""The leader of a partition changes who is in sync: AlterPartition (API key 56, versions 2 and 3;
3 names broker epochs, KIP-903).

Invariant: nothing changes for a leader that does not know the newest epochs of its partition, and
nobody becomes in sync who is fenced, ending, or another incarnation than the one that caught up.
Every partition is decided for itself.
"""

from collections.abc import Sequence

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.controller.broker_states import check_broker_epoch
from appliance.controller.decision import Record, Situation
from appliance.controller.electorate import EligibleLeaders
from appliance.controller.partition_change import (
    LEADER_UNCHANGED,
    RECOVERED,
    RECOVERING,
    UNCLEAN,
    PartitionChange,
)
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LOST, directory_of
from appliance.metadata.parts import PartitionImage, TopicImage

UNCHECKED: int = -1
"""A broker epoch that is not looked at."""


@dataclass(slots=True, frozen=True)
class NewIsr:
    """The ISR that a leader proposes for one partition. isr: (broker id, its epoch or
    UNCHECKED)."""

    topic_id: bytes
    index: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]
    recovery_state: int = RECOVERED


@dataclass(slots=True, frozen=True)
class AlteredPartition:
    """How it went; without an error, what the partition is when the records are committed."""

    topic_id: bytes
    index: int
    code: int = errors.NONE
    leader: int = 0
    leader_epoch: int = 0
    partition_epoch: int = 0
    isr: tuple[int, ...] = ()
    recovery_state: int = RECOVERED


def alter_partitions(
    situation: Situation, broker_id: int, broker_epoch: int, wanted: Sequence[NewIsr]
) -> tuple[list[Record], list[AlteredPartition]]:
    """Records, and how it went for each partition, in the order of the request. Raises
    PeerError(STALE_BROKER_EPOCH)."""
    image = situation.image
    check_broker_epoch(image, broker_id, broker_epoch)
    electorate = EligibleLeaders(situation)
    records: list[Record] = []
    results = []
    for one in wanted:
        topic = image.topics_by_id.get(one.topic_id)
        if topic is None:
            results.append(AlteredPartition(one.topic_id, one.index, errors.UNKNOWN_TOPIC_ID))
        elif not 0 <= one.index < len(topic.partitions):
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
            results.append(AlteredPartition(one.topic_id, one.index, code))
        else:
            partition = topic.partitions[one.index]
            code = _refusal(image, broker_id, partition, one)
            if code:
                results.append(AlteredPartition(one.topic_id, one.index, code))
            else:
                results.append(_alter(electorate, topic, partition, one, records))
    return records, results


def _alter(
    electorate: EligibleLeaders,
    topic: TopicImage,
    partition: PartitionImage,
    asked: NewIsr,
    records: list[Record],
) -> AlteredPartition:
    change = PartitionChange(electorate, topic, partition)
    change.isr = [broker_id for broker_id, _ in asked.isr]
    change.recovery = asked.recovery_state
    if electorate.unclean(topic):
        change.election = UNCLEAN
    record = change.record()
    leader, leader_epoch, partition_epoch = (
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
    )
    isr, recovery = partition.isr, partition.leader_recovery_state
    if record is not None:
        records.append(record)
        partition_epoch += 1
        isr = isr if record.isr is None else record.isr
        recovery = recovery if record.leader_recovery_state < 0 else record.leader_recovery_state
        if record.leader != LEADER_UNCHANGED:
            if record.leader != leader:  # the reassignment that this completes removed the leader
                code = errors.NEW_LEADER_ELECTED
                return AlteredPartition(topic.topic_id, partition.index, code)
            leader_epoch += 1
    return AlteredPartition(
        topic.topic_id,
        partition.index,
        errors.NONE,
        leader,
        leader_epoch,
        partition_epoch,
        isr,
        recovery,
    )


def _refusal(image: MetadataImage, broker_id: int, partition: PartitionImage, asked: NewIsr) -> int:
    """Kafka's error code, NONE when the proposal may come true."""
    newer = (
        asked.leader_epoch > partition.leader_epoch
        or asked.partition_epoch > partition.partition_epoch
    )
    if newer:
        return errors.NOT_CONTROLLER  # it has heard of what this node has not: who leads now?
    if asked.leader_epoch < partition.leader_epoch:
        return errors.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return errors.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return errors.INVALID_UPDATE_VERSION
    isr = [one for one, _ in asked.isr]
    possible = len(set(isr)) == len(isr) and set(isr) <= set(partition.replicas)
    if not possible or partition.leader not in isr:
        return errors.INVALID_REQUEST
    recovered = partition.leader_recovery_state == RECOVERED
    if asked.recovery_state == RECOVERING and (recovered or len(isr) > 1):
        return errors.INVALID_REQUEST
    for one, epoch in asked.isr:
        broker = image.brokers.get(one)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return errors.INELIGIBLE_REPLICA
        if epoch not in (UNCHECKED, broker.epoch):
            return errors.INELIGIBLE_REPLICA
        if one not in partition.isr and directory_of(partition, one) == LOST:
            return errors.INELIGIBLE_REPLICA  # what it does not write, all others would wait for
    return errors.NONE
