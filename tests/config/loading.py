"""`load` for tests whose listeners are open to other hosts and that are about something else."""

from appliance.config import load as loading
from appliance.config.open_listeners import ALLOW, SETTING


def load(text, overrides, **more):
    """As `appliance.config.load.load`, with open listeners allowed."""
    return loading.load(text, {SETTING: ALLOW, **overrides}, **more)


def examine(text, overrides):
    """As `appliance.config.load.examine`, with open listeners allowed."""
    return loading.examine(text, {SETTING: ALLOW, **overrides})
