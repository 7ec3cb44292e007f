"""Cluster defaults after the first node joins: the replication factor of new topics, and eligible
leader replicas (KIP-966), which a single appliance does not need.

Kafka's own requests (IncrementalAlterConfigs of the default of all brokers, UpdateFeatures).
"""

from typing import Final

from console.model.asking.configs import BROKER, CLUSTER, SET, change, values_of
from console.model.asking.link import Link
from console.model.cluster import features

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


def set_defaults(link: Link, settings: dict[str, str]) -> None:
    """Set them for all nodes. Raises Failure."""
    change(link, CLUSTER, {key: (SET, value) for key, value in settings.items()}, dry_run=False)


def keeps_eligible(link: Link, factor: int) -> bool:
    """True if eligible leader replicas are kept, or there are too few replicas for any. Raises
    Failure.
    """
    return factor < _KEPT_BY or features.level(link, features.ELR) > 0
