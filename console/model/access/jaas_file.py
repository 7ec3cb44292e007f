"""The JAAS file that logins come from: the one that `penstock.sasl.jaas.file` names, or, as for
Apache Kafka, `-Djava.security.auth.login.config=FILE` in KAFKA_OPTS.

Whoever loads a settings file asks here first, and hands what comes back to `appliance.config.load`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from appliance.authentication.jaas_sections import fill_in, parse_sections
from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig
from appliance.config.jaas_file import FILE, TEXT
from appliance.config.load import examine
from appliance.config.node_logins import needs_file
from appliance.config.properties import parse_properties

_OPTIONS: Final = "KAFKA_OPTS"
_PROPERTY: Final = "java.security.auth.login.config"
_LONGEST: Final = 1 << 20
_OF_SECURITY: Final = (
    *("org.apache.kafka.sasl.", "org.apache.kafka.disallowed.login.modules", "java.security."),
    *("javax.security.", "javax.net.ssl.", "jdk.tls.", "jdk.security.", "sun.security."),
)
"""How properties of the JVM begin that say who gets in, or how TLS is spoken."""


def of_jaas_file(
    text: str | None,
    overrides: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,
    *,
    file_name: str = "the file",
) -> dict[str, str]:
    """Settings that the environment and a JAAS file add to a settings file (text) and the command
    line (overrides). Raises ConfigError for a file that is needed and cannot be read.

    Of KAFKA_OPTS a file counts as far as Apache Kafka would look into it: where a login has no
    setting of its own.
    """
    properties = _properties(environ)
    named = properties.get(_PROPERTY, "")
    if not (named or FILE in (text or "") or FILE in overrides):
        return {}
    config, _ = examine(text, dict(overrides))
    own = str(config.get_value(FILE) or "")
    if config.entry(TEXT) is not None:
        if own:
            raise ConfigError(f"{FILE}: {TEXT} is set, too; take one of them out")
        return {}
    if own:
        lines = {key: line for key, _, line in parse_properties(text or "")}
        where = f"{file_name}, line {lines[FILE]}: " if FILE not in overrides else ""
        return {TEXT: fill_in(_read(f"{where}{FILE}", own), properties)}
    if not named:
        return {}
    path = _path(named)
    if not _needed(config):
        return {FILE: path} | _if_readable(path, properties)
    return {FILE: path, TEXT: fill_in(_read(f"{_OPTIONS}: {_PROPERTY}", path), properties)}


def jvm_remarks(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns warnings about what KAFKA_OPTS says of security to a JVM, and nobody reads here."""
    return [
        f"{_OPTIONS}: -D{name} has no effect here: there is no JVM"
        for name in sorted(_properties(environ))
        if name.startswith(_OF_SECURITY) and name != _PROPERTY
    ]


def _properties(environ: Mapping[str, str]) -> dict[str, str]:
    """The properties of the JVM that KAFKA_OPTS sets, as its start script and the JVM read them: no
    quotes, the last one counts."""
    words = environ.get(_OPTIONS, "").split()
    pairs = (one.removeprefix("-D").partition("=") for one in words if one.startswith("-D"))
    return {name: value for name, _, value in pairs}


def _path(named: str) -> str:
    """The path of what the property names: a path or a file: URL; a = before it has a meaning for
    the JVM alone."""
    place = named.removeprefix("=")
    return unquote(urlsplit(place).path) if place.startswith("file:") else place


def _needed(config: BrokerConfig) -> bool:
    try:
        return needs_file(config)
    except ConfigError:
        return False  # which is said of the listeners


def _if_readable(path: str, properties: Mapping[str, str]) -> dict[str, str]:
    """For a listener that is opened later."""
    try:
        content = fill_in(_read(_OPTIONS, path), properties)
        parse_sections(content)
        return {TEXT: content}
    except ConfigError:
        return {}


def _read(setting: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise ConfigError(f"{setting}={path} is no JAAS file: it has more than 1 MiB")
        return content.decode()
    except OSError as problem:
        raise ConfigError(f"{setting}={path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{setting}={path} is not a text file in UTF-8") from None
