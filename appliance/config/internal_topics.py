"""The topics that the appliance keeps for itself, and the settings that say how they are created.

A declaration per kind of coordinator. Callers: the controller, which creates and guards them, and
`coordinators`, which keep their records in them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC


@dataclass(slots=True, frozen=True)
class InternalTopic:
    """unit: what lives in one of its partitions by its name and their number. keeps: what of it
    would be lost with another number of them.

    partitions, replication_factor, segment_bytes: the names of settings. configs: what the topic is
    created with beside segment.bytes.
    """

    name: str
    unit: str
    keeps: str
    partitions: str
    replication_factor: str
    segment_bytes: str
    configs: Mapping[str, str]


OFFSETS: Final = InternalTopic(
    OFFSETS_TOPIC,
    unit="group",
    keeps="committed offsets",
    partitions="offsets.topic.num.partitions",
    replication_factor="offsets.topic.replication.factor",
    segment_bytes="offsets.topic.segment.bytes",
    configs={"cleanup.policy": "compact", "compression.type": "producer"},
)

DECLARED: Final = {topic.name: topic for topic in (OFFSETS,)}
"""By name: those that somebody serves."""

assert DECLARED.keys() <= INTERNAL_TOPICS, "clients may not write to what coordinators keep"
