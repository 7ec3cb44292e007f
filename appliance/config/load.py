"""From files and the command line to a BrokerConfig, with everything worth a warning said once."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.errors import ConfigError
from appliance.config import (
    acl_checks,
    cluster_checks,
    delegation,
    jaas_file,
    logins,
    metrics_door,
    node_logins,
    open_listeners,
    otlp,
    roles,
    several_listeners,
    tiering_checks,
    tls_checks,
)
from appliance.config.broker import (
    COMMAND_LINE,
    DEFAULT,
    ENVIRONMENT,
    FILE,
    BrokerConfig,
    Entry,
)
from appliance.config.broker_settings import BROKER, REMOVED
from appliance.config.cluster_checks import Said
from appliance.config.listener_settings import PREFIX, setting_of
from appliance.config.properties import parse_properties
from appliance.config.units import in_unit, unit_of

_MOST_FOLDERS: Final = 254
_SOURCES: Final = {COMMAND_LINE: "the command line: ", ENVIRONMENT: "KAFKA_OPTS: "}


@dataclass(slots=True, frozen=True)
class Remark:
    """A remark about a setting. wrong: it cannot be served so; else a warning. source: who set it;
    line: of the file, None when it is not from there."""

    wrong: bool
    source: str
    line: int | None
    text: str


def load(
    text: str | None,
    overrides: Mapping[str, str],
    *,
    file_name: str = "the file",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[BrokerConfig, list[str]]:
    """(config, warnings) of a properties text and of `key=value` overrides, which win; of settings
    from the environment (KAFKA_OPTS) either wins.

    Raises ConfigError for the first value that its setting does not take; an unknown key is only
    warned about.
    """
    config, remarks = examine(text, overrides, environment)
    told = [f"{_place(one, file_name)}{one.text}" for one in remarks]
    for one, words in zip(remarks, told, strict=True):
        if one.wrong:
            raise ConfigError(words)
    return config, told


def examine(
    text: str | None,
    overrides: Mapping[str, str],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[BrokerConfig, list[Remark]]:
    """As `load`, with everything that is to be said, in the order of the lines. A setting with a
    wrong value is left out of the configuration."""
    reading = _Reading()
    for key, value in environment.items():
        reading.take_setting(key, value, ENVIRONMENT, None)
    for key, value, line in parse_properties(text or ""):
        reading.take_setting(key, value, FILE, line)
    for key, value in overrides.items():
        reading.take_setting(key, value, COMMAND_LINE, None)
    entries = reading.entries
    if "node.id" not in entries and "broker.id" in entries and int(entries["broker.id"].text) >= 0:
        entries["node.id"] = entries["broker.id"]
    config = BrokerConfig(entries)
    for key, check in _CHECKS.items():
        try:
            for words in check(config):
                reading.remark(key, words)
        except ConfigError as problem:
            reading.remark(key, str(problem), wrong=True)
    for key, words in tls_checks.remarks(config):
        reading.remark(key, words)
    last = len(text or "")
    # What several checks stumble over is said where it was set.
    ordered = sorted(reading.remarks, key=lambda one: (one.line or last + 1, one.source == DEFAULT))
    wrong = {one.text: one for one in reversed(ordered) if one.wrong}
    return config, [one for one in ordered if not one.wrong or wrong[one.text] is one]


def _place(remark: Remark, file_name: str) -> str:
    if remark.line is not None:
        return f"{file_name}, line {remark.line}: "
    return _SOURCES.get(remark.source, "")


class _Reading:
    """Settings with their sources, and the remarks about them."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.remarks: list[Remark] = []
        self._places: dict[str, tuple[str, int | None]] = {}

    def take_setting(self, key: str, text: str, source: str, line: int | None) -> None:
        """One setting as it was written."""
        self._places[key] = source, line
        setting = setting_of(key)
        if setting is None:
            self.remark(key, _unknown(key))
            return
        try:
            told = in_unit(key, unit_of(setting), text)
            entry = Entry(setting.parse(told), told, source)
        except ConfigError as problem:
            self.remark(key, str(problem), wrong=True)
            return
        self.entries[key] = entry
        if setting.inert and entry.value != setting.default:
            self.remark(key, f"{key} has no effect here: {setting.inert}")

    def remark(self, key: str, words: str, *, wrong: bool = False) -> None:
        """Something about a key."""
        self.remarks.append(Remark(wrong, *self._places.get(key, (DEFAULT, None)), words))


def _unknown(key: str) -> str:
    for removed, remedy in REMOVED.items():
        if key == removed or (removed.endswith(".") and key.startswith(removed)):
            return f"{key} is not a setting any more: {remedy}"
    if key.startswith(PREFIX):
        return f"{key} is ignored: of single listeners only TLS and logins can be set"
    from difflib import get_close_matches  # takes as long as all settings together, and is rare

    near = get_close_matches(key, BROKER, 1, 0.8)
    return f"{key} is not known and ignored" + (f"; did you mean {near[0]}?" if near else "")


def _folders(config: BrokerConfig) -> Said:
    if len(config.list("log.dirs")) > _MOST_FOLDERS:
        raise ConfigError(f"log.dirs: at most {_MOST_FOLDERS} folders can be served")
    yield from ()


def _addresses(config: BrokerConfig) -> Said:
    config.per_address("max.connections.per.ip.overrides")
    yield from ()


def _request(config: BrokerConfig) -> Said:
    longest, arena = config.int("socket.request.max.bytes"), config.int("penstock.arena.bytes")
    if config.entry("socket.request.max.bytes") is not None and longest > arena // 2:
        raise ConfigError(
            f"socket.request.max.bytes: {longest} bytes do not fit into half of"
            f" penstock.arena.bytes ({arena}): take at most {arena // 2}, or at least"
            f" {2 * longest} for penstock.arena.bytes"
        )
    yield from ()


def _listeners(config: BrokerConfig) -> Said:
    yield from several_listeners.check(config)
    yield from open_listeners.check(config)


_CHECKS: Final[dict[str, Callable[[BrokerConfig], Said]]] = {
    jaas_file.FILE: jaas_file.check,
    "process.roles": roles.check,
    "inter.broker.listener.name": roles.check_inter_broker,
    "security.inter.broker.protocol": tls_checks.check_protocol_between,
    "listeners": _listeners,
    node_logins.BROKERS: node_logins.check_brokers,
    node_logins.CONTROLLERS: node_logins.check_controllers,
    "sasl.enabled.mechanisms": logins.check,
    "controller.quorum.voters": cluster_checks.voters,
    "log.dirs": _folders,
    tiering_checks.ENABLED: tiering_checks.check_store,
    delegation.SECRET: delegation.check,
    acl_checks.CLASS_NAME: acl_checks.check,
    acl_checks.SUPER_USERS: acl_checks.check_idle,
    acl_checks.NODES: acl_checks.check_nodes,
    "max.connections.per.ip.overrides": _addresses,
    "socket.request.max.bytes": _request,
    "advertised.listeners": cluster_checks.advertised,
    metrics_door.LISTENER: metrics_door.check,
    "penstock.otlp.endpoint": otlp.check,
    "default.replication.factor": cluster_checks.copies,
    "min.insync.replicas": cluster_checks.in_sync,
}
"""Settings that must fit together, or fit what is served."""
