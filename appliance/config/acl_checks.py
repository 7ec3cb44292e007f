"""The settings of ACLs: what decides, who may do everything, and what is wrong with them.

Called by `load.py`, and by whoever makes an authorizer.
"""

from collections.abc import Iterator
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config import node_logins
from appliance.config.broker import BrokerConfig

CLASS_NAME: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
NODES: Final = "penstock.node.principals"
OPEN: Final = "allow.everyone.if.no.acl.found"
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_SSL: Final = "SSL"
_ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of nodes over PLAINTEXT."""


def is_secured(config: object) -> bool:
    """True if somebody decides who may do what."""
    return isinstance(config, BrokerConfig) and bool(config.text(CLASS_NAME))


def is_open(config: object) -> bool:
    """True if everybody may do everything with what no rule names."""
    return isinstance(config, BrokerConfig) and config.bool(OPEN)


def super_users(config: object) -> tuple[str, ...]:
    """Principals (`type:name`) that may do everything. Raises ConfigError."""
    return _principals(config, SUPER_USERS)


def nodes(config: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Principals (`type:name`) that are nodes of the cluster, and the listeners where they are
    known: those with the protocol SSL by their certificates, and those where nodes log in. Where
    nodes log in and neither rules nor `penstock.node.principals` say who is a node, it is the user
    that this node logs in as. Raises ConfigError."""
    named = _principals(config, NODES)
    if not isinstance(config, BrokerConfig):
        return named, ()
    listeners = [name for name, protocol in config.protocols().items() if protocol == _SSL]
    ways = tuple(node_logins.routes(config))
    listeners += [way.listener for _, way in ways]
    if not (named or is_secured(config)):
        users = [node_logins.credentials(config, *one).user for one in ways]
        named = tuple(f"User:{one}" for one in dict.fromkeys(users))
    return named, tuple(listeners)


def _principals(config: object, key: str) -> tuple[str, ...]:
    text = config.text(key) if isinstance(config, BrokerConfig) else ""
    found = tuple(one.strip() for one in text.split(";") if one.strip())
    for one in found:
        if ":" not in one:
            raise ConfigError(
                f"{key}: {one} is no principal; write TYPE:NAME, several with a semicolon"
                f" between them, for example User:{one}"
            )
    return found


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError for an authorizer that is not served, and where nodes would
    refuse each other."""
    name = config.text(CLASS_NAME)
    if name and name != STANDARD:
        raise ConfigError(
            f"{CLASS_NAME}: {name} is not supported; ACLs are decided as by {STANDARD}: set that"
        )
    users = (*super_users(config), *nodes(config)[0])
    alone = config.is_broker and config.is_controller and not config.seeds()
    if name and not (alone and len(config.voters()) <= 1) and not users:
        raise ConfigError(
            f"{CLASS_NAME}: {NODES} or {SUPER_USERS} must name whom nodes are to each other, or"
            f" they refuse each other: {_ANONYMOUS} over PLAINTEXT, the subjects of their"
            " certificates over SSL, the users that they log in as over SASL"
        )
    if name and not super_users(config) and not is_open(config):
        yield (
            f"{CLASS_NAME} without {SUPER_USERS}: no principal may add the first ACL; name an"
            f" administrator, for example {SUPER_USERS}=User:admin"
        )


def check_idle(config: BrokerConfig) -> Iterator[str]:
    """A warning about settings of an authorizer that there is not."""
    for key in (SUPER_USERS, OPEN):
        if config.entry(key) is not None and not is_secured(config):
            yield f"{key} has no effect without {CLASS_NAME}: every client may do everything"


def check_nodes(config: BrokerConfig) -> Iterator[str]:
    """A warning where nobody can be a node. Raises ConfigError for what is no principal."""
    principals, listeners = nodes(config)
    opened = {one.name for one in config.all_listeners()} | set(
        config.list("controller.listener.names")
    )
    if principals and not opened.intersection(listeners):
        yield (
            f"{NODES} has no effect on who is a node: no listener stands for SSL, and at none do"
            " nodes log in; map those of nodes in listener.security.protocol.map"
        )
