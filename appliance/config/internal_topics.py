"""The topics that the appliance keeps for itself, and the settings that say how they are created.

A declaration per kind of coordinator. Callers: the controller, which creates and guards them, and
`coordinators`, which keep their records in them.
"""

from collections.abc import Mapping
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC


@dataclass(slots=True, frozen=True)
class InternalTopic:
    """unit: what lives in one of its partitions by its name and their number. keeps: what of it
    would be lost with another number of them.

    partitions, replication_factor: the names of settings. settings: the names of those that configs
    of the topic are made from, by config. configs: what it is created with besides.
    """

    name: str
    unit: str
    keeps: str
    partitions: str
    replication_factor: str
    settings: Mapping[str, str]
    configs: Mapping[str, str]


OFFSETS: Final = InternalTopic(
    OFFSETS_TOPIC,
    unit="group",
    keeps="committed offsets",
    partitions="offsets.topic.num.partitions",
    replication_factor="offsets.topic.replication.factor",
    settings={"segment.bytes": "offsets.topic.segment.bytes"},
    configs={"cleanup.policy": "compact", "compression.type": "producer"},
)

TRANSACTIONS: Final = InternalTopic(
    TRANSACTIONS_TOPIC,
    unit="transaction",
    keeps="transactional ids and whether their transactions were committed",
    partitions="transaction.state.log.num.partitions",
    replication_factor="transaction.state.log.replication.factor",
    settings={
        "min.insync.replicas": "transaction.state.log.min.isr",
        "segment.bytes": "transaction.state.log.segment.bytes",
    },
    configs={
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
    },
)

DECLARED: Final = {topic.name: topic for topic in (OFFSETS, TRANSACTIONS)}
"""By name: those that somebody serves."""

assert DECLARED.keys() <= INTERNAL_TOPICS, "clients may not write to what coordinators keep"
