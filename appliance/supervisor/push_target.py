"""To whom the exporter pushes metrics: the settings, else the environment of this process."""

import os

from appliance.base.errors import ConfigError
from appliance.config import otlp
from appliance.config.broker import BrokerConfig
from appliance.config.otlp import Target
from appliance.shell.log import WARNING, Log


def push_target(config: object, log: Log) -> Target | None:
    """To whom metrics are pushed. What the environment says wrongly was perhaps not meant for
    us."""
    if not isinstance(config, BrokerConfig):
        return None
    try:
        return otlp.target(config, os.environ)
    except ConfigError as cause:
        log.event(WARNING, "otlp-not-usable", cause=str(cause))
        return None
