"""What a cluster that has grown lacks beside replicas: new topics get so many as the others have,
and eligible leader replicas are kept (KIP-966), which one appliance alone has no use for.

Kafka's own requests (IncrementalAlterConfigs of the default of all brokers, UpdateFeatures).
"""

from typing import Final

from console.model import features
from console.model.configs import BROKER, CLUSTER, SET, change, values_of
from console.model.link import Link

_FACTOR: Final = "default.replication.factor"
_LEAST: Final = "min.insync.replicas"
_KEPT_BY: Final = 3
"""From so many replicas on one may be away while acknowledged records are on two nodes."""


def missing(link: Link, factor: int) -> dict[str, str]:
    """Settings for all nodes by which new topics have so many replicas, as far as nobody has set
    them for all nodes. Raises Failure."""
    wanted = {_FACTOR: str(factor)}
    if factor >= _KEPT_BY:
        wanted[_LEAST] = str(factor - 1)
    there = values_of(link, BROKER, ("",), tuple(wanted)).get("", {})
    return {key: value for key, value in wanted.items() if there.get(key) is None}


def keep(link: Link, settings: dict[str, str]) -> None:
    """Set them for all nodes. Raises Failure."""
    change(link, CLUSTER, {key: (SET, value) for key, value in settings.items()}, dry_run=False)


def keeps_eligible(link: Link, factor: int) -> bool:
    """Whether who left the ISR below min.insync.replicas may lead; without so many replicas there
    is nobody to. Raises Failure."""
    return factor < _KEPT_BY or features.level(link, features.ELR) > 0
