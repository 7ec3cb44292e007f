"""The broker settings that coordinators look at, read once and typed."""

from appliance.base.dataclass import dataclass
from appliance.config.broker import BrokerConfig
from appliance.coordinators.groups.assignors import ASSIGNORS


@dataclass(slots=True, frozen=True)
class GroupSettings:
    """Times in ms, sizes in bytes; defaults are the appliance's."""

    partitions: int = 50  # offsets.topic.num.partitions, of the topic as it was created
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    max_size: int = (1 << 31) - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    consumer_protocol: bool = True
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5000
    consumer_max_size: int = (1 << 31) - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "bidirectional"
    regex_max_steps: int = 134_217_728
    max_pending: int = 5000


def from_config(config: BrokerConfig, partitions: int) -> GroupSettings:
    """partitions: how many `__consumer_offsets` has (the setting counts at its creation only)."""
    return GroupSettings(
        partitions=partitions,
        min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        max_size=config.int("group.max.size"),
        offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
        offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
        consumer_protocol="consumer" in config.list("group.coordinator.rebalance.protocols"),
        consumer_session_timeout_ms=config.int("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=config.int("group.consumer.heartbeat.interval.ms"),
        consumer_max_size=config.int("group.consumer.max.size"),
        consumer_assignors=config.list("group.consumer.assignors") or tuple(ASSIGNORS),
        migration_policy=config.text("group.consumer.migration.policy"),
        regex_max_steps=config.int("penstock.group.regex.max.steps"),
        max_pending=config.int("penstock.group.pending.members.max"),
    )
