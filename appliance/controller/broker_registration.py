"""Brokers and controllers register: BrokerRegistration (API key 62, versions 0 to 4) and
ControllerRegistration (API key 70).

A broker's epoch is the offset at which its registration begins; whoever has another one is told
STALE_BROKER_EPOCH. It begins fenced. An id belongs to one broker as long as its session lasts,
unless another one has taken its very place: then it is dead.
"""

from collections.abc import Mapping

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.controller.broker_states import gone_before
from appliance.controller.decision import Record, Situation
from appliance.controller.heartbeats import Heartbeats
from appliance.metadata.image import METADATA_VERSION, TOPIC
from appliance.metadata.log_dirs import is_assigned
from appliance.metadata.parts import BrokerImage, ControllerImage, Endpoint, Feature
from appliance.metadata.snapshot import broker_record, controller_record
from appliance.wire.uuids import format_uuid


@dataclass(slots=True, frozen=True, kw_only=True)
class Registering:
    """A BrokerRegistration request. previous_epoch: that of the broker's orderly end before, -1:
    there was none; None: a version below 3, which cannot say so."""

    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: tuple[Feature, ...]
    rack: str | None
    log_dirs: tuple[bytes, ...]
    previous_epoch: int | None = None
    is_migrating_zk_broker: bool = False


def register_broker(
    situation: Situation,
    heartbeats: Heartbeats,
    asked: Registering,
    cluster_id: str,
    now_ms: int,
) -> tuple[list[Record], int]:
    """Records and the broker's epoch. cluster_id: ours. Raises PeerError: INCONSISTENT_CLUSTER_ID,
    DUPLICATE_BROKER_REGISTRATION, INVALID_REGISTRATION, UNSUPPORTED_VERSION,
    BROKER_ID_NOT_REGISTERED."""
    image, broker_id = situation.image, asked.broker_id
    if asked.cluster_id != cluster_id:
        raise PeerError(
            errors.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {asked.cluster_id[:100]}",
        )
    before = image.brokers.get(broker_id)
    same = before is not None and before.incarnation_id == asked.incarnation_id
    other = before is not None and not same and not _in_its_place(before, asked)
    if before and other and heartbeats.has_session(broker_id, before.epoch, now_ms):
        raise PeerError(
            errors.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted"
            " this should self-resolve once the heartbeat manager expires the broker's session.",
        )
    _check(situation, asked)
    next_offset = image.applied_offset + 1
    records: list[Record] = []
    epoch = next_offset
    if before is not None and same:
        epoch = before.epoch
    else:
        clean = _ended_in_order(before, asked)
        records = gone_before(situation, broker_id, asked.log_dirs, clean=clean)
    broker = BrokerImage(
        broker_id=broker_id,
        incarnation_id=asked.incarnation_id,
        epoch=epoch,
        endpoints=asked.endpoints,
        features=asked.features,
        rack=asked.rack,
        fenced=before.fenced if before is not None and same else True,
        in_controlled_shutdown=same and before is not None and before.in_controlled_shutdown,
        log_dirs=asked.log_dirs,
    )
    records.append(broker_record(broker))
    heartbeats.registers(broker_id, epoch, next_offset + len(records) - 1)
    return records, epoch


def _in_its_place(before: BrokerImage, asked: Registering) -> bool:
    """True if the new registration has the endpoints and a directory of the previous one: that
    folder is locked, so both cannot live."""
    same_doors = bool(before.endpoints) and before.endpoints == asked.endpoints
    return same_doors and not set(before.log_dirs).isdisjoint(asked.log_dirs)


def _ended_in_order(before: BrokerImage | None, asked: Registering) -> bool:
    """True if the broker has all that its registrations so far may count on. One in which it was
    never unfenced counts on nothing: it was in no ISR. That it exists may be unknown to the broker,
    which ended before an answer arrived (decision 0110)."""
    named = asked.previous_epoch
    return before is not None and named is not None and before.served_epoch <= named <= before.epoch


def register_controller(controller: ControllerImage) -> list[Record]:
    """The record that says where a controller listens and what it supports."""
    return [controller_record(controller)]


def _check(situation: Situation, asked: Registering) -> None:
    if asked.is_migrating_zk_broker:
        raise PeerError(
            errors.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        )
    wrong = _wrong_folders(situation, asked) or _alone_with_tiers(situation, asked)
    features = {one.name: one for one in asked.features}
    if not wrong and METADATA_VERSION not in features:
        wrong = "Request features do not contain 'metadata.version'"
    if wrong:
        raise PeerError(errors.INVALID_REGISTRATION, wrong)
    _check_features(situation.image.features, features)


def _alone_with_tiers(situation: Situation, asked: Registering) -> str:
    """Why no further node may come, "" when it may: what is known of remote segments lies beside
    the logs of the one that has them."""
    image = situation.image
    if not image.brokers or asked.broker_id in image.brokers:
        return ""
    for topic in image.topics_by_name:
        if image.config(TOPIC, topic).get("remote.storage.enable", "").strip().lower() == "true":
            return (
                f"topic {topic} has remote.storage.enable=true, and tiered storage is for one node"
                " alone; set it to false with remote.log.delete.on.disable=true, or delete the"
                " topic, before another node joins"
            )
    return ""


def _wrong_folders(situation: Situation, asked: Registering) -> str:
    folders = asked.log_dirs
    if not folders:
        return "No directories specified in request"
    if not all(map(is_assigned, folders)):
        return "Reserved directory ID in request"
    if len(set(folders)) != len(folders):
        return "Duplicate directory ID in request"
    for broker in situation.image.brokers.values():
        for folder in folders:
            if broker.broker_id != asked.broker_id and folder in broker.log_dirs:
                text = format_uuid(folder)
                return f"Broker {broker.broker_id} is already registered with directory {text}"
    return ""


def _check_features(finalized: Mapping[str, int], offered: Mapping[str, Feature]) -> None:
    """Checks that the broker supports the finalized features."""
    for name in {**offered, **finalized}:
        level = finalized.get(name, 1 if name == METADATA_VERSION else 0)
        can = offered.get(name)
        low, high = (can.min_supported_version, can.max_supported_version) if can else (0, 0)
        if not low <= level <= high:
            raise PeerError(
                errors.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level}"
                f" of {name}. The broker wants a version between {low} and {high}, inclusive.",
            )
