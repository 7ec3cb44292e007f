"""Checks of `process.roles` against other settings, as in Apache Kafka's `KafkaConfig`.

Called by `load.py`.
"""

from collections.abc import Iterator

from appliance.base.errors import ConfigError
from appliance.config import tls_checks
from appliance.config.broker import BrokerConfig


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError for what does not fit."""
    if not config.list("process.roles"):
        raise ConfigError("process.roles: a node is broker, controller, or both")
    if not (config.is_broker and config.is_controller):
        _check_single(config)
    yield from ()


def _check_single(config: BrokerConfig) -> None:
    """A node that is not all of a cluster."""
    role = "broker" if config.is_broker else "controller"
    names, ids = config.list("controller.listener.names"), [one.node_id for one in config.voters()]
    if not ids and not config.seeds():
        raise ConfigError(
            f"process.roles={role}: controller.quorum.voters must name the controllers, for example"
            " 1@localhost:9093"
        )
    if not names:
        raise ConfigError(f"process.roles={role}: controller.listener.names must name a listener")
    all_names = [one.name for one in config.all_listeners()]
    controllers = [one for one in all_names if config.is_controllers(one)]
    others = [one for one in all_names if one not in controllers]
    if config.is_controller:
        if others:
            raise ConfigError(
                "process.roles=controller: listeners must only have those of"
                f" controller.listener.names ({', '.join(names)}), not {', '.join(others)}"
            )
        return
    if config.int("node.id") in ids:
        raise ConfigError(
            f"process.roles=broker: node.id={config.int('node.id')} must not be among the voters"
            f" {ids}; give this node another number, or both roles"
        )
    if controllers:
        raise ConfigError(
            "process.roles=broker: listeners must not have those of controller.listener.names"
            f" ({', '.join(controllers)})"
        )


def check_inter_broker(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError where brokers are to come by a listener that is not there."""
    name, there = (
        config.get_value("inter.broker.listener.name"),
        [o.name for o in config.endpoints()],
    )
    if config.is_broker and name is not None and name not in there:
        raise ConfigError(
            f"inter.broker.listener.name={name} must be one of the listeners for clients and"
            f" brokers: {', '.join(there)}"
        )
    yield from tls_checks.check_between_brokers(config)
