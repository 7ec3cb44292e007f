"""The broker settings that a transaction coordinator looks at, read once and typed."""

from appliance.base.dataclass import dataclass
from appliance.config.broker import BrokerConfig


@dataclass(slots=True, frozen=True)
class TransactionSettings:
    """Times in ms; defaults are Kafka's. partitions: of `__transaction_state` as it was created."""

    partitions: int = 50
    max_timeout_ms: int = 900_000
    expiration_ms: int = 604_800_000


def from_config(config: BrokerConfig, partitions: int) -> TransactionSettings:
    """partitions: how many `__transaction_state` has (the setting counts at its creation only)."""
    return TransactionSettings(
        partitions=partitions,
        max_timeout_ms=config.int("transaction.max.timeout.ms"),
        expiration_ms=config.int("transactional.id.expiration.ms"),
    )
