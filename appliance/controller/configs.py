"""Change dynamic settings of topics, brokers and groups (KIP-226, KIP-339).

Invariant: what is written was valid at that time, for its name, its value and, for a topic,
together with the topic's other settings. The records of one resource come together or not at all;
a setting that does not change gives no record.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import ConfigError, PeerError
from appliance.config import kept_listeners, logins, open_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.listener_settings import is_tls, split
from appliance.config.setting import LIST, shown
from appliance.controller import eligible
from appliance.controller.admission import check_here
from appliance.controller.config_resources import ConfigResource, check_resource
from appliance.controller.decision import OK, Record, Result, Situation, duplicates, failed
from appliance.metadata import effective, effective_groups
from appliance.metadata.image import BROKER, BROKER_LOGGER, GROUP, TOPIC
from appliance.ring.log_levels import LEVELS, LOGGERS, ROOT
from appliance.wire import kraft_records as kraft
from appliance.wire.varint import STRING_MAX

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
_OPERATIONS: Final = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


@dataclass(slots=True, frozen=True)
class ConfigOperation:
    """One change: SET, DELETE, or APPEND and SUBTRACT for lists. value is null only for DELETE."""

    key: str
    kind: int
    value: str | None


def topic_config_records(
    situation: Situation, topic: str, wanted: Mapping[str, str | None]
) -> tuple[dict[str, str], list[Record]]:
    """Settings and records of a topic that is being created. Raises PeerError(INVALID_CONFIG)."""
    settings: dict[str, str] = {}
    for key, value in wanted.items():
        if value is None:
            raise PeerError(
                errors.INVALID_CONFIG,
                f"Null value not supported for topic configs: {key[:100]}. Leave it out instead.",
            )
        settings[key] = value
    _check_topic(situation, settings, list(settings), {})
    records = _difference(ConfigResource(TOPIC, topic), {}, settings)
    return settings, records + eligible.cleared(situation.image, records)


def alter_incrementally(
    situation: Situation, wanted: Sequence[tuple[ConfigResource, Sequence[ConfigOperation]]]
) -> tuple[list[Record], list[tuple[ConfigResource, Result]]]:
    """Records, and how it went for each resource (IncrementalAlterConfigs)."""
    records: list[Record] = []
    results: list[tuple[ConfigResource, Result]] = []
    twice = duplicates([one for one, _ in wanted])
    for resource, operations in wanted:
        try:
            _check_resource(situation, resource, twice)
            new = _apply(situation, resource, operations)
            records += _change(situation, resource, new, [one.key for one in operations])
        except PeerError as error:
            results.append((resource, failed(error)))
        else:
            results.append((resource, OK))
    return records + eligible.cleared(situation.image, records), results


def replace_all(
    situation: Situation, wanted: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]]
) -> tuple[list[Record], list[tuple[ConfigResource, Result]]]:
    """As above for AlterConfigs: what a resource does not name goes back to its default."""
    records: list[Record] = []
    results: list[tuple[ConfigResource, Result]] = []
    twice = duplicates([one for one, _ in wanted])
    for resource, settings in wanted:
        try:
            if resource.kind == BROKER_LOGGER:
                text = f"Unknown resource type {BROKER_LOGGER} for AlterConfigs."
                text += " Levels of loggers are changed one by one, with IncrementalAlterConfigs."
                raise PeerError(errors.INVALID_REQUEST, text)
            _check_resource(situation, resource, twice)
            _check_keys([key for key, _ in settings])
            new = {key: value for key, value in settings if value is not None}
            if len(new) != len(settings):
                missing = ", ".join(key[:100] for key, value in settings if value is None)
                raise PeerError(
                    errors.INVALID_REQUEST,
                    f"Null value not supported for : {missing}. Leave a setting out to unset it.",
                )
            records += _change(situation, resource, new, list(new))
        except PeerError as error:
            results.append((resource, failed(error)))
        else:
            results.append((resource, OK))
    return records + eligible.cleared(situation.image, records), results


def _check_resource(
    situation: Situation, resource: ConfigResource, twice: Mapping[ConfigResource, None]
) -> None:
    if resource in twice:
        raise PeerError(
            errors.INVALID_REQUEST,
            f"Each resource must appear at most once. {resource.name[:249]!r} comes twice.",
        )
    check_resource(situation, resource)


def _check_keys(keys: list[str]) -> None:
    for key in duplicates(keys):
        raise PeerError(errors.INVALID_REQUEST, f"Error due to duplicate config keys: {key[:100]}.")


def _apply(
    situation: Situation, resource: ConfigResource, operations: Sequence[ConfigOperation]
) -> dict[str, str]:
    """The dynamic settings after the operations."""
    _check_keys([one.key for one in operations])
    new = dict(situation.image.config(resource.kind, resource.name))
    for one in operations:
        if one.kind not in _OPERATIONS:
            raise PeerError(
                errors.INVALID_REQUEST,
                f"Unknown operation type {one.kind} for {one.key[:100]}; types are 0 (SET),"
                " 1 (DELETE), 2 (APPEND) and 3 (SUBTRACT).",
            )
        if one.kind == DELETE:
            new.pop(one.key, None)
        elif one.value is None:
            raise PeerError(
                errors.INVALID_REQUEST,
                f"Null value not supported for : {one.key[:100]}. Use DELETE to unset it.",
            )
        elif one.kind == SET:
            new[one.key] = one.value
        else:
            new[one.key] = _edit_list(situation, resource, one, new.get(one.key))
    return new


def _edit_list(
    situation: Situation, resource: ConfigResource, one: ConfigOperation, current: str | None
) -> str:
    """APPEND and SUBTRACT: members already there, or not there, are passed over."""
    if resource.kind == BROKER_LOGGER:
        raise PeerError(
            errors.INVALID_REQUEST,
            f"{_OPERATIONS[one.kind]} operation is not allowed for the BROKER_LOGGER resource",
        )
    definition = effective.definition(resource.kind, one.key)
    if resource.kind == BROKER and one.key == kept_listeners.PROTOCOLS:  # a text, as Kafka has it
        operation = _OPERATIONS[one.kind].lower()
        raise PeerError(
            errors.INVALID_CONFIG,
            f"Config value {operation} is not allowed for config key: {one.key}. Use SET.",
        )
    if definition is None or definition.type != LIST:
        raise PeerError(
            errors.INVALID_CONFIG,
            f"Can't {_OPERATIONS[one.kind]} to key {one.key[:100]} because its type is not LIST."
            " Use SET.",
        )
    if current is None:
        current = effective.inherited(situation.image, situation.config, resource.kind, one.key)
    members = _members(current or "")
    named = _members(one.value or "")
    if one.kind == APPEND:
        members |= named
    else:
        members = {member: None for member in members if member not in named}
    return ",".join(members)


def _members(value: str) -> dict[str, None]:
    return {member.strip(): None for member in value.split(",") if member.strip()}


def _change(
    situation: Situation, resource: ConfigResource, new: dict[str, str], touched: Sequence[str]
) -> list[Record]:
    """Check the settings that were touched, and the whole of a topic's; the records of it."""
    for key in touched:
        _check_length(key, new.get(key))
    if resource.kind == TOPIC:
        _check_topic(situation, new, touched, situation.image.config(TOPIC, resource.name))
    elif resource.kind == BROKER:
        for key in touched:
            _check_broker_setting(situation, resource, key, new.get(key))
        old = situation.image.config(resource.kind, resource.name)
        check_here(situation.here, {*touched, *(key for key in old if key not in new)})
        if any(key in kept_listeners.KEYS for key in touched):
            _check_listeners(situation, resource, new)
        _check_shown(situation, resource, new, {*touched, *(key for key in old if key not in new)})
    elif resource.kind == BROKER_LOGGER:
        for key in touched:
            _check_logger(key, new.get(key))
        return []  # no metadata: they hold for this node, until it ends
    else:
        _check_other(situation, resource, new, touched)
    old = situation.image.config(resource.kind, resource.name)
    # To set the name of a file again is to have it read again.
    again = [key for key in touched if resource.kind == BROKER and is_tls(key)]
    return _difference(resource, old, new, again)


def _check_length(key: str, value: str | None) -> None:
    """Checks that a value made by APPEND fits the protocol's string, as every other value does."""
    if value is not None and len(value.encode()) > STRING_MAX:
        raise PeerError(
            errors.INVALID_CONFIG,
            f"The value of {key[:100]} would have {len(value.encode())} bytes; at most"
            f" {STRING_MAX} are possible. Take members out of the list.",
        )


def _check_logger(key: str, value: str | None) -> None:
    if key not in LOGGERS:
        raise PeerError(errors.INVALID_CONFIG, f"Logger {key[:100]} does not exist!")
    if value is None and key == ROOT:
        raise PeerError(
            errors.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )
    if value is not None and value not in LEVELS:
        raise PeerError(
            errors.INVALID_CONFIG,
            f"Cannot set the log level of {key} to {value[:100]} as it is not a supported log"
            f" level. Valid log levels are {', '.join(sorted(LEVELS))}",
        )


def _check_other(
    situation: Situation, resource: ConfigResource, new: Mapping[str, str], touched: Sequence[str]
) -> None:
    """Settings of groups and of subscriptions to metrics."""
    group = resource.kind == GROUP
    try:
        for key in touched:
            if effective.definition(resource.kind, key) is None:
                kind = "group config name" if group else "client metrics configuration"
                raise ConfigError(f"Unknown {kind}: {key[:100]}")
        if group:
            effective_groups.check_group(situation.image, situation.config, new, touched)
        else:
            effective_groups.check_client_metrics(new, touched)
    except ConfigError as cause:
        code = errors.INVALID_CONFIG if group else errors.INVALID_REQUEST
        raise PeerError(code, str(cause)) from cause


def _check_topic(
    situation: Situation, new: Mapping[str, str], touched: Sequence[str], old: Mapping[str, str]
) -> None:
    try:
        for key in touched:
            effective.check_topic_setting(key, new.get(key))
        effective.check_topic(situation.image, situation.config, new, old)
    except ConfigError as cause:
        raise PeerError(errors.INVALID_CONFIG, str(cause)) from cause


def _check_broker_setting(
    situation: Situation, resource: ConfigResource, key: str, value: str | None
) -> None:
    wrong = effective.why_not_dynamic(key, per_broker=resource.name != "")
    if wrong:
        raise PeerError(errors.INVALID_REQUEST, wrong)
    eligible.check_setting(situation.image, resource.name, key, value)
    if value is None:
        return
    try:
        effective.check_broker_setting(
            situation.image, situation.config, key, value, per_broker=resource.name != ""
        )
    except ConfigError as cause:
        raise PeerError(errors.INVALID_REQUEST, str(cause)) from cause


def _check_listeners(
    situation: Situation, resource: ConfigResource, new: Mapping[str, str]
) -> None:
    """Another node looks itself whether what it is to open fits its own settings."""
    before, config = situation.image.config(resource.kind, resource.name), situation.config
    mine = resource.name == str(situation.node_id)
    try:
        if not mine:
            names = ("controller.listener.names", "listener.security.protocol.map")
            config = BrokerConfig.of({one: shown(config.get_value(one)) or "" for one in names})
        kept_listeners.check(config, before, new)
    except ConfigError as cause:
        raise PeerError(errors.INVALID_REQUEST, str(cause)) from cause
    opened = config.opened()
    for one in config.over({key: new[key] for key in kept_listeners.KEYS if key in new}).opened():
        why = situation.listening(one.host, one.port) if mine and one not in opened else ""
        if why:
            raise PeerError(errors.INVALID_REQUEST, f"listeners: {why}")


def _check_shown(
    situation: Situation, resource: ConfigResource, new: Mapping[str, str], touched: Collection[str]
) -> None:
    """Checks logins and authentication, and loads certificates, before either is promised. Another
    node looks itself."""
    if resource.name != str(situation.node_id):
        return
    shown = [key for key in touched if is_tls(key) or key in kept_listeners.KEYS]
    asks = any(key in kept_listeners.KEYS or logins.concerns_logins(key) for key in touched)
    if not shown and not asks:
        return
    parts = [split(key) for key in shown]
    only = {one[0] for one in parts if one is not None} if all(parts) else None
    config = effective.broker_config(situation.image, situation.config, new)
    try:
        if asks:
            list(logins.check(config))
        list(open_listeners.check(config))
        if shown:
            situation.showing(config, only)
    except ConfigError as cause:
        raise PeerError(errors.INVALID_REQUEST, str(cause)) from cause


def _difference(
    resource: ConfigResource,
    old: Mapping[str, str],
    new: Mapping[str, str],
    again: Collection[str] = (),
) -> list[Record]:
    changed: dict[str, str | None] = {
        key: value for key, value in new.items() if old.get(key) != value or key in again
    }
    changed |= {key: None for key in old if key not in new}
    return [
        kraft.ConfigRecord(
            resource_type=resource.kind, resource_name=resource.name, name=key, value=value
        )
        for key, value in changed.items()
    ]
