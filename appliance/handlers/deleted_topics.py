"""The deleted topics that can be brought back, as DescribeConfigs shows them.

They are the settings of a topic named `penstock:deleted`, so that any client library can ask: the
key is the topic's id, the value JSON with name, times in ms, bytes, records and partitions. Those
of `penstock:deleted:NAME` are what this very node keeps of topics of that name, with the partitions
whose folders it has: nodes ask each other for them (`control/broker/broker_asker.py`).
"""

import json
from typing import Final

from appliance.authorization.needs import ACT_AS_BROKER, DESCRIBE_TOPIC_CONFIGS
from appliance.authorization.operations import TEXTS
from appliance.base.errors import PeerError
from appliance.config.setting import STRING
from appliance.handlers.admin import AdminContext
from appliance.metadata import effective, trash
from appliance.metadata.effective import Explained
from appliance.metadata.trash import RETENTION_MS
from appliance.wire.uuids import format_uuid

DELETED: Final = "penstock:deleted"
LATER: Final = "not yet"
"""A key without a value: this node has not replayed a deletion yet, or not noted it."""


def one_name(name: str) -> str:
    """The resource name that describes the deleted topics of one name."""
    return f"{DELETED}:{name}"


def explain_kept(context: AdminContext, name: str) -> list[Explained]:
    """This node's copies of deleted topics of this name. Raises PeerError."""
    if code := context.rights.refusal(ACT_AS_BROKER):
        raise PeerError(code, TEXTS[code])
    situation = context.situation
    said = [
        (format_uuid(one.buried.topic_id), trash.encode_kept(one))
        for one in context.kept(name).get(situation.node_id, ())
    ]
    if name in situation.image.topics_by_name or not context.settled(name):
        said.append((LATER, ""))
    return [_explained(key, value) for key, value in said]


def explain_deleted(context: AdminContext) -> list[Explained]:
    """One for each, the oldest deletion first. Not shown: a topic that is on its way back, and one
    whose settings the caller may not see."""
    situation = context.situation
    config = effective.broker_config(situation.image, situation.config)
    kept_ms = config.int(RETENTION_MS)
    found = []
    for one in context.trash.topics.values():
        if one.topic_id in situation.image.topics_by_id:
            continue
        if not context.rights.may(DESCRIBE_TOPIC_CONFIGS, one.name):
            continue
        told = {
            "name": one.name,
            "deleted_ms": one.deleted_ms,
            "until_ms": one.deleted_ms + kept_ms,
            "bytes": one.size,
            "records": one.records,
            "partitions": one.partitions,
        }
        found.append(_explained(format_uuid(one.topic_id), json.dumps(told)))
    return found


def _explained(key: str, value: str) -> Explained:
    return Explained(
        name=key,
        value=value,
        source=effective.TOPIC_OVERRIDE,
        read_only=True,
        sensitive=False,
        type=STRING,
        doc="A deleted topic that can be brought back.",
        synonyms=(),
    )
