"""The desired state of an appliance in a file: topics, settings, quotas. Read and checked here;
`applying.py` plans the changes.

    [topics.orders]                  partitions, replicas: the broker decides when left out
    partitions = 3
    config.retention.ms = "7d"

    [cluster]                        settings of all brokers
    log.retention.ms = "7d"

    [groups.billing]                 settings of a group
    consumer.session.timeout.ms = "60s"

    [[quotas]]                       user, client-id, ip: whose; default: of everybody without one
    client-id = "loader"
    produce = "10MB/s"

TOML, JSON, or YAML of the same shape. A section that is not there is about nothing.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from appliance.quotas.limits import CLIENT_ID, IP, USER, Entity
from console.model.asking.failure import Failure, usage
from console.model.asking.setting_values import in_unit
from console.model.quotas.quota_values import kind_of, read
from console.model.topics.topics import PARTITIONS_MOST

_SECTIONS: Final = ("topics", "cluster", "groups", "quotas")
_OF_TOPICS: Final = ("partitions", "replicas", "config")
_WHOSE: Final = (USER, CLIENT_ID, IP)
_DEFAULT: Final = "default"
_MOST_REPLICAS: Final = 32_767

Settings = dict[str, str]
"""Key → value in the setting's own unit."""


@dataclass(slots=True, frozen=True)
class DesiredTopic:
    """None: as the broker's settings say; of a topic that is there, as it is."""

    partitions: int | None
    replicas: int | None
    config: Settings


@dataclass(slots=True, frozen=True)
class Desired:
    """None: the file says nothing about it, and nothing of it is touched."""

    topics: dict[str, DesiredTopic] | None
    cluster: Settings | None
    groups: dict[str, Settings] | None
    quotas: dict[Entity, dict[str, float]] | None


def parse(text: str, name: str) -> Desired:
    """Parses a file. name: of the file, whose ending gives its form; `-` may be TOML or JSON.
    Raises Failure (USAGE) with every mistake.
    """
    found = _loaded(text, name)
    if not isinstance(found, dict):
        raise usage(f"{name}: it has no sections; there are {', '.join(_SECTIONS)}")
    reading = _Reading()
    for key in found:
        if key not in _SECTIONS:
            reading.wrong(key, f"is no section; there are {', '.join(_SECTIONS)}")
    desired = Desired(
        reading.topics(found["topics"]) if "topics" in found else None,
        reading.settings("cluster", found["cluster"]) if "cluster" in found else None,
        reading.groups(found["groups"]) if "groups" in found else None,
        reading.quotas(found["quotas"]) if "quotas" in found else None,
    )
    if reading.mistakes:
        raise usage("\n".join(f"{name}: {one}" for one in reading.mistakes))
    return desired


def _loaded(text: str, name: str) -> Any:
    try:
        if name.endswith((".yaml", ".yml")):
            return _of_yaml(text)
        is_json = name.endswith(".json") or (name == "-" and text.lstrip()[:1] == "{")
        return json.loads(text) if is_json else tomllib.loads(text)
    except ValueError as wrong:  # both decoders' errors are some
        raise usage(f"{name}: {wrong}") from None


def _of_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise usage(
            "YAML is read by PyYAML, which is not installed",
            "pip install '.[yaml]', or write TOML or JSON",
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        raise ValueError(str(wrong)) from None


class _Reading:
    """Goes through a file and gathers what is wrong in it."""

    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def wrong(self, where: str, why: str) -> None:
        self.mistakes.append(f"{where} {why}")

    def topics(self, found: Any) -> dict[str, DesiredTopic]:
        made = {}
        for name, said in self._tables("topics", found):
            for key in said:
                if key not in _OF_TOPICS:
                    self.wrong(f"topics.{name}.{key}", f"is not one of {', '.join(_OF_TOPICS)}")
            made[name] = DesiredTopic(
                self._count(f"topics.{name}.partitions", said, PARTITIONS_MOST),
                self._count(f"topics.{name}.replicas", said, _MOST_REPLICAS),
                self.settings(f"topics.{name}.config", said.get("config") or {}),
            )
        return made

    def groups(self, found: Any) -> dict[str, Settings]:
        tables = self._tables("groups", found)
        return {name: self.settings(f"groups.{name}", said) for name, said in tables}

    def settings(self, where: str, found: Any) -> Settings:
        """Keys may be written with dots as they are, which are tables of tables in TOML."""
        if not isinstance(found or {}, dict):
            self.wrong(where, "is not a table of settings")
            return {}
        made = {}
        for key, value in _flat("", found or {}):
            if not isinstance(value, str | int | float | list):
                self.wrong(f"{where}.{key}", "is not a value of a setting")
                continue
            try:
                made[key] = in_unit(key, _text(value))
            except Failure as unclear:
                self.mistakes.append(f"{where}: {unclear.message}")
        return made

    def quotas(self, found: Any) -> dict[Entity, dict[str, float]]:
        made: dict[Entity, dict[str, float]] = {}
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            self.wrong("quotas", "is not a list of tables")
            return made
        for number, said in enumerate(found, 1):
            where = f"quotas, the {number}. one,"
            entity = self._entity(where, said)
            if entity in made:
                self.wrong(where, "is about those of one before it")
            values = {}
            for name, value in said.items():
                if name in (*_WHOSE, _DEFAULT):
                    continue
                try:
                    kind = kind_of(name)
                    values[kind] = read(kind, _text(value))
                except Failure as failure:
                    self.wrong(where, failure.message)
            made[entity] = values
        return made

    def _entity(self, where: str, said: Mapping[str, Any]) -> Entity:
        defaults = said.get(_DEFAULT, [])
        defaults = [defaults] if isinstance(defaults, str) else defaults
        named = {kind: str(said[kind]) for kind in _WHOSE if kind in said}
        both = [*named.items(), *((one, None) for one in defaults)]
        kinds = [kind for kind, _ in both]
        if not kinds or len(set(kinds)) < len(kinds) or set(kinds) - set(_WHOSE):
            self.wrong(where, f"says not whose: {', '.join(_WHOSE)} = NAME, or default = [KIND]")
        return tuple(sorted(both, key=str))

    def _tables(self, where: str, found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        if not isinstance(found, dict):
            self.wrong(where, "is not a table of names")
            return
        for name, said in found.items():
            if isinstance(said or {}, dict):
                yield name, said or {}
            else:
                self.wrong(f"{where}.{name}", "is not a table")

    def _count(self, where: str, said: Mapping[str, Any], most: int) -> int | None:
        value = said.get(where.rpartition(".")[2])
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
            self.wrong(where, f"is not a number from 1 to {most}")
            return None
        return value


def _flat(before: str, found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in found.items():
        if isinstance(value, dict):
            yield from _flat(f"{before}{key}.", value)
        else:
            yield f"{before}{key}", value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
