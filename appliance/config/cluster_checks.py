"""Checks of settings of a node in a cluster.

What is wrong is raised as ConfigError, what is only unwise is given back to be said. Called by
`load.py`, once for each key that a person would look at.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config import between_nodes
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import EVERYWHERE, LOOPBACK, StaticVoter, parse_endpoint

Said = Iterator[str]
"""Warnings; what is wrong is raised as ConfigError."""
_TOLD: Final = "advertised.listeners"
_VOTERS: Final = "controller.quorum.voters"
BEGINS: Final = (
    "a new cluster begins with one node that is started with --standalone, or with all first voters"
    " started with the same --initial-controllers"
)
"""The remedy where voters come and go and nobody votes yet."""


def voters(config: BrokerConfig) -> Said:
    """controller.quorum.voters: who they are, and whether this node is where they look for it."""
    found = config.voters()
    if not found:
        return
    if len(found) > 1 and "node.id" not in config.set_names():
        raise ConfigError(
            f"{_VOTERS}: node.id is not set, and of several nodes each has a number of its own;"
            " set node.id to the number that this node has in the list"
        )
    _each_its_own(config, found)
    if not config.several:
        yield f"{_VOTERS}: this node alone is a cluster of one"
        return
    yield from _places(found)
    if config.is_controller:
        yield from _own_listener(config, found)
    if len(found) == 2:
        yield (
            f"{_VOTERS}: both of 2 voters have to be there, so that two are away more often than"
            " one; name three"
        )
    elif len(found) % 2 == 0:
        yield (
            f"{_VOTERS}: {len(found)} voters tolerate the loss of {len(found) // 2 - 1}, as"
            f" {len(found) - 1} do; an odd number is better"
        )


def who_begins(config: BrokerConfig) -> str:
    """Returns the warning that a file with dynamic voters names no first voters, "" if it does or
    needs none."""
    seeds = "controller.quorum.bootstrap.servers"
    joins = config.bool("controller.quorum.auto.join.enable")
    if joins or not config.is_controller or config.list(_VOTERS) or len(config.list(seeds)) < 2:
        return ""
    return (
        f"{seeds}: who votes first is said by the command line: {BEGINS}; who joins needs neither"
    )


def _each_its_own(config: BrokerConfig, found: Sequence[StaticVoter]) -> None:
    ids, node_id = [one.node_id for one in found], config.int("node.id")
    if config.is_controller and node_id not in ids:
        raise ConfigError(
            f"{_VOTERS}: node.id={node_id} is not among {ids}, and controllers vote; set node.id"
            " to the number of this node, or add it to the list"
        )
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{_VOTERS}: each voter needs a number of its own, there are {ids}")


def _places(found: Sequence[StaticVoter]) -> Said:
    taken: dict[tuple[str, int], int] = {}
    for one in found:
        other = taken.setdefault((one.host.lower(), one.port), one.node_id)
        if other != one.node_id:
            raise ConfigError(
                f"{_VOTERS}: {other} and {one.node_id} are both at {one.host}:{one.port}; on one"
                " host each needs a port of its own"
            )
        if one.host in EVERYWHERE:
            raise ConfigError(
                f"{_VOTERS}: nobody can connect to {one.host}: name the host of node"
                f" {one.node_id} as the others reach it"
            )
    here = [one for one in found if one.host.lower() in LOOPBACK]
    if 0 < len(here) < len(found):
        yield (
            f"{_VOTERS}: {here[0].host} is another host to each node, so that not all of them find"
            f" {[one.node_id for one in here]}; name the host as all others reach it"
        )


def _own_listener(config: BrokerConfig, found: Sequence[StaticVoter]) -> Said:
    """The others come to where the list says that this node is."""
    names = config.list("controller.listener.names")
    opened = [one for one in config.opened() if config.is_controllers(one.name)]
    # Voters are reached by the first name, which need not be the first of listeners.
    way = between_nodes.to_controllers(config).listener
    listener = next((one for one in opened if one.name == way), opened[0] if opened else None)
    (mine,) = (one for one in found if one.node_id == config.int("node.id"))
    if listener is None:
        raise ConfigError(
            f"{_VOTERS}: the other voters reach this node by a controller listener"
            f" ({', '.join(names)}), and listeners has none: add"
            f" {names[0] if names else 'CONTROLLER'}://{mine.host}:{mine.port}"
        )
    told = [
        one.port
        for one in (parse_endpoint(_TOLD, text) for text in config.list(_TOLD))
        if one.name == listener.name
    ]
    if listener.port != mine.port and mine.port not in told:
        raise ConfigError(
            f"{_VOTERS}: the others look for node {mine.node_id} at port {mine.port}, and"
            f" {listener.name} in listeners has port {listener.port}; make them the same, or, where"
            " addresses are translated, say so by"
            f" advertised.listeners={listener.name}://{mine.host}:{mine.port}"
        )
    if listener.host.lower() in LOOPBACK and mine.host.lower() not in LOOPBACK and not told:
        yield (
            f"listeners: {listener.name} is opened on {listener.host} alone, and the others look"
            f" for this node at {mine.host}: if that is not this address,"
            f" {listener.name}://:{mine.port} takes them in"
        )


def advertised(config: BrokerConfig) -> Said:
    """advertised.listeners: whether clients, and the other nodes, can connect to what they are
    told."""
    told = {one.name: one for one in (parse_endpoint(_TOLD, text) for text in config.list(_TOLD))}
    for one in told.values():
        if one.host in EVERYWHERE[1:] or not one.port:
            raise ConfigError(
                f"{_TOLD}: nobody can connect to {one.host}:{one.port}: name a host, or none for"
                " this host's own name, and the port that is reached"
            )
    if not config.several:
        return
    far = [one.host for one in config.voters() if one.host.lower() not in LOOPBACK]
    for one in config.endpoints():
        if one.name not in told and (one.host in EVERYWHERE[1:] or not one.port):
            raise ConfigError(
                f"listeners: the other nodes, and clients that they tell of this one, cannot"
                f" connect to {one.host}:{one.port}: leave the host out, which tells them this"
                f" host's own name, or say what they reach by {_TOLD}={one.name}://HOST:PORT"
            )
        at = told.get(one.name, one)
        if far and at.host.lower() in LOOPBACK:
            yield (
                f"{_TOLD}: the other nodes, and clients that they tell of this one, look for it at"
                f" {at.host}:{at.port}, which is another host to each; set"
                f" {_TOLD}={one.name}://HOST:{at.port}"
            )


def copies(config: BrokerConfig) -> Said:
    """default.replication.factor: how many nodes keep what nobody decided about."""
    factor = config.int("default.replication.factor")
    if not config.several:
        if factor > 1:
            yield (
                f"default.replication.factor={factor}: one broker keeps one copy, so topics that"
                " are created without a replication factor of their own will be refused; set it"
                " to 1"
            )
    elif factor == 1 and config.brokers > 1 and config.is_controller:  # which decides that
        yield (
            "default.replication.factor=1: topics that are created without a replication factor of"
            " their own are kept by one node only, and are away with it; set it to"
            f" {min(3, config.brokers)}"
        )


def in_sync(config: BrokerConfig) -> Said:
    """min.insync.replicas: how many nodes have what is acknowledged."""
    if not config.several:
        return
    factor, least = config.int("default.replication.factor"), config.int("min.insync.replicas")
    if factor > 1 and least == 1:
        yield (
            "min.insync.replicas=1: with acks=all a record may be acknowledged that only one node"
            " has, while the others are away; set it to 2"
        )
    elif 1 < factor <= least:
        yield (
            f"min.insync.replicas={least}: of {factor} replicas none may be away, or writes with"
            f" acks=all are refused; set it to {factor - 1}"
        )
