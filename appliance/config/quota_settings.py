"""Settings of quotas: in how many windows of which length the rates of clients are measured."""

from typing import Final

from appliance.config.setting import INT, Setting

QUOTAS: Final = (
    Setting("quota.window.num", INT, 11, "Number of windows over which the rates of clients are measured.", low=1, high=3600),
    Setting("quota.window.size.seconds", INT, 1, "Length of a window in which the rates of clients are measured, in s.", low=1),
    Setting("controller.quota.window.num", INT, 11, "Number of windows for which unused tokens of metadata changes accumulate.", low=1),
    Setting("controller.quota.window.size.seconds", INT, 1, "Length of a window for which unused tokens of metadata changes accumulate, in s.", low=1),
)  # fmt: skip
