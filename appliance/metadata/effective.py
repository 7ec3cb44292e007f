"""Effective values of settings, and their source: a topic's override, else the broker's dynamic
value, else the dynamic default of all brokers, else the file, else the built-in default (KIP-226).

Values in the image are text that was valid when it was set. Callers: the controller's checks,
DescribeConfigs, and the I/O processes, which ask for a topic's LogConfig.
"""

import re
from collections.abc import Mapping
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.errors import ConfigError
from appliance.config import effective as config_effective
from appliance.config import tiering_checks
from appliance.config.broker import BrokerConfig
from appliance.config.broker_settings import BROKER as BROKER_SETTINGS
from appliance.config.listener_settings import setting_of, split
from appliance.config.log_config import LogConfig
from appliance.config.metrics_settings import CLIENT_METRICS as CLIENT_METRICS_SETTINGS
from appliance.config.own_group_settings import GROUP as GROUP_SETTINGS
from appliance.config.setting import PER_BROKER, READ_ONLY, STRING, Setting, shown
from appliance.config.topic_settings import BROKER_SYNONYM
from appliance.config.topic_settings import TOPIC as TOPIC_SETTINGS
from appliance.metadata.image import BROKER, CLIENT_METRICS, GROUP, TOPIC, MetadataImage

# Sources as DescribeConfigs numbers them.
TOPIC_OVERRIDE: Final = 1
DYNAMIC_BROKER: Final = 2
DYNAMIC_DEFAULT: Final = 3
STATIC: Final = 4
DEFAULT: Final = 5

Synonym = tuple[str, str | None, int]
"""(name, value, source) of one place where a setting has a value."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Explained:
    """A setting, its value in effect, where that comes from, and every place that has a value."""

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    type: int
    doc: str
    synonyms: tuple[Synonym, ...]


_PER_LISTENER: Final = re.compile(
    r"ssl\.(key\.password|keystore\.(type|location|password|key|certificate\.chain)"
    r"|truststore\.(type|location|password|certificates))|penstock\.ssl\.key\.location"
)
"""Settings of stores, which belong to a listener while the broker runs."""

_THREADS: Final = frozenset((
    "background.threads", "log.cleaner.threads", "num.io.threads", "num.network.threads",
    "num.recovery.threads.per.data.dir", "num.replica.fetchers", "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
))  # fmt: skip
"""Numbers of threads that Kafka at most halves or doubles in one step while it runs."""

_TABLES: Final = {
    TOPIC: TOPIC_SETTINGS,
    CLIENT_METRICS: CLIENT_METRICS_SETTINGS,
}


def definition(resource_type: int, key: str) -> Setting | None:
    """The declaration of a setting, None when there is no such setting."""
    if resource_type == GROUP:
        override = GROUP_SETTINGS.get(key)
        return override and override.setting
    return setting_of(key) if resource_type == BROKER else _TABLES[resource_type].get(key)


# In effect ---------------------------------------------------------------------------------------


def log_config(image: MetadataImage, config: BrokerConfig, topic: str) -> LogConfig:
    """Returns the effective LogConfig of a topic. Cheap enough for each change, not for each
    request."""
    return _log_config(image, config, image.config(TOPIC, topic))


def _log_config(
    image: MetadataImage, config: BrokerConfig, overrides: Mapping[str, str]
) -> LogConfig:
    return config_effective.log_config(
        _valid(TOPIC, overrides),
        _valid(BROKER, image.config(BROKER, str(config.int("node.id")))),
        _valid(BROKER, image.config(BROKER, "")),
        config,
    )


def _valid(resource_type: int, texts: Mapping[str, str]) -> dict[str, str]:
    """Those that we know and could have set ourselves: another broker may have had other ranges."""
    valid = {}
    for key, text in texts.items():
        setting = definition(resource_type, key)
        try:
            if setting is not None:
                setting.parse(text)
                valid[key] = text
        except ConfigError:
            continue
    return valid


def inherited(image: MetadataImage, config: BrokerConfig, resource_type: int, key: str) -> str:
    """The text of a setting as it is without a value of its own at the resource."""
    explain = _topic_setting if resource_type == TOPIC else _broker_setting
    return explain(image, config, key, {}).value or ""


def broker_config(
    image: MetadataImage, config: BrokerConfig, own: Mapping[str, str] | None = None
) -> BrokerConfig:
    """The broker's settings with those that were set while it runs on top. own: its own ones of
    these, as they would be."""
    if own is None:
        own = image.config(BROKER, str(config.int("node.id")))
    texts = {**_valid(BROKER, image.config(BROKER, "")), **_valid(BROKER, own)}
    return config.over(texts)


# Checks ------------------------------------------------------------------------------------------


def check_topic_setting(key: str, value: str | None) -> None:
    """A topic's setting and its new text, None to unset it. Raises ConfigError."""
    if value is None:
        return
    setting = TOPIC_SETTINGS.get(key)
    if setting is None:
        raise ConfigError(f"Unknown topic config name: {key[:100]}{_meant(key, TOPIC_SETTINGS)}")
    setting.parse(value)


def check_topic(
    image: MetadataImage,
    config: BrokerConfig,
    overrides: Mapping[str, str],
    old: Mapping[str, str],
) -> None:
    """Checks that a topic's settings fit together. old: those that it has. Raises ConfigError."""
    rules = _log_config(image, config, overrides)
    if rules.min_compaction_lag_ms > rules.max_compaction_lag_ms:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({rules.min_compaction_lag_ms})"
            f" > max.compaction.lag.ms ({rules.max_compaction_lag_ms}); make the first the smaller"
        )
    was_tiered = old.get("remote.storage.enable", "").strip().lower() == "true"
    enabled = config.bool(tiering_checks.ENABLED)
    tiering_checks.check_tiered_topic(rules, was_tiered, enabled, len(image.brokers))


def check_broker_setting(
    image: MetadataImage, config: BrokerConfig, key: str, value: str, *, per_broker: bool
) -> None:
    """A broker's setting and its new text, for the broker or for all. Raises ConfigError."""
    setting = definition(BROKER, key)
    assert setting is not None, f"{key} was not asked of why_not_dynamic"
    wanted = setting.parse(value)
    own = image.config(BROKER, str(config.int("node.id")))
    if key in _THREADS and (per_broker or key not in own):
        assert isinstance(wanted, int), f"{key} is not a number"
        _check_threads(key, wanted, broker_config(image, config).int(key))


def _check_threads(key: str, wanted: int, current: int) -> None:
    """A running broker takes steps: half as many threads, or twice as many."""
    cleaners = key == "log.cleaner.threads"
    if cleaners and wanted < 1:
        raise ConfigError("Log cleaner threads should be at least 1")
    if current // 2 <= wanted <= current * 2:
        return
    less = wanted < current
    if cleaners:
        change = "reduced to less than half" if less else "increased to more than double"
        refused = f"Log cleaner threads cannot be {change} the current value {current}"
    else:
        bound = "be at least half" if less else "not be greater than double"
        refused = (
            f"Dynamic thread count update validation failed for {key}={wanted}, value should"
            f" {bound} the current value {current}"
        )
    raise ConfigError(f"{refused}; get there in steps, or set it in the settings file")


def why_not_dynamic(key: str, *, per_broker: bool) -> str:
    """Why the broker setting cannot be changed here while the broker runs; "" when it can."""
    setting = definition(BROKER, key)
    if setting is None:
        return f"Unknown broker config name: {key[:100]}{_meant(key, BROKER_SETTINGS)}"
    if setting.mode == READ_ONLY:
        return (
            f"Cannot update these configs dynamically: [{key}]."
            " Set it in the configuration file and restart."
        )
    if _PER_LISTENER.fullmatch(key):
        return (
            "These security configs can be dynamically updated only per-listener using the listener"
            f" prefix: [{key}]"
        )
    if setting.mode == PER_BROKER and not per_broker:
        return (
            "Cannot update these configs at default cluster level, broker id must be specified:"
            f" [{key}]"
        )
    return ""


# Explained ---------------------------------------------------------------------------------------


def explain_topic(
    image: MetadataImage, config: BrokerConfig, overrides: Mapping[str, str]
) -> list[Explained]:
    """Every setting of a topic with these overrides, by name."""
    names = sorted({**TOPIC_SETTINGS, **overrides})
    return [_topic_setting(image, config, name, overrides) for name in names]


def explain_broker(image: MetadataImage, config: BrokerConfig, node_id: int) -> list[Explained]:
    """Every setting of this broker, by name."""
    dynamic = image.config(BROKER, str(node_id))
    set_here = dict.fromkeys(config.set_names())  # those of single listeners among them
    names = sorted({**BROKER_SETTINGS, **set_here, **dynamic, **image.config(BROKER, "")})
    return [_broker_setting(image, config, name, dynamic) for name in names]


def explain_broker_setting(image: MetadataImage, config: BrokerConfig, name: str) -> Explained:
    """One setting of this broker."""
    return _broker_setting(image, config, name, image.config(BROKER, str(config.int("node.id"))))


def explain_cluster_default(image: MetadataImage) -> list[Explained]:
    """Returns the dynamic defaults of all brokers, by name."""
    return [
        _explained(key, _setting_or_stranger(BROKER, key), ((key, value, DYNAMIC_DEFAULT),))
        for key, value in sorted(image.config(BROKER, "").items())
    ]


def _topic_setting(
    image: MetadataImage, config: BrokerConfig, name: str, overrides: Mapping[str, str]
) -> Explained:
    setting = _setting_or_stranger(TOPIC, name)
    places: list[Synonym] = []
    if name in overrides:
        places.append((name, overrides[name], TOPIC_OVERRIDE))
    broker_name = BROKER_SYNONYM.get(name)
    if broker_name is None:
        value = overrides.get(name, shown(setting.default))
        return _explained(name, setting, tuple(places), read_only=False, value=value)
    behind = explain_broker_setting(image, config, broker_name)
    places += behind.synonyms
    inherited_value = shown(setting.default) if behind.value is None else behind.value
    value = overrides.get(name, inherited_value)
    return _explained(name, setting, tuple(places), read_only=False, value=value)


def _broker_setting(
    image: MetadataImage, config: BrokerConfig, name: str, dynamic: Mapping[str, str]
) -> Explained:
    setting = _setting_or_stranger(BROKER, name)
    parts = split(name)
    named = (name,) if parts is None else (name, parts[1])  # of all listeners where one has none
    places: list[Synonym] = []
    for source, texts in ((DYNAMIC_BROKER, dynamic), (DYNAMIC_DEFAULT, image.config(BROKER, ""))):
        places += [(one, texts[one], source) for one in named if one in texts]
    value = places[0][1] if places else None
    if named[-1] in BROKER_SETTINGS:
        for one in (*named, *(synonym for synonym, _ in setting.synonyms)):
            entry = config.entry(one)
            if entry is not None:
                places.append((one, entry.text, STATIC))
        last = setting.synonyms[-1][0] if setting.synonyms else named[-1]
        default = shown(config.default(last))
        if default is not None:
            places.append((last, default, DEFAULT))
        if value is None and parts is None:
            value = shown(config.get_value(name))
    # Of one listener they may be changed all the same; Apache Kafka calls them read-only.
    read_only = True if parts is not None else None
    return _explained(name, setting, tuple(places), read_only=read_only, value=value)


def _setting_or_stranger(resource_type: int, name: str) -> Setting:
    """The declaration; for a setting that another broker left behind, one that says so."""
    found = definition(resource_type, name)
    return found or Setting(name, STRING, None, "Not a setting of this broker; it has no effect.")


def _meant(key: str, settings: Mapping[str, Setting]) -> str:
    from difflib import get_close_matches  # rarely needed

    near = get_close_matches(key, settings, 1, 0.8)
    return f"; did you mean {near[0]}?" if near else ""


def _read_only(setting: Setting) -> bool:
    return setting.mode == READ_ONLY


def _explained(
    name: str,
    setting: Setting,
    places: tuple[Synonym, ...],
    *,
    read_only: bool | None = None,
    value: str | None = None,
) -> Explained:
    """The first place is the one in effect; `value` is its value where a unit was converted."""
    doc = setting.doc + (f" Has no effect here: {setting.inert}." if setting.inert else "")
    return Explained(
        name=name,
        value=places[0][1] if value is None and places else value,
        source=places[0][2] if places else DEFAULT,
        read_only=_read_only(setting) if read_only is None else read_only,
        sensitive=setting.sensitive,
        type=setting.type,
        doc=doc,
        synonyms=places,
    )
