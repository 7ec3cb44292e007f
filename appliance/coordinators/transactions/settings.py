"""The broker settings that a transaction coordinator looks at."""

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Settings:
    """Times in ms; defaults are Kafka's. partitions: of `__transaction_state` as it was created."""

    partitions: int = 50
    max_timeout_ms: int = 900_000
    expiration_ms: int = 604_800_000
