"""Constraints of eligible leader replicas (KIP-966) on settings: min.insync.replicas is the same on
every broker, because else one broker commits what another may lose.

Invariant: while they are kept, the cluster has a value of its own and no broker has; whenever a
value changes, what was eligible under the one before is forgotten.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.broker import BrokerConfig
from appliance.controller.decision import Record
from appliance.controller.electorate import ELR_FEATURE
from appliance.metadata.image import BROKER, TOPIC, MetadataImage
from appliance.wire import kraft_records as kraft

MIN_ISR: Final = "min.insync.replicas"


def check_setting(image: MetadataImage, broker: str, key: str, value: str | None) -> None:
    """A setting of a broker, or of all for the empty name. Raises PeerError(INVALID_CONFIG)."""
    if key != MIN_ISR or not kept(image):
        return
    if broker:
        raise PeerError(
            errors.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )
    if value is None:
        raise PeerError(
            errors.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )


def cleared(image: MetadataImage, records: Sequence[Record]) -> list[Record]:
    """Returns the records that clear eligible leader replicas after these changes of settings."""
    if not kept(image):
        return []
    return [
        kraft.ClearElrRecord(topic_name=one.resource_name if one.resource_type == TOPIC else "")
        for one in records
        if isinstance(one, kraft.ConfigRecord) and one.name == MIN_ISR
    ]


def settings_to_begin(
    configs: Mapping[tuple[int, str], Mapping[str, str]], config: BrokerConfig
) -> list[Record]:
    """Returns the records that switch eligible leader replicas on. configs: what was set before.
    config: of the controller."""
    records: list[Record] = []
    if MIN_ISR not in configs.get((BROKER, ""), {}):
        value = str(config.int(MIN_ISR))
        records.append(_record("", value))
    return records + [
        _record(name, None)
        for (kind, name), settings in configs.items()
        if kind == BROKER and name and MIN_ISR in settings
    ]


def kept(image: MetadataImage) -> bool:
    """True if the cluster tracks eligible leader replicas."""
    return image.features.get(ELR_FEATURE, 0) > 0


def _record(broker: str, value: str | None) -> kraft.ConfigRecord:
    return kraft.ConfigRecord(resource_type=BROKER, resource_name=broker, name=MIN_ISR, value=value)
