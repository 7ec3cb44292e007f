"""Settings of topics, brokers, groups and of the cluster: what they are, where each value comes
from, and changing them.

Requests of our own are made where they can be: confluent-kafka cannot name the default of all
brokers, and does not pass on what a setting is for. Over SASL its admin client is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.failure import UNREACHABLE, Failure, usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.cluster import cluster

TOPIC, BROKER, LOGGERS, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
_DESCRIBE: Final = (32, 4)
_ALTER: Final = (44, 1)
SET, DELETE, APPEND, SUBTRACT = range(4)
_SOURCES: Final = {
    1: "topic",
    2: "broker, set at run time",
    3: "cluster, set at run time",
    4: "broker, its file or command line",
    5: "default",
    6: "logger",
    7: "client metrics",
    8: "group",
}
_OF_BROKER: Final = 2
_DEFAULT: Final = 5
_KINDS: Final = {
    TOPIC: "topic", BROKER: "broker", GROUP: "group", CLIENT_METRICS: "subscription",
    LOGGERS: "loggers of broker",
}  # fmt: skip
_TYPES: Final = (
    "unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password",
)  # fmt: skip

Changes = Mapping[str, tuple[int, str | None]]
"""Key → (SET, DELETE, APPEND or SUBTRACT, value)."""


@dataclass(slots=True, frozen=True)
class Target:
    """kind and name as on the wire; the BROKER without a name is the default of all brokers."""

    kind: int
    name: str

    def __str__(self) -> str:
        kind = _KINDS[self.kind]
        return f"{kind} {self.name}" if self.name else "the cluster"


CLUSTER: Final = Target(BROKER, "")


@dataclass(slots=True, frozen=True)
class Place:
    """A value of a setting somewhere: on the topic, on the broker, by default …"""

    key: str
    value: str | None
    source: str


@dataclass(slots=True, frozen=True)
class Setting:
    """A setting as it is for a target. places: all that have a value, the one that wins first.
    value: None for a secret. doc, type and default are not known over SASL."""

    key: str
    value: str | None
    source: str
    default: str | None
    doc: str | None
    type: str
    read_only: bool
    sensitive: bool
    places: tuple[Place, ...]


@dataclass(slots=True, frozen=True)
class Change:
    """A setting before and after. after and source are None when it was only checked."""

    key: str
    before: str | None
    after: str | None
    source: str | None


def source_name(number: int) -> str:
    """Where a value comes from, by its number on the wire."""
    return _SOURCES.get(number, "unknown")


def in_force(link: Link, target: Target | None) -> Target:
    """The default target of a read: the broker. Raises Failure when there are several."""
    if target is not None:
        return target
    brokers = sorted(link.admin().list_topics(timeout=link.timeout_s).brokers)
    if len(brokers) != 1:
        raise usage(f"there are several brokers: name one, for example --broker {brokers[0]}")
    return Target(BROKER, str(brokers[0]))


def settings(link: Link, target: Target, keys: tuple[str, ...] = ()) -> list[Setting]:
    """The settings of a target, by key. Raises Failure for a target or a key that is not there."""
    found = _described(link, target) if link.is_asked else _told_by_client(link, target)
    known = {one.key: one for one in sorted(found, key=lambda one: one.key)}
    for key in keys:
        if key not in known:
            raise _unknown(target, key, list(known))
    return [known[key] for key in keys] if keys else list(known.values())


def values_of(
    link: Link, kind: int, names: Sequence[str], keys: tuple[str, ...]
) -> dict[str, dict[str, str | None]]:
    """Name → key → value of some settings of several targets; what is refused is left out. Raises
    Failure when nobody answers."""
    if link.is_asked:
        wanted = [
            {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
            for name in names
        ]
        asked = {"include_synonyms": False, "include_documentation": False, "resources": wanted}
        return {
            one.resource_name: {each.name: each.value for each in one.configs}
            for one in ask_server(link, *_DESCRIBE, asked).results
            if not int(one.error_code)
        }
    asking = {name: _resource(Target(kind, name)) for name in names}
    answers = link.admin().describe_configs(list(asking.values()), request_timeout=link.timeout_s)
    found = {}
    for name, resource in asking.items():
        try:
            told = link.wait(answers[resource], name)
        except Failure as failure:
            if failure.code == UNREACHABLE:
                raise
        else:
            found[name] = {key: told[key].value for key in keys if key in told}
    return found


def change(link: Link, target: Target, changes: Changes, *, dry_run: bool) -> list[Change]:
    """Change settings, or with dry_run let the broker check it. Raises Failure."""
    before = _values(link, target)
    alter = _alter if link.is_asked else _alter_by_client
    alter(link, target, changes, dry_run=dry_run)
    after = {} if dry_run else _values_after(link, target, changes)
    rows = []
    for key in changes:
        old, new = before.get(key), after.get(key)
        was = old.value if old else None
        rows.append(Change(key, was, new.value if new else None, new.source if new else None))
    return rows


def write_settings(link: Link, target: Target, changes: Changes) -> None:
    """Change settings without a look at what they were. Raises Failure."""
    alter = _alter if link.is_asked else _alter_by_client
    alter(link, target, changes, dry_run=False)


def _values_after(link: Link, target: Target, changes: Changes) -> dict[str, Setting]:
    """Returns the settings in force; those that were asked for where a change of `listeners` has
    closed the one that this command came by."""
    try:
        return _values(link, target)
    except Failure as failure:
        if failure.code != UNREACHABLE or "listeners" not in changes:
            raise
        source = source_name(_OF_BROKER)
        return {
            key: Setting(key, value, source, None, None, "unknown", False, False, ())
            for key, (_, value) in changes.items()
        }


def _values(link: Link, target: Target) -> dict[str, Setting]:
    """Every setting in force for the target; of the cluster, as its broker has it."""
    if target == CLUSTER:
        try:
            return _values(link, in_force(link, None))
        except Failure:  # several brokers: only what is set for all is known
            pass
    return {one.key: one for one in settings(link, target)}


def _described(link: Link, target: Target) -> list[Setting]:
    resource = {"resource_type": target.kind, "resource_name": target.name}
    asked = {
        "resources": [resource | {"configuration_keys": None}],
        "include_synonyms": True,
        "include_documentation": True,
    }
    (found,) = ask_server(link, *_DESCRIBE, asked, _server(link, target)).results
    check(int(found.error_code), found.error_message, target.name or str(target))
    return [_setting(one) for one in found.configs]


def _server(link: Link, target: Target) -> str | None:
    """The broker to ask for a target's settings, if there are several."""
    if target.kind not in (BROKER, LOGGERS) or not target.name.isdecimal():
        return None
    brokers = cluster.read_cluster(link).brokers
    return brokers.get(int(target.name)) if len(brokers) > 1 else None


def _setting(one: Any) -> Setting:
    places = [(s.name, s.value, int(s.source)) for s in one.synonyms]
    source = int(one.config_source)
    default = next((_told(one.name, *p[:2]) for p in places if p[2] == _DEFAULT), None)
    return Setting(
        key=one.name,
        value=one.value,
        source=source_name(source),
        default=one.value if source == _DEFAULT else default,
        doc=one.documentation,
        type=_TYPES[one.config_type] if 0 <= one.config_type < len(_TYPES) else "unknown",
        read_only=one.read_only,
        sensitive=one.is_sensitive,
        places=tuple(Place(name, value, source_name(place)) for name, value, place in places),
    )


def _told(key: str, place: str, value: str | None) -> str | None:
    """The default, with its name where that has another unit (log.retention.hours=168)."""
    same = key.rpartition(".")[2] == place.rpartition(".")[2]
    return value if same else f"{place}={value}"


def _unknown(target: Target, key: str, known: list[str]) -> Failure:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1, 0.7)
    text = f"{key} is not a setting of {target}"
    if target == CLUSTER:
        text = f"{key} is not set for {target}"
    hint = f"did you mean {near[0]}?" if near else "penstock config get shows all of them"
    return Failure(text, hint, name="INVALID_CONFIG", kafka_code=40)


def _alter(link: Link, target: Target, changes: Changes, *, dry_run: bool) -> None:
    configs = [
        {"name": key, "config_operation": kind, "value": value}
        for key, (kind, value) in changes.items()
    ]
    resource = {"resource_type": target.kind, "resource_name": target.name, "configs": configs}
    asked = {"resources": [resource], "validate_only": dry_run}
    server = _server(link, target) if target.kind == LOGGERS else None  # others pass it on
    (found,) = ask_server(link, *_ALTER, asked, server).responses
    check(int(found.error_code), found.error_message, target.name or str(target))


def _told_by_client(link: Link, target: Target) -> list[Setting]:
    resource = _resource(target)
    answers = link.admin().describe_configs([resource], request_timeout=link.timeout_s)
    found = link.wait(answers[resource], target.name)
    return [
        Setting(
            key=key,
            value=None if entry.is_sensitive else entry.value,
            source=source_name(int(getattr(entry.source, "value", entry.source))),
            default=None,
            doc=None,
            type="unknown",
            read_only=entry.is_read_only,
            sensitive=entry.is_sensitive,
            places=(),
        )
        for key, entry in found.items()
    ]


def _alter_by_client(link: Link, target: Target, changes: Changes, *, dry_run: bool) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType(kind))
        for key, (kind, value) in changes.items()
    ]
    resource = _resource(target, entries)
    answers = link.admin().incremental_alter_configs(
        [resource], request_timeout=link.timeout_s, validate_only=dry_run
    )
    link.wait(answers[resource], target.name)


def _resource(target: Target, changes: list[Any] | None = None) -> Any:
    from confluent_kafka.admin import ConfigResource, ResourceType

    if target == CLUSTER or target.kind not in (TOPIC, BROKER):
        raise usage(f"settings of {target} cannot be asked for over SASL")
    kind = ResourceType.TOPIC if target.kind == TOPIC else ResourceType.BROKER
    return ConfigResource(kind, target.name, incremental_configs=changes)
