"""The deleted topics that can be brought back, as DescribeConfigs shows them.

They are the settings of a topic named `penstock:deleted`, so that any client library can ask: the
key is the topic's id, the value JSON with name, times in ms, bytes, records and partitions.
"""

import json
from typing import Final

from appliance.authorization.needs import DESCRIBE_TOPIC_CONFIGS
from appliance.config.setting import STRING
from appliance.handlers.admin import AdminContext
from appliance.metadata import effective
from appliance.metadata.effective import Explained
from appliance.metadata.trash import RETENTION_MS
from appliance.wire.uuids import format_uuid

DELETED: Final = "penstock:deleted"


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
        if context.rights.refusal(DESCRIBE_TOPIC_CONFIGS, one.name):
            continue
        told = {
            "name": one.name,
            "deleted_ms": one.deleted_ms,
            "until_ms": one.deleted_ms + kept_ms,
            "bytes": one.size,
            "records": one.records,
            "partitions": one.partitions,
        }
        found.append(
            Explained(
                name=format_uuid(one.topic_id),
                value=json.dumps(told),
                source=effective.TOPIC_OVERRIDE,
                read_only=True,
                sensitive=False,
                type=STRING,
                doc="A deleted topic that can be brought back.",
                synonyms=(),
            )
        )
    return found
