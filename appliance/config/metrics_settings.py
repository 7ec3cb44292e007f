"""The settings of a subscription to the metrics of clients (KIP-714), resource CLIENT_METRICS."""

from typing import Final

from appliance.config.setting import INT, LIST, Setting

CLIENT_METRICS: Final = {
    setting.name: setting
    for setting in (
        Setting("interval.ms", INT, 300_000, "Interval between two pushes of a client's metrics, in ms; the shortest of several subscriptions, at most 300000.", low=100, high=3_600_000),
        Setting("match", LIST, (), "Clients that push, by expressions such as client_id=loader-.*; none: all clients."),
        Setting("metrics", LIST, (), "Prefixes of the metrics to push; * is all."),
    )
}  # fmt: skip
"""By name."""
