"""Resources with settings: topics, brokers and groups; and the refusal of every other kind.

`check_resource` is asked before anything of a resource is read or changed.
"""

from typing import NoReturn

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.controller.decision import Situation
from appliance.controller.names import check_topic_name
from appliance.metadata.image import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC


@dataclass(slots=True, frozen=True)
class ConfigResource:
    """A resource with settings. kind: TOPIC, GROUP, … or BROKER, of which the name "" is the
    cluster default."""

    kind: int
    name: str


def check_resource(
    situation: Situation, resource: ConfigResource, *, describing: bool = False
) -> None:
    """That the resource exists and has settings here. Raises PeerError, with the words that Kafka
    has for describing and for altering."""
    name = resource.name
    if resource.kind == TOPIC:
        _check_topic(situation, name, describing)
    elif resource.kind == BROKER:
        # Another node tells its own settings only; whoever decides changes those of all.
        others = () if describing else situation.image.brokers
        if name and _node(name, describing) not in (situation.node_id, *others):
            expected = f"{situation.node_id} or empty string" if describing else situation.node_id
            _refuse(f"Unexpected broker id, expected {expected}, but received {name[:20]}")
    elif resource.kind == BROKER_LOGGER:
        if _node(name, describing) != situation.node_id:
            text = "Unexpected node id. Expected {}, but received {}"
            if describing:
                text = "Unexpected broker id, expected {} but received {}"
            _refuse(text.format(situation.node_id, name[:20]))
    elif resource.kind == GROUP:
        if not name:
            empty = "Group name must not be empty"
            _refuse(empty if describing else "Default group resources are not allowed.")
    elif resource.kind == CLIENT_METRICS:
        if not name:
            empty = "Client metrics subscription name must not be empty"
            _refuse(empty if describing else "Subscription name can't be empty")
    else:
        _refuse(
            f"Unknown resource type {resource.kind}; types are 2 (topic), 4 (broker), 8 (broker"
            " logger), 16 (client metrics) and 32 (group)."
        )


def _check_topic(situation: Situation, name: str, describing: bool) -> None:
    if describing:
        check_topic_name(name)
    elif not name:
        _refuse("Default topic resources are not allowed.")
    if name not in situation.image.topics_by_name:
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name[:249]}' does not exist."
        )


def _node(name: str, describing: bool) -> int:
    if not name.isascii() or not name.isdigit():
        who = "Broker" if describing else "Node"
        _refuse(f"{who} id must be an integer, but it is: {name[:100]}")
    return int(name[:20])


def _refuse(text: str) -> NoReturn:
    raise PeerError(errors.INVALID_REQUEST, text)
