"""From files and the command line to a BrokerConfig, with everything worth a warning said once."""

from collections.abc import Iterable, Mapping
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config.broker import COMMAND_LINE, FILE, BrokerConfig, Entry
from appliance.config.broker_settings import BROKER, REMOVED
from appliance.config.properties import parse_properties

_MOST_FOLDERS: Final = 254


def load(
    text: str | None, overrides: Mapping[str, str], *, file_name: str = "the file"
) -> tuple[BrokerConfig, list[str]]:
    """(config, warnings) of a properties text and of `key=value` overrides, which win.

    Raises ConfigError for a value that its setting does not take; an unknown key is only warned
    about.
    """
    warnings: list[str] = []
    entries: dict[str, Entry] = {}
    if text is not None:
        for key, value, line in parse_properties(text):
            _take(entries, warnings, key, value, FILE, f"{file_name}, line {line}")
    for key, value in overrides.items():
        _take(entries, warnings, key, value, COMMAND_LINE, "the command line")
    if "node.id" not in entries and "broker.id" in entries and int(entries["broker.id"].text) >= 0:
        entries["node.id"] = entries["broker.id"]
    config = BrokerConfig(entries)
    _check(config, warnings)
    return config, warnings


def _take(
    entries: dict[str, Entry], warnings: list[str], key: str, text: str, source: str, where: str
) -> None:
    setting = BROKER.get(key)
    if setting is None:
        warnings.append(f"{where}: {_unknown(key)}")
        return
    try:
        entries[key] = Entry(setting.parse(text), text, source)
    except ConfigError as problem:
        raise ConfigError(f"{where}: {problem}") from None
    if setting.inert and entries[key].value != setting.default:
        warnings.append(f"{where}: {key} has no effect here: {setting.inert}")


def _unknown(key: str) -> str:
    for removed, remedy in REMOVED.items():
        if key == removed or (removed.endswith(".") and key.startswith(removed)):
            return f"{key} is not a setting any more: {remedy}"
    if key.startswith("listener.name."):
        return f"{key} is ignored: settings of single listeners are not served yet"
    from difflib import get_close_matches  # takes as long as all settings together, and is rare

    near = get_close_matches(key, BROKER, 1, 0.8)
    return f"{key} is not known and ignored" + (f"; did you mean {near[0]}?" if near else "")


def _check(config: BrokerConfig, warnings: list[str]) -> None:
    """Settings that must fit together."""
    controllers = config.list("controller.listener.names")
    endpoints = config.endpoints()
    if not endpoints:
        raise ConfigError(
            f"listeners names only controller listeners ({', '.join(controllers)}): add one for"
            " clients, for example PLAINTEXT://localhost:9092"
        )
    if len(endpoints) < len(config.list("listeners")):
        warnings.append(
            "listeners: those of the controller are not opened: this is a cluster of one"
        )
    for endpoint in endpoints:
        protocol = _protocols(config.list("listener.security.protocol.map")).get(endpoint.name)
        if protocol != "PLAINTEXT":
            raise ConfigError(
                f"listeners: {endpoint.name} stands for {protocol or 'no protocol'}, and only"
                " PLAINTEXT is served yet; use PLAINTEXT://HOST:PORT, or map the name in"
                " listener.security.protocol.map"
            )
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise ConfigError("listeners: each listener needs a name of its own")
    if len(config.list("log.dirs")) > _MOST_FOLDERS:
        raise ConfigError(f"log.dirs: at most {_MOST_FOLDERS} folders can be served")
    if config.text("authorizer.class.name"):
        raise ConfigError(
            "authorizer.class.name: ACLs are not served yet, and nobody should believe that they"
            " are in force; take the setting out"
        )
    config.per_address("max.connections.per.ip.overrides")
    config.advertised(0)


def _protocols(items: Iterable[str]) -> dict[str, str]:
    pairs = (item.partition(":") for item in items)
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}
