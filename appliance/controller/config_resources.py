"""What can have settings: topics, brokers, groups; and what is said of the rest.

`check_resource` is asked before anything of a resource is read or changed.
"""

from dataclasses import dataclass

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import Situation
from appliance.metadata.image import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC


@dataclass(slots=True, frozen=True)
class Resource:
    """What has settings. kind: TOPIC, GROUP, … or BROKER, of which the name "" is the cluster
    default."""

    kind: int
    name: str


def check_resource(situation: Situation, resource: Resource) -> None:
    """That the resource exists and has settings here. Raises PeerError."""
    name = resource.name
    if resource.kind == TOPIC:
        _check_topic(situation, name)
    elif resource.kind == BROKER:
        _check_broker(situation, name)
    elif resource.kind == BROKER_LOGGER:
        _check_logger(situation, name)
    elif resource.kind == GROUP:
        _check_named(name, "Group name must not be empty.")
    elif resource.kind == CLIENT_METRICS:
        _check_named(name, "Client metrics subscription name must not be empty.")
    else:
        raise PeerError(
            errors.INVALID_REQUEST,
            f"Unknown resource type {resource.kind}; types are 2 (topic), 4 (broker), 8 (broker"
            " logger), 16 (client metrics) and 32 (group).",
        )


def _check_named(name: str, text: str) -> None:
    if not name:
        raise PeerError(errors.INVALID_REQUEST, text)


def _check_topic(situation: Situation, name: str) -> None:
    _check_named(name, "Default topic resources are not allowed.")
    if name not in situation.image.topics_by_name:
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name[:249]}' does not exist."
        )


def _node(name: str) -> int:
    if not name.isascii() or not name.isdigit():
        raise PeerError(
            errors.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name[:100]!r}."
        )
    return int(name[:20])


def _check_broker(situation: Situation, name: str) -> None:
    if name and _node(name) not in situation.image.brokers:
        known = ", ".join(map(str, sorted(situation.image.brokers)))
        raise PeerError(
            errors.BROKER_ID_NOT_REGISTERED,
            f"No broker with id {name[:20]} found; registered are: {known}.",
        )


def _check_logger(situation: Situation, name: str) -> None:
    """Every broker knows its own loggers only."""
    if _node(name) != situation.node_id:
        raise PeerError(
            errors.INVALID_REQUEST,
            f"Unexpected broker id, expected {situation.node_id} but received {name[:20]}.",
        )
