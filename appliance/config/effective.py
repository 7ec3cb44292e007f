"""The settings of one topic in force: its own, over the dynamic ones of the broker, over the file,
over the defaults."""

from collections.abc import Mapping
from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.config.setting import Value
from appliance.config.topic_settings import BROKER_SYNONYM, BROKER_TOPIC_DEFAULTS, TOPIC

_FIELDS: Final = {
    "compact": "",
    "delete": "",
} | {name.replace(".", "_"): name for name in TOPIC}


def topic_value(
    name: str,
    overrides: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    dynamic_default: Mapping[str, str],
    config: BrokerConfig,
) -> Value:
    """The value in force of topic setting `name`. The mappings hold texts that were checked when
    they were set."""
    setting = TOPIC[name]
    if name in overrides:
        return setting.parse(overrides[name])
    broker_name = BROKER_SYNONYM.get(name)
    if broker_name is None:
        return setting.default
    for texts in (dynamic_broker, dynamic_default):
        if broker_name in texts:
            return BROKER_TOPIC_DEFAULTS[broker_name].parse(texts[broker_name])
    value = config.get_value(broker_name)
    return setting.default if value is None else value


def log_config(
    overrides: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    dynamic_default: Mapping[str, str],
    config: BrokerConfig,
) -> LogConfig:
    """Returns the effective LogConfig of a topic."""

    def value(name: str) -> Value:
        return topic_value(name, overrides, dynamic_broker, dynamic_default, config)

    policy = value("cleanup.policy")
    assert isinstance(policy, tuple)
    fields: dict[str, Value] = {}
    for field in LogConfig.__dataclass_fields__:
        if field == "compact":
            fields[field] = "compact" in policy
        elif field == "delete":
            fields[field] = "delete" in policy
        else:
            fields[field] = value(_FIELDS[field])
    return LogConfig(**fields)  # type: ignore[arg-type]
