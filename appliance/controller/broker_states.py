"""Brokers come, go and are lost: BrokerHeartbeat (API key 63) and what follows for the partitions
that they lead and hold.

A broker is fenced (registered, but not to be used) until it has read the metadata up to its own
registration, and again when its session is over or it ends. When it wants to end, its leaders go to
others first, and it ends when those have read so (KIP-841).

Invariant: the records of a change of state and those of the partitions come together. A heartbeat
that changes no state looks at no partition. `heartbeat` and `registered` tell `Heartbeats` that the
broker was heard of; all else is in the records.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.controller.decision import Record, Situation
from appliance.controller.electorate import (
    EligibleLeaders,
    directory,
    leaderless,
    leads_any,
    partitions_of,
    partitions_that_count_on,
)
from appliance.controller.heartbeats import Heartbeats
from appliance.controller.partition_change import UNCLEAN, PartitionChange
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import is_assigned
from appliance.metadata.parts import BrokerImage, PartitionImage, TopicImage
from appliance.metadata.record_versions import CORDONED
from appliance.wire import kraft_records as kraft

Found = Iterable[tuple[TopicImage, PartitionImage]]

FENCED: Final = "fenced"
UNFENCED: Final = "unfenced"
SHUTTING_DOWN: Final = "shutting down"
ENDS: Final = "ends"
"""What a broker is: not to be used; in use; in use until others lead; told to end at once."""

_FENCE: Final = 1
_UNFENCE: Final = -1


@dataclass(slots=True, frozen=True, kw_only=True)
class Heartbeat:
    """The state that a broker reports. offset: of the newest metadata record that it has read.
    offline, cordoned: ids of folders; cordoned None: it does not say."""

    broker_id: int
    epoch: int
    offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline: Sequence[bytes] = ()
    cordoned: Sequence[bytes] | None = None


@dataclass(slots=True, frozen=True)
class HeartbeatAnswer:
    """The fields of BrokerHeartbeatResponse, in its order."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


def check_broker_epoch(image: MetadataImage, broker_id: int, epoch: int) -> BrokerImage:
    """The broker that asks. Raises PeerError(STALE_BROKER_EPOCH): it must register again."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        text = f"No broker registration found for broker id {broker_id}"
        raise PeerError(errors.STALE_BROKER_EPOCH, text)
    if broker.epoch != epoch:
        text = f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
        raise PeerError(errors.STALE_BROKER_EPOCH, text)
    return broker


def heartbeat(
    situation: Situation, heartbeats: Heartbeats, asked: Heartbeat, now_ms: int
) -> tuple[list[Record], HeartbeatAnswer]:
    """Records, and what the broker is when they are committed. Raises PeerError as
    `check_broker_epoch`."""
    image = situation.image
    broker = check_broker_epoch(image, asked.broker_id, asked.epoch)
    heartbeats.record_heartbeat(asked.broker_id, asked.epoch, asked.offset, now_ms)
    caught_up = asked.offset >= heartbeats.registered_at(asked.broker_id, asked.epoch)
    next_one = _next(image, heartbeats, broker, asked, caught_up)
    records: list[Record] = []
    if next_one == UNFENCED and broker.fenced:
        records = unfence(situation, broker)
    elif next_one == SHUTTING_DOWN and heartbeats.ends_at(broker) < 0:
        records = shut_down(situation, broker)
        end = image.applied_offset + len(records)
        heartbeats.shuts_down(asked.broker_id, asked.epoch, end)
    elif next_one == ENDS or (next_one == FENCED and not broker.fenced):
        records = fence(situation, broker)
        (heartbeats.ended if next_one == ENDS else heartbeats.stays)(asked.broker_id)
    records += _folders(situation, broker, asked)
    fenced = next_one in (FENCED, ENDS)
    return records, HeartbeatAnswer(caught_up, fenced, next_one == ENDS)


def _next(
    image: MetadataImage,
    heartbeats: Heartbeats,
    broker: BrokerImage,
    asked: Heartbeat,
    caught_up: bool,
) -> str:
    """The state of the broker from now on."""
    if broker.fenced:
        if asked.want_shut_down:
            return ENDS
        return UNFENCED if caught_up and not asked.want_fence else FENCED
    until = heartbeats.ends_at(broker)
    if until >= 0:
        waits = until > heartbeats.lowest_offset(image) or leads_any(image, asked.broker_id)
        return SHUTTING_DOWN if waits else ENDS
    if asked.want_fence:
        return ENDS if asked.want_shut_down else FENCED
    if asked.want_shut_down:
        return SHUTTING_DOWN if leads_any(image, asked.broker_id) else ENDS
    return UNFENCED


def fence(situation: Situation, broker: BrokerImage) -> list[Record]:
    """The broker is not to be used: others lead."""
    electorate = EligibleLeaders(situation, without=broker.broker_id)
    gone = partitions_of(situation.image, broker.broker_id)
    records = elect(electorate, gone, without=broker.broker_id)
    records.append(
        kraft.BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=_FENCE
        )
    )
    return records


def unfence(situation: Situation, broker: BrokerImage) -> list[Record]:
    """The broker may be used: partitions that nobody leads may have it."""
    record = kraft.BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=_UNFENCE
    )
    electorate = EligibleLeaders(situation, also=broker.broker_id)
    return [record, *elect(electorate, leaderless(situation.image))]


def shut_down(situation: Situation, broker: BrokerImage) -> list[Record]:
    """The broker wants to end: who else can lead does."""
    records: list[Record] = []
    if not broker.in_controlled_shutdown:
        records.append(
            kraft.BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            )
        )
    electorate = EligibleLeaders(situation, without=broker.broker_id)
    gone = partitions_of(situation.image, broker.broker_id)
    return records + elect(electorate, gone, without=broker.broker_id)


def stale(situation: Situation, heartbeats: Heartbeats, now_ms: int) -> list[Record]:
    """Returns the records that fence one broker with an expired session. Call again after their
    replay, until the list is empty."""
    broker_id = heartbeats.stale(situation.image, now_ms)
    return fence(situation, situation.image.brokers[broker_id]) if broker_id >= 0 else []


def unregister(situation: Situation, heartbeats: Heartbeats, broker_id: int) -> list[Record]:
    """UnregisterBroker (API key 64). Raises PeerError(BROKER_ID_NOT_REGISTERED)."""
    broker = situation.image.brokers.get(broker_id)
    if broker is None:
        text = f"Broker ID {broker_id} is not currently registered"
        raise PeerError(errors.BROKER_ID_NOT_REGISTERED, text)
    electorate = EligibleLeaders(situation, without=broker_id)
    gone = partitions_of(situation.image, broker_id, eligible=True)
    records = elect(electorate, gone, without=broker_id)
    records.append(kraft.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch))
    heartbeats.forget_broker(broker_id)
    return records


def gone_before(
    situation: Situation, broker_id: int, folders: Sequence[bytes], *, clean: bool
) -> list[Record]:
    """Another incarnation of the broker registers, with these log folders: the one before is in no
    ISR any more; when it did not end in order it may have lost what it had, and is not eligible
    either (KIP-966). Where it lay in a folder that is not there any more it has lost all of that,
    and is not the one who led last, either: another one may have more."""
    electorate = EligibleLeaders(situation, without=broker_id)
    if not electorate.elr:
        gone = partitions_of(situation.image, broker_id)
        return elect(electorate, gone, without=broker_id)
    kept: list[tuple[TopicImage, PartitionImage]] = []
    replaced: list[tuple[TopicImage, PartitionImage]] = []
    before = situation.image.brokers.get(broker_id)
    for found in partitions_that_count_on(situation.image, broker_id):
        other = len(found[1].replicas) > 1 and _is_other_disk(before, folders, found[1], broker_id)
        (replaced if other else kept).append(found)
    lost = -1 if clean else broker_id
    records = elect(electorate, kept, without=broker_id, lost=lost)
    return records + elect(
        electorate, replaced, without=broker_id, lost=broker_id, replaced=broker_id
    )


def _is_other_disk(
    before: BrokerImage | None, folders: Sequence[bytes], partition: PartitionImage, broker_id: int
) -> bool:
    """True if a replica lay in another directory than these; if that is unknown, if one of them is
    new."""
    where = directory(partition, broker_id)
    if is_assigned(where):
        return where not in folders
    return before is None or not set(folders) <= set(before.log_dirs)


def elect(
    electorate: EligibleLeaders,
    found: Found,
    *,
    without: int = -1,
    lost: int = -1,
    replaced: int = -1,
) -> list[Record]:
    """Records of these partitions when the broker `without` leaves their ISR. lost: that it is not
    eligible either. replaced: that it has nothing of what it led last."""
    records: list[Record] = []
    for topic, partition in found:
        change = PartitionChange(electorate, topic, partition)
        change.isr = [one for one in partition.isr if one != without]
        change.lost = lost
        change.replaced = replaced
        if electorate.unclean(topic):
            change.election = UNCLEAN
        record = change.record()
        if record is not None:
            records.append(record)
    return records


def _folders(situation: Situation, broker: BrokerImage, asked: Heartbeat) -> list[Record]:
    """Returns the records for log directories that went offline (KIP-858) or are cordoned."""
    if not asked.offline and asked.cordoned is None:
        return []
    records: list[Record] = []
    failed = [one for one in broker.log_dirs if one in asked.offline]
    for folder in failed:
        electorate = EligibleLeaders(situation, without=broker.broker_id)
        gone = [
            (topic, partition)
            for topic, partition in partitions_of(situation.image, broker.broker_id)
            if (broker.broker_id, folder)
            in zip(partition.replicas, partition.directories, strict=False)
        ]
        records += elect(electorate, gone, without=broker.broker_id)
    if failed:
        left = tuple(one for one in broker.log_dirs if one not in failed)
        records.append(
            kraft.BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=left
            )
        )
    cordoned = broker.cordoned_log_dirs or ()
    told = cordoned if asked.cordoned is None else asked.cordoned
    if set(told) != set(cordoned) and situation.image.metadata_version >= CORDONED:
        records.append(
            kraft.BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id,
                broker_epoch=broker.epoch,
                cordoned_log_dirs=tuple(told),
            )
        )
    return records
