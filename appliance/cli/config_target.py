"""Whose settings: flags, and how a broker is asked for them and told to change them.

Plain requests are made here: confluent-kafka cannot name the default of all brokers, and does not
pass on what a setting is for.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from appliance.cli.complete import group_names, topic_names
from appliance.cli.exits import Failure, usage
from appliance.cli.link import Link, name_of_code
from appliance.cli.output import Row
from appliance.cli.plain_request import ask

TOPIC, BROKER, GROUP = 2, 4, 32
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
_DEFAULT: Final = 5
_TYPES: Final = (
    "unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password",
)  # fmt: skip


@dataclass(slots=True, frozen=True)
class Target:
    """kind and name as on the wire; the BROKER without a name is the default of all brokers."""

    kind: int
    name: str

    def __str__(self) -> str:
        kind = {TOPIC: "topic", BROKER: "broker", GROUP: "group"}[self.kind]
        return f"{kind} {self.name}" if self.name else "the cluster"


def targeted(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -t, -g, --broker and --cluster; the command gets `target`: a Target, or None."""

    @click.option(
        "-t", "--topic", metavar="NAME", help="Of this topic.", shell_complete=topic_names
    )
    @click.option(
        "-g", "--group", metavar="NAME", help="Of this consumer group.", shell_complete=group_names
    )
    @click.option("--broker", metavar="ID", help="Of this broker alone.")
    @click.option("--cluster", is_flag=True, help="The default of all brokers.")
    @functools.wraps(command)
    def wrapped(
        *args: object,
        topic: str | None,
        group: str | None,
        broker: str | None,
        cluster: bool,
        **kwargs: object,
    ) -> object:
        named = [
            (TOPIC, topic),
            (GROUP, group),
            (BROKER, broker),
            (BROKER, "" if cluster else None),
        ]
        found = [Target(kind, name) for kind, name in named if name is not None]
        if len(found) > 1 or any(not one.name for one in found if not cluster):
            raise usage("say one of -t TOPIC, -g GROUP, --broker ID, --cluster")
        return command(*args, target=found[0] if found else None, **kwargs)

    return wrapped


def in_force(link: Link, target: Target | None) -> Target:
    """What is read when nothing is said: the broker. Raises Failure when there are several."""
    if target is not None:
        return target
    brokers = sorted(link.admin().list_topics(timeout=link.timeout_s).brokers)
    if len(brokers) != 1:
        raise usage(f"there are several brokers: say which, --broker {brokers[0]} for example")
    return Target(BROKER, str(brokers[0]))


def settings_of(link: Link, target: Target, keys: tuple[str, ...] = ()) -> list[Row]:
    """A row for each setting: key, value, source, default, doc, type, read_only, sensitive,
    places. Raises Failure for a target or a key that is not there."""
    resource = {"resource_type": target.kind, "resource_name": target.name}
    asked = {
        "resources": [resource | {"configuration_keys": None}],
        "include_synonyms": True,
        "include_documentation": True,
    }
    (found,) = ask(link, *_DESCRIBE, asked).results
    _check(target, found)
    rows = sorted((_row(one) for one in found.configs), key=lambda row: str(row["key"]))
    known = {row["key"]: row for row in rows}
    for key in keys:
        if key not in known:
            raise _unknown(target, key, list(known))
    return [known[key] for key in keys] if keys else rows


def _row(one: Any) -> Row:
    places = [(s.name, s.value, int(s.source)) for s in one.synonyms]
    source = int(one.config_source)
    default = next((_told(one.name, *p[:2]) for p in places if p[2] == _DEFAULT), None)
    return {
        "key": one.name,
        "value": one.value,
        "source": _SOURCES.get(source, "unknown"),
        "default": one.value if source == _DEFAULT else default,
        "doc": one.documentation,
        "type": _TYPES[one.config_type] if 0 <= one.config_type < len(_TYPES) else "unknown",
        "read_only": one.read_only,
        "sensitive": one.is_sensitive,
        "places": [
            {"key": name, "value": value, "source": _SOURCES.get(place, "unknown")}
            for name, value, place in places
        ],
    }


def _told(key: str, place: str, value: str | None) -> str | None:
    """The default, with its name where that has another unit (log.retention.hours=168)."""
    same = key.rpartition(".")[2] == place.rpartition(".")[2]
    return value if same else f"{place}={value}"


def _unknown(target: Target, key: str, known: list[str]) -> Failure:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1, 0.7)
    text = f"{key} is not a setting of {target}"
    if target.kind == BROKER and not target.name:
        text = f"{key} is not set for {target}"
    hint = f"did you mean {near[0]}?" if near else "penstock config get shows all of them"
    return Failure(text, hint, name="INVALID_CONFIG", kafka_code=40)


def alter(
    link: Link,
    target: Target,
    changes: Mapping[str, tuple[int, str | None]],
    *,
    dry_run: bool,
) -> None:
    """Change what is named: key → (SET, DELETE, APPEND or SUBTRACT, value). Raises Failure."""
    configs = [
        {"name": key, "config_operation": kind, "value": value}
        for key, (kind, value) in changes.items()
    ]
    resource = {"resource_type": target.kind, "resource_name": target.name, "configs": configs}
    asked = {"resources": [resource], "validate_only": dry_run}
    (found,) = ask(link, *_ALTER, asked).responses
    _check(target, found)


def _check(target: Target, found: Any) -> None:
    code = int(found.error_code)
    if code:
        name = name_of_code(code)
        text = found.error_message or f"{target}: {name}"
        hint = "penstock config describe KEY explains a setting" if name.startswith("INV") else ""
        raise Failure(str(text), hint, name=name, kafka_code=code)
