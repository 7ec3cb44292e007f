"""The broker settings that coordinators look at, read once and typed."""

from dataclasses import dataclass

from appliance.config.broker import BrokerConfig


@dataclass(slots=True, frozen=True)
class Settings:
    """Times in ms, sizes in bytes; defaults are the appliance's."""

    partitions: int = 50  # offsets.topic.num.partitions, of the topic as it was created
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    max_size: int = (1 << 31) - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000


def from_config(config: BrokerConfig, partitions: int) -> Settings:
    """partitions: how many `__consumer_offsets` has (the setting counts at its creation only)."""
    return Settings(
        partitions=partitions,
        min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        max_size=config.int("group.max.size"),
        offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
        offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
    )
