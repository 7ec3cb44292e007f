"""Which listeners may speak TLS, and settings of TLS that are of no listener that does.

Called by `load.py` and `several_listeners.py`. Whether certificates can be had of files is asked
elsewhere (`certificates/validation.py`): settings are values.
"""

from collections.abc import Iterator
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config import between_nodes, jaas_file, logins
from appliance.config.broker import BrokerConfig
from appliance.config.listener_settings import declared, is_tls, key_of, split

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
SERVED: Final = (PLAINTEXT, SSL, *logins.PROTOCOLS)
SPEAKING: Final = (SSL, logins.SASL_SSL)
_MAP: Final = "listener.security.protocol.map"
_BETWEEN: Final = "security.inter.broker.protocol"


def check_protocols(config: BrokerConfig) -> None:
    """Checks the protocols of all open listeners. Raises ConfigError."""
    protocols = config.protocols()
    for item in config.list(_MAP):
        named = item.partition(":")[2].strip().upper()
        if named not in SERVED:
            raise ConfigError(
                f"{_MAP}: Invalid security protocol {named[:40]!r} in {item[:80]!r}: it takes"
                f" NAME:PROTOCOL with {', '.join(SERVED)}"
            )
    for one in config.opened():
        protocol = protocols.get(one.name)
        if config.is_controllers(one.name):
            if protocol not in SERVED:
                raise ConfigError(
                    f"listeners: {one.name} is for controllers and stands for {protocol}; between"
                    f" nodes {', '.join(SERVED)} are served: map it in {_MAP}={one.name}:SSL,…"
                )
        elif protocol not in SERVED:
            raise ConfigError(
                f"listeners: {one.name} stands for {protocol or 'no protocol'}; use"
                f" PLAINTEXT://HOST:PORT, SSL://HOST:PORT, SASL_SSL://HOST:PORT or"
                f" SASL_PLAINTEXT://HOST:PORT, or map the name in {_MAP}"
            )
    _check_way_of_nodes(config, protocols)


def _check_way_of_nodes(config: BrokerConfig, protocols: dict[str, str]) -> None:
    names, way = [one.name for one in config.endpoints()], between_nodes.to_brokers(config)
    if not config.several or not names or way.named or way.protocol not in SERVED:
        return
    if way.protocol not in map(protocols.get, names):
        raise ConfigError(
            f"listeners: the other nodes come by {way.protocol} ({_BETWEEN}), and none of"
            f" {', '.join(names)} stands for that: set {_BETWEEN}=SSL, or name the listener in"
            " inter.broker.listener.name; or, where this node is alone, leave out the listener of"
            " controller.listener.names"
        )


def check_between_brokers(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError where nodes are to speak what is not served."""
    key, name = "inter.broker.listener.name", config.get_value("inter.broker.listener.name")
    if name is not None and config.several and config.is_broker:
        protocol = config.protocols().get(str(name).upper())
        if protocol not in SERVED:
            raise ConfigError(
                f"{key}={name}: it stands for {protocol}, and between nodes {', '.join(SERVED)} are"
                " served: name a listener that stands for one of them"
            )
    yield from ()


def check_protocol_between(config: BrokerConfig) -> Iterator[str]:
    """As above, of security.inter.broker.protocol."""
    protocol = config.text(_BETWEEN).upper()
    if protocol not in SERVED:
        raise ConfigError(
            f"{_BETWEEN}={protocol}: between nodes {', '.join(SERVED)} are served; take one of them"
        )
    if config.entry(_BETWEEN) is not None and config.get_value("inter.broker.listener.name"):
        raise ConfigError(
            f"{_BETWEEN}: Only one of inter.broker.listener.name and {_BETWEEN} should be set; take"
            " one of them out"
        )
    if protocol != PLAINTEXT and not config.several:
        yield f"{_BETWEEN} has no effect here: this node is alone"


def remarks(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """(key, words) of what was set and has no effect."""
    protocols = config.protocols()
    try:
        opened = {one.name: protocols.get(one.name) for one in config.opened()}
    except ConfigError:
        return  # which is said of the listeners
    for name in config.list("controller.listener.names"):  # of a broker that is no controller
        opened.setdefault(name, protocols.get(name))
    speaks = any(one in SPEAKING for one in opened.values())
    logs_in = any(one in logins.PROTOCOLS for one in opened.values())
    for key in config.set_names():
        parts = split(key)
        if parts is not None:
            why = _of_no_listener(*parts, opened, config)
        elif is_tls(key) and not speaks and not declared(key).inert:
            why = "no listener speaks TLS; SSL://HOST:PORT in listeners does"
        elif key == jaas_file.TEXT and config.entry(jaas_file.FILE) is not None:
            why = ""  # it is of that file, which is told
        elif logins.concerns_logins(key) and not logs_in and not declared(key).inert:
            why = "no listener asks for a login; SASL_SSL://HOST:PORT in listeners does"
        else:
            why = ""
        if why:
            yield key, f"{key} has no effect here: {why}"


def _of_no_listener(
    listener: str, base: str, opened: dict[str, str | None], config: BrokerConfig
) -> str:
    name = listener.upper()
    if listener != listener.lower():
        return f"a listener's name is in lower case there: {key_of(listener, base)}"
    if name not in opened:
        return f"there is no listener {name}, only {', '.join(opened)}"
    if is_tls(base) and opened[name] not in SPEAKING:
        return f"{name} stands for {opened[name]}, and does not speak TLS"
    if logins.concerns_logins(key_of(listener, base)):
        return logins.remark(name, base, opened[name], config)
    return ""
