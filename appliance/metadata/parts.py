"""Parts of a metadata image: topics, partitions, brokers, controllers.

Values only. Replaying a record replaces a part, it never edits one (a topic's list of partitions is
the exception, see `image_state`).
"""

from dataclasses import field
from typing import NamedTuple

from appliance.base.dataclass import dataclass
from appliance.wire.kraft_records import BrokerEndpoint as Endpoint
from appliance.wire.kraft_records import BrokerFeature as Feature

__all__ = [
    "BrokerImage",
    "ControllerImage",
    "Endpoint",
    "Feature",
    "PartitionImage",
    "TopicImage",
]


class PartitionImage(NamedTuple):
    """One partition. leader: -1 when it has none. directories: 16-byte ids, ordered as replicas.

    A tuple: a node that ends changes thousands, and another one is made in a seventh of the time of
    a frozen dataclass."""

    index: int  # type: ignore[assignment]  # nobody asks where in it a value stands
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(slots=True)
class TopicImage:
    """One topic: `partitions[i].index == i`, without holes. owner: what an image that may edit the
    list has, too."""

    name: str
    topic_id: bytes
    partitions: list[PartitionImage] = field(default_factory=list)
    owner: object = field(default=None, compare=False, repr=False)


@dataclass(slots=True, frozen=True, kw_only=True)
class BrokerImage:
    """One registered broker; `features` are the levels that it supports. served_epoch: the newest
    of its epochs in which it was ever unfenced, as far as the records say; else its present one."""

    broker_id: int
    incarnation_id: bytes
    epoch: int
    endpoints: tuple[Endpoint, ...]
    features: tuple[Feature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    served_epoch: int = field(default=-1, compare=False)  # no record has it, no snapshot either


@dataclass(slots=True, frozen=True, kw_only=True)
class ControllerImage:
    """One registered controller; `features` are the levels that it supports."""

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: tuple[Feature, ...] = ()
