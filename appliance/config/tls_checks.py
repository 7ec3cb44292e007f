"""Which listeners may speak TLS, and settings of TLS that are of no listener that does.

Called by `load.py` and `several_listeners.py`. Whether certificates can be had of files is asked
elsewhere (`certificates/checking.py`): settings are values.
"""

from collections.abc import Iterator
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig
from appliance.config.listener_settings import declared, is_tls, key_of, split

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
_MAP: Final = "listener.security.protocol.map"


def check_protocols(config: BrokerConfig) -> None:
    """Checks the protocols of all open listeners. Raises ConfigError."""
    protocols = config.protocols()
    for one in config.opened():
        protocol = protocols.get(one.name)
        if config.is_controllers(one.name):
            if protocol != PLAINTEXT:
                raise ConfigError(
                    f"listeners: {one.name} is for controllers and stands for {protocol}; between"
                    f" nodes only PLAINTEXT is served yet: map it in {_MAP}={one.name}:PLAINTEXT,…"
                )
        elif protocol is not None and protocol.startswith("SASL_"):
            raise ConfigError(
                f"listeners: {one.name} stands for {protocol}, and SASL is not served yet; use SSL,"
                " where clients can show who they are by certificates (ssl.client.auth), or"
                " PLAINTEXT"
            )
        elif protocol not in (PLAINTEXT, SSL):
            raise ConfigError(
                f"listeners: {one.name} stands for {protocol or 'no protocol'}; use"
                f" PLAINTEXT://HOST:PORT or SSL://HOST:PORT, or map the name in {_MAP}"
            )
    names = [one.name for one in config.endpoints()]
    if config.several and names and PLAINTEXT not in map(protocols.get, names):
        raise ConfigError(
            f"listeners: the other nodes come by PLAINTEXT, and {', '.join(names)} speaks TLS: add"
            " a listener for them, for example PLAINTEXT://:9092, and open it to nobody else; or,"
            " where this node is alone, leave out the listener of controller.listener.names"
        )


def check_between_brokers(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError where nodes are to speak something else than plaintext."""
    key, name = "inter.broker.listener.name", config.get("inter.broker.listener.name")
    if name is not None and config.several and config.is_broker:
        protocol = config.protocols().get(str(name).upper())
        if protocol != PLAINTEXT:
            raise ConfigError(
                f"{key}={name}: it stands for {protocol}, and between nodes only PLAINTEXT is"
                " served yet: name a listener that stands for PLAINTEXT"
            )
    yield from ()


def check_protocol_between(config: BrokerConfig) -> Iterator[str]:
    """As above, of security.inter.broker.protocol."""
    key = "security.inter.broker.protocol"
    protocol = config.text(key)
    if protocol == PLAINTEXT:
        return
    if config.several:
        raise ConfigError(
            f"{key}={protocol}: between nodes only PLAINTEXT is served yet; take the setting out,"
            " and have a PLAINTEXT listener for them"
        )
    yield f"{key} has no effect here: this node is alone"


def remarks(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """(key, words) of what was set and has no effect."""
    protocols = config.protocols()
    try:
        opened = {one.name: protocols.get(one.name) for one in config.opened()}
    except ConfigError:
        return  # which is said of the listeners
    speaks = SSL in opened.values()
    for key in config.set_names():
        parts = split(key)
        if parts is not None:
            why = _of_no_listener(*parts, opened)
        elif is_tls(key) and not speaks and not declared(key).inert:
            why = "no listener speaks TLS; SSL://HOST:PORT in listeners does"
        else:
            why = ""
        if why:
            yield key, f"{key} has no effect here: {why}"


def _of_no_listener(listener: str, base: str, opened: dict[str, str | None]) -> str:
    name = listener.upper()
    if listener != listener.lower():
        return f"a listener's name is in lower case there: {key_of(listener, base)}"
    if name not in opened:
        return f"there is no listener {name}, only {', '.join(opened)}"
    if is_tls(base) and opened[name] != SSL:
        return f"{name} stands for {opened[name]}, and does not speak TLS"
    return ""
