"""Logins of this node at other nodes, where the listener by which nodes reach one another asks for
a login.

The settings are `sasl.mechanism.inter.broker.protocol`, `sasl.mechanism.controller.protocol`, and
username and password in `listener.name.NAME.MECHANISM.sasl.jaas.config` or in a JAAS file, as in
Apache Kafka. Called by the checks of settings, and by who connects to other nodes.
"""

from collections.abc import Iterator
from typing import Final

from appliance.authentication.client_login import NodeCredentials
from appliance.authentication.mechanisms import ABSENT, BY_NAME, PLAIN
from appliance.base.errors import ConfigError
from appliance.config import jaas_file, logins
from appliance.config.between_nodes import NodeRoute, to_brokers, to_controllers
from appliance.config.broker import BrokerConfig
from appliance.config.listener_settings import key_of

BROKERS: Final = "sasl.mechanism.inter.broker.protocol"
CONTROLLERS: Final = "sasl.mechanism.controller.protocol"
SERVED: Final = (PLAIN, *BY_NAME)


def routes(config: BrokerConfig) -> Iterator[tuple[str, NodeRoute]]:
    """(setting of the mechanism, route) of each route to other nodes on which this one logs in."""
    if not config.several:
        return
    ways = []
    if config.list("controller.listener.names"):
        ways.append((CONTROLLERS, to_controllers(config)))
    if config.is_broker:
        ways.append((BROKERS, to_brokers(config)))
    for key, way in ways:
        if way.protocol in logins.PROTOCOLS:
            yield key, way


def credentials(config: BrokerConfig, setting: str, way: NodeRoute) -> NodeCredentials:
    """The login of this node on a route. setting: of its mechanism. Raises ConfigError."""
    mechanism = config.text(setting)
    if mechanism not in SERVED:
        default = "" if config.entry(setting) else ", the default"
        why = ABSENT.get(mechanism, "nodes do not log in by it")
        raise ConfigError(
            f"{setting}={mechanism}{default}: {why}; nodes log in at {way.listener} by"
            f" {', '.join(SERVED)}"
        )
    options = logins.options(config, way.listener, mechanism)
    user, password = options.get("username", ""), options.get("password", "")
    if not (user and password):
        key = _place(config, way, mechanism)
        raise ConfigError(
            f"{key}: {way.listener} leads to other nodes and {setting}={mechanism}: it must have"
            ' username="…" password="…", with which this node logs in at the others'
        )
    return NodeCredentials(mechanism, user, password)


def _place(config: BrokerConfig, way: NodeRoute, mechanism: str) -> str:
    """Where the login of a route stands, or has to."""
    if jaas_file.is_given(config) and not logins.has_own(config, way.listener, mechanism):
        return f"{jaas_file.place(config)}, section {jaas_file.SECTION}"
    return key_of(way.listener, f"{mechanism.lower()}.{logins.JAAS}")


def at_listener(config: BrokerConfig, listener: str) -> NodeCredentials | None:
    """The login with which the nodes of this cluster come to a listener, as this node has it; None
    where they come by another listener, or without a login. Raises ConfigError."""
    for setting, way in routes(config):
        if way.listener == listener:
            return credentials(config, setting, way)
    return None


def needs_file(config: BrokerConfig) -> bool:
    """True if a login has no setting of its own, so that a JAAS file counts. Raises ConfigError."""
    asked = [(way.listener, config.text(setting)) for setting, way in routes(config)]
    protocols = config.protocols()
    for one in config.opened():
        if protocols.get(one.name) in logins.PROTOCOLS:
            offered = config.list(config.key_for(one.name, logins.MECHANISMS))
            asked += [(one.name, mechanism) for mechanism in offered]
    return any(not logins.has_own(config, *one) for one in asked)


def check_brokers(config: BrokerConfig) -> Iterator[str]:
    """Warnings about the logins of brokers at brokers. Raises ConfigError."""
    return _check(config, BROKERS)


def check_controllers(config: BrokerConfig) -> Iterator[str]:
    """The same, of nodes at controllers."""
    return _check(config, CONTROLLERS)


def _check(config: BrokerConfig, setting: str) -> Iterator[str]:
    way = dict(routes(config)).get(setting)
    if way is None:
        if config.entry(setting) is not None:
            yield f"{setting} has no effect here: this node logs in at no other node by it"
        return
    found = credentials(config, setting, way)
    here = {one.name for one in config.opened()}
    if way.listener in here:
        offered = config.list(config.key_for(way.listener, logins.MECHANISMS))
        if found.mechanism not in offered:
            raise ConfigError(
                f"{setting} must be included in {logins.MECHANISMS} when SASL is used between"
                f" nodes: {way.listener} does not offer {found.mechanism}"
            )
    users = logins.options(config, way.listener, PLAIN)
    known = f"user_{found.user}" in users
    if found.mechanism == PLAIN and setting == CONTROLLERS and way.listener in here and not known:
        key = _place(config, way, PLAIN)
        raise ConfigError(
            f'{key}: it must have user_{found.user}="PASSWORD": other users are in the metadata,'
            " which a controller has after it has logged in"
        )
