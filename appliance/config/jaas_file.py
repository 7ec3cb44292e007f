"""Logins of a JAAS file, in Apache Kafka's order: what the setting of a listener and mechanism
says (`sasl.jaas.config`), else the section `name.KafkaServer` of the file, else `KafkaServer`.

Settings are values: somebody else reads the file that `penstock.sasl.jaas.file` or KAFKA_OPTS
names, and its text comes here as `penstock.sasl.jaas.text`.
"""

from collections.abc import Iterator
from typing import Final

from appliance.authentication.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE, JaasEntry
from appliance.authentication.jaas_sections import parse_sections
from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig

FILE: Final = "penstock.sasl.jaas.file"
TEXT: Final = "penstock.sasl.jaas.text"
SECTION: Final = "KafkaServer"
_SERVED: Final = (PLAIN_MODULE, SCRAM_MODULE, OAUTH_MODULE)
_KERBEROS: Final = "com.sun.security.auth.module.Krb5LoginModule"


def place(config: BrokerConfig) -> str:
    """Returns the name of the file in errors."""
    return str(config.get_value(FILE) or TEXT)


def is_given(config: BrokerConfig) -> bool:
    """True if there is the text of a file."""
    return bool(config.get_value(TEXT))


def find_login(config: BrokerConfig, listener: str, module: str) -> JaasEntry | None:
    """The login of a module of this class for a listener; None where there is no file, or no such
    module in its section. Raises ConfigError: the file has no section for the listener."""
    if not is_given(config):
        return None
    own = f"{listener.lower()}.{SECTION}"
    sections = _sections(config)
    name = own if own in sections else SECTION
    if name not in sections:
        raise ConfigError(
            f"{place(config)}: Could not find a '{SECTION}' or '{own}' entry in the JAAS"
            f" configuration, and {listener} asks for a login"
        )
    found = [one for one in sections[name] if one.module == module]
    if not found:
        return None
    options: dict[str, str] = {}
    for one in reversed(found):  # of an option that is there twice, the first counts
        options |= one.options
    return JaasEntry(module, options, found[0].line)


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError for a file that cannot be used."""
    if not is_given(config):
        return
    for name, modules in _sections(config).items():
        if name != SECTION and not name.endswith(f".{SECTION}"):
            continue
        for one in modules:
            where = f"{place(config)}, line {one.line}"
            if one.module == _KERBEROS:
                yield f"{where}: {one.module} has no effect here: Kerberos is not served"
            elif one.module not in _SERVED:
                raise ConfigError(
                    f"{where}: {one.module[:100]} is not served: the login modules are"
                    f" {', '.join(_SERVED)}"
                )


def _sections(config: BrokerConfig) -> dict[str, tuple[JaasEntry, ...]]:
    try:
        return parse_sections(config.text(TEXT))
    except ConfigError as problem:
        raise ConfigError(f"{place(config)}, {problem}") from None
