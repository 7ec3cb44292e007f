"""The settings of one topic's logs as plain values, resolved once and read on every append."""

from typing import Final

from appliance.base.dataclass import dataclass

NEVER: Final = (1 << 63) - 1


@dataclass(slots=True, frozen=True)
class LogConfig:
    """Sizes in bytes, times in ms; -1 stands for no limit where Kafka says so. Defaults are
    Kafka's."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4096
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    flush_policy: str = "auto"
    """When a node has what it was told to append, for acks=all and so that readers see it: "group"
    after a sync that covers it, "os" after the write, "auto" after a sync unless
    min.insync.replicas asks for several nodes."""
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = NEVER
    message_timestamp_after_max_ms: int = 3_600_000
    compact: bool = False
    delete: bool = True
    compression_type: str = "producer"
    min_insync_replicas: int = 1
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    min_cleanable_dirty_ratio: float = 0.5
    unclean_leader_election_enable: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
