"""A node's description of itself in DescribeConfigs, and its view of other nodes for which Kafka
has no request.

It is the settings of a broker named `penstock:node`, a name that no broker can have, so that any
client library can ask. Apache Kafka refuses the name.
"""

from typing import Final

from appliance.config.setting import LIST, STRING
from appliance.handlers.admin import AdminContext
from appliance.metadata import effective
from appliance.metadata.effective import Explained

NODE: Final = "penstock:node"
VERSION: Final = "version"
ENDING: Final = "ending"


def explain_node(context: AdminContext) -> list[Explained]:
    """Its version; the brokers in controlled shutdown, as far as it has read the metadata: what
    they lead is being led by others, and by then they take no connections that could ask them. Who
    has ended so and is fenced is still among them, until it registers anew."""
    brokers = context.situation.image.brokers.values()
    ending = sorted(one.broker_id for one in brokers if one.in_controlled_shutdown)
    return [
        _told(VERSION, context.version, STRING, "The version of Penstock that this node runs."),
        _told(ENDING, ",".join(map(str, ending)), LIST, "The brokers in controlled shutdown."),
    ]


def _told(name: str, value: str, kind: int, doc: str) -> Explained:
    return Explained(
        name=name, value=value, source=effective.STATIC, read_only=True, sensitive=False,
        type=kind, doc=doc, synonyms=(),
    )  # fmt: skip
