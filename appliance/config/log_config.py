"""The settings of one topic's logs as plain values, resolved once and read on every append."""

from dataclasses import dataclass


@dataclass(slots=True)
class LogConfig:
    """Sizes in bytes, times in ms. Defaults are Kafka's."""

    max_message_bytes: int = 1048588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = (1 << 63) - 1
    message_timestamp_after_max_ms: int = 3_600_000
    compact: bool = False
    compression_type: str = "producer"
