"""Node facts outside of Kafka's requests: the Penstock version of each node, and which of them are
in controlled shutdown.

A version is known to its node alone, so each is asked. Who is in controlled shutdown takes no new
connections, and the others know of it. Apache Kafka's nodes, and older ones of ours, refuse what is
asked here.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.cluster.nodes import RUNNING, Node, Nodes, controllers

_DESCRIBE_CONFIGS: Final = (32, 4)
_BROKER: Final = 4
_ANSWERING: Final = "penstock:node"
"""What is described of whoever answers (appliance/handlers/this_node.py)."""
ENDING: Final = "ending"


@dataclass(slots=True, frozen=True)
class Told:
    """versions: of the nodes that say it, by id, as `penstock version` says it there. ending: ids
    of those whose leadership is on its way to others."""

    versions: dict[int, str] = field(default_factory=dict)
    ending: frozenset[int] = frozenset()

    def state(self, node: Node) -> str:
        """A node's state in one word."""
        return ENDING if node.state == RUNNING and node.id in self.ending else node.state


def read_versions(link: Link, found: Nodes) -> Told:
    """By those that live. Who is no broker is asked where controllers listen."""
    living = [one for one in found.all.values() if one.lives]
    alone: dict[int, str] = {}
    with suppress(Failure):  # nobody leads: nobody tells where they listen
        alone = controllers(link) if not all(one.address for one in living) else {}
    versions: dict[int, str] = {}
    ending: set[int] = set()
    for one in living:
        address = one.address or alone.get(one.id)
        said = _asked(link, address) if address else {}
        if "version" in said:
            versions[one.id] = said["version"]
            ending.update(int(each) for each in said["ending"].split(",") if each.isdecimal())
    return Told(versions, frozenset(ending))


def _asked(link: Link, address: str) -> dict[str, str]:
    """The settings that are told there, none where they are refused."""
    resource = {"resource_type": _BROKER, "resource_name": _ANSWERING, "configuration_keys": None}
    values = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    try:
        (result,) = ask_server(link, *_DESCRIBE_CONFIGS, values, address).results
    except Failure:
        return {}
    settings = {"ending": ""} | {str(one.name): str(one.value) for one in result.configs}
    return {} if result.error_code else settings
