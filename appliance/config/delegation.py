"""The settings of delegation tokens (KIP-48): the secret key, and how long tokens live."""

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.config.broker import BrokerConfig

SECRET: Final = "delegation.token.secret.key"
MAX_LIFETIME: Final = "delegation.token.max.lifetime.ms"
EXPIRY_TIME: Final = "delegation.token.expiry.time.ms"
CHECK_INTERVAL: Final = "delegation.token.expiry.check.interval.ms"


@dataclass(slots=True, frozen=True)
class TokenLimits:
    """secret: the key of the HMACs. max_lifetime_ms: the longest life of a token with its renewals.
    expiry_ms: its life without a renewal."""

    secret: str = field(repr=False)
    max_lifetime_ms: int
    expiry_ms: int


def read_limits(config: object) -> TokenLimits | None:
    """The settings, None where there is no secret key and so no delegation token."""
    if not isinstance(config, BrokerConfig) or not (secret := config.get_value(SECRET)):
        return None
    return TokenLimits(str(secret), config.int(MAX_LIFETIME), config.int(EXPIRY_TIME))


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings about settings of tokens that have no effect."""
    for key in (MAX_LIFETIME, EXPIRY_TIME, CHECK_INTERVAL):
        if config.entry(key) is not None and read_limits(config) is None:
            yield f"{key} has no effect without {SECRET}: delegation tokens are disabled"
