"""Effective settings of groups (KIP-848): the group's own value, else the broker's for all groups.
Also the DescribeConfigs entries of loggers and client metrics.

Callers: the controller's checks and DescribeConfigs. The coordinators read the group's own values
from the image themselves.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from appliance.base import errors
from appliance.base.errors import ConfigError, PeerError
from appliance.config.broker import BrokerConfig
from appliance.config.metrics_settings import CLIENT_METRICS as CLIENT_METRICS_SETTINGS
from appliance.config.own_group_settings import GROUP as GROUP_SETTINGS
from appliance.config.own_group_settings import Override
from appliance.config.setting import Setting, shown
from appliance.metadata.effective import (
    DEFAULT,
    Explained,
    Synonym,
    broker_config,
    explain_broker_setting,
)
from appliance.metadata.image import CLIENT_METRICS, GROUP, MetadataImage

DYNAMIC_LOGGER: Final = 6
DYNAMIC_METRICS: Final = 7
DYNAMIC_GROUP: Final = 8

_SELECTORS: Final = (
    "client_instance_id", "client_id", "client_software_name", "client_software_version",
    "client_source_address", "client_source_port",
)  # fmt: skip
"""What a subscription may choose clients by (KIP-714)."""

_HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
_SESSION: Final = "consumer.session.timeout.ms"
_RESET: Final = "share.auto.offset.reset"
_WHOLE: Final = r"([-+]?\d{1,19})"
_DURATION: Final = re.compile(
    rf"([-+]?)P(?=.*\d)(?:{_WHOLE}D)?"
    rf"(?:T(?=.)(?:{_WHOLE}H)?(?:{_WHOLE}M)?(?:{_WHOLE}(?:[.,](\d{{0,9}}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_POSSIBLE_NS: Final = range((1 << 63) * 10**9)


def check_group(
    image: MetadataImage, config: BrokerConfig, new: Mapping[str, str], touched: Sequence[str]
) -> None:
    """Checks the changed settings of a group, alone and together. Raises ConfigError."""
    broker = broker_config(image, config)
    for key in touched:
        if key in new:
            _check_bounds(GROUP_SETTINGS[key], new[key], broker)
    heartbeat = _in_force(_HEARTBEAT, new, broker)
    session = _in_force(_SESSION, new, broker)
    if heartbeat >= session:
        raise ConfigError(
            f"{_HEARTBEAT} ({heartbeat}) must be less than {_SESSION} ({session});"
            " make the first smaller or the second larger"
        )


def _check_bounds(override: Override, text: str, broker: BrokerConfig) -> None:
    value = override.setting.parse(text)
    name = override.setting.name
    if name == _RESET:
        _check_reset(text.strip())
    if not isinstance(value, int):
        return
    if override.lowest and value < broker.int(override.lowest):
        raise ConfigError(
            f"{name} must be greater than or equal to {override.lowest}"
            f" ({broker.int(override.lowest)})"
        )
    if override.highest and value > broker.int(override.highest):
        raise ConfigError(
            f"{name} must be less than or equal to {override.highest}"
            f" ({broker.int(override.highest)})"
        )


def _check_reset(text: str) -> None:
    """Where a share group begins. A duration is one of ISO 8601 in days and less, not negative, as
    Java's Duration reads it."""
    if text in ("earliest", "latest"):
        return
    kind, _, duration = text.partition(":")
    found = _DURATION.fullmatch(duration)
    if kind != "by_duration" or found is None or _nanoseconds(found) not in _POSSIBLE_NS:
        raise ConfigError(
            f"Invalid value {text[:100]} for configuration {_RESET}: Invalid value `{text[:100]}`"
            f" for configuration {_RESET}. The value must be either 'earliest', 'latest' or of the"
            " format 'by_duration:<PnDTnHnMn.nS>'."
        )


def _nanoseconds(duration: re.Match[str]) -> int:
    sign, *parts, second, fraction = duration.groups(default="")
    total = sum(
        int(part or 0) * seconds for part, seconds in zip(parts, (86_400, 3600, 60), strict=True)
    )
    below = int((fraction or "0").ljust(9, "0"))
    total = (total + int(second or 0)) * 10**9 + (-below if second[:1] == "-" else below)
    return -total if sign == "-" else total


def _in_force(name: str, own: Mapping[str, str], broker: BrokerConfig) -> int:
    if name in own:
        return int(own[name])
    return broker.int(GROUP_SETTINGS[name].behind)


def check_client_metrics(new: Mapping[str, str], touched: Sequence[str]) -> None:
    """Checks the changed settings of a client metrics subscription. Raises ConfigError, or
    PeerError for a pattern that cannot be one."""
    for key in touched:
        setting, text = CLIENT_METRICS_SETTINGS[key], new.get(key)
        if text is None:
            continue
        try:
            setting.parse(text)
        except ConfigError as cause:
            low, high = setting.low, setting.high
            raise ConfigError(
                f"Invalid value {text[:100]} for {key}, interval must be between {low} and {high}"
                " (1 hour)"
            ) from cause
        if key == "match":
            _check_patterns(text)


def _check_patterns(text: str) -> None:
    for pattern in text.split(","):
        name, _, value = pattern.strip().partition("=")
        if pattern.strip() and (name not in _SELECTORS or not _is_expression(value)):
            raise PeerError(
                errors.INVALID_CONFIG,
                f"Illegal client matching pattern: {pattern.strip()[:200]}."
                f" It is NAME=EXPRESSION with a name out of {', '.join(_SELECTORS)}.",
            )


def _is_expression(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return bool(text)


def explain_group(image: MetadataImage, config: BrokerConfig, group: str) -> list[Explained]:
    """Every setting of a group, by name; a group that does not exist has the defaults."""
    own = image.config(GROUP, group)
    return [_group_setting(image, config, GROUP_SETTINGS[name], own) for name in GROUP_SETTINGS]


def _group_setting(
    image: MetadataImage, config: BrokerConfig, override: Override, own: Mapping[str, str]
) -> Explained:
    setting = override.setting
    places: list[Synonym] = []
    if setting.name in own:
        places.append((setting.name, own[setting.name], DYNAMIC_GROUP))
    if override.behind:
        places += explain_broker_setting(image, config, override.behind).synonyms
    else:
        places.append((setting.name, shown(setting.default), DEFAULT))
    return _explained(setting, places)


def explain_client_metrics(image: MetadataImage, name: str) -> list[Explained]:
    """Every setting of a subscription; one that does not exist has the defaults."""
    own = image.config(CLIENT_METRICS, name)
    rows = []
    for setting in CLIENT_METRICS_SETTINGS.values():
        places: list[Synonym] = []
        if setting.name in own:
            places.append((setting.name, own[setting.name], DYNAMIC_METRICS))
        rows.append(_explained(setting, places))
    return rows


def explain_loggers(levels: Mapping[str, str]) -> list[Explained]:
    """Every logger with its level."""
    return [
        Explained(
            name=name,
            value=level,
            source=DYNAMIC_LOGGER,
            read_only=False,
            sensitive=False,
            type=0,
            doc="",
            synonyms=(),
        )
        for name, level in levels.items()
    ]


def _explained(setting: Setting, places: list[Synonym]) -> Explained:
    return Explained(
        name=setting.name,
        value=places[0][1] if places else shown(setting.default),
        source=places[0][2] if places else DEFAULT,
        read_only=False,
        sensitive=setting.sensitive,
        type=setting.type,
        doc=setting.doc + (f" Has no effect here: {setting.inert}." if setting.inert else ""),
        synonyms=tuple(places),
    )
