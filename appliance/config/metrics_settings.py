"""The settings of a subscription to the metrics of clients (KIP-714). Nothing collects them here, so
they are kept and shown, and have no effect."""

from typing import Final

from appliance.config.setting import INT, LIST, Setting

_NOT_COLLECTED: Final = "the metrics of clients are not collected"

CLIENT_METRICS: Final = {
    setting.name: setting
    for setting in (
        Setting("interval.ms", INT, 300_000, "How often clients push their metrics, in ms.", low=100, high=3_600_000, inert=_NOT_COLLECTED),
        Setting("match", LIST, (), "Which clients push: patterns of their properties.", inert=_NOT_COLLECTED),
        Setting("metrics", LIST, (), "Prefixes of the metrics to push; * is all.", inert=_NOT_COLLECTED),
    )
}  # fmt: skip
"""By name."""
