"""`ssl.cipher.suites`: Java's names, which are IANA's, as OpenSSL has them.

Python's ssl chooses among the suites of TLS 1.2 only: of TLS 1.3 all three stay on, or none where
none is named, and then TLS 1.3 is not spoken, as in Apache Kafka.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from appliance.base.errors import ConfigError

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
VERSIONS: Final = (TLS_1_2, TLS_1_3)

_OF_1_3: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
)
_OF_1_2: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
}
"""Those of DHE are not among them: Python's ssl gives a server no parameters for it by itself."""
KNOWN: Final = (*_OF_1_3, *_OF_1_2)


class Chosen(NamedTuple):
    """versions: that are spoken, oldest first. suites: for TLS 1.2 as OpenSSL takes them, "" for
    its own choice. warning: what is not as it was said, or ""."""

    versions: tuple[str, ...]
    suites: str
    warning: str


def choose(
    enabled: Sequence[str], named: Sequence[str], enabled_key: str, named_key: str
) -> Chosen:
    """Chooses from ssl.enabled.protocols and ssl.cipher.suites, with the keys that set them. Raises
    ConfigError."""
    for one in enabled:
        if one not in VERSIONS:
            raise ConfigError(
                f"Invalid value {one[:40]} for configuration {enabled_key}: TLSv1.2 and TLSv1.3 are"
                " served, older ones are broken (RFC 8996)"
            )
    versions = tuple(one for one in VERSIONS if one in enabled)
    if not versions:
        raise ConfigError(f"{enabled_key}: it names no version; TLSv1.2 and TLSv1.3 are served")
    if not named:
        return Chosen(versions, "", "")
    for one in named:
        if one not in KNOWN:
            raise ConfigError(
                f"Invalid value {one[:80]} for configuration {named_key}: String must be one of:"
                f" {', '.join(KNOWN)}"
            )
    newer = [one for one in named if one in _OF_1_3]
    older = [_OF_1_2[one] for one in named if one in _OF_1_2]
    spoken = tuple(one for one in versions if (newer if one == TLS_1_3 else older))
    if not spoken:
        raise ConfigError(
            f"{named_key}: no suite in it is one of {', '.join(versions)} ({enabled_key}), so that"
            " nobody could connect"
        )
    missing = [one for one in _OF_1_3 if one not in newer]
    warning = ""
    if TLS_1_3 in spoken and missing:
        warning = f"{named_key}: of TLSv1.3 all suites stay on, {', '.join(missing)} too"
    return Chosen(spoken, ":".join(older) if TLS_1_2 in spoken else "", warning)
