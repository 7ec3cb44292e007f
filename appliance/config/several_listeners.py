"""Checks that the listeners of a node can all be open at once.

Called by `load.py` for those of a start, by `kept_listeners.py` for those that are opened later.
"""

from collections.abc import Iterator

from appliance.base.errors import ConfigError
from appliance.config import tls_checks
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import EVERYWHERE


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError for listeners that cannot be opened beside one another."""
    controllers = config.list("controller.listener.names")
    if config.is_broker and not config.endpoints():
        raise ConfigError(
            f"listeners: there are only controller listeners ({', '.join(controllers)}): add one"
            " for clients, for example PLAINTEXT://localhost:9092"
        )
    opened = config.opened()
    tls_checks.check_protocols(config)
    ports: dict[tuple[str, int], str] = {}
    for one in opened:
        at = "" if one.host in EVERYWHERE else one.host.lower()
        other = ports.setdefault((at, one.port), one.name)
        if one.port and other != one.name:
            raise ConfigError(
                f"listeners: {other} and {one.name} are both at {one.host}:{one.port}; each needs"
                " a port of its own"
            )
    names = [endpoint.name for endpoint in opened]
    if len(set(names)) < len(names):
        raise ConfigError("listeners: each listener needs a name of its own")
    yield from ()
