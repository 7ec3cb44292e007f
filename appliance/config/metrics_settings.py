"""The settings of a subscription to the metrics of clients (KIP-714), resource CLIENT_METRICS."""

from typing import Final

from appliance.config.setting import INT, LIST, Setting

CLIENT_METRICS: Final = {
    setting.name: setting
    for setting in (
        Setting("interval.ms", INT, 300_000, "How often clients push their metrics, in ms; of several subscriptions the shortest, and 300000 at most.", low=100, high=3_600_000),
        Setting("match", LIST, (), "Which clients push: expressions for what they are, as client_id=loader-.*; none is all."),
        Setting("metrics", LIST, (), "Prefixes of the metrics to push; * is all."),
    )
}  # fmt: skip
"""By name."""
