"""Required operations of every API: an operation on a resource, as in Apache Kafka's table (its
documentation, "Authorization Primitives").

A handler names its needs from here and asks the rights of the caller for them. ApiVersions and
DescribeCluster need nothing.
"""

from typing import Final, NamedTuple

from appliance.authorization.operations import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)


class Need(NamedTuple):
    """An operation on a resource of a kind. or_cluster: an operation on the cluster that does as
    well, 0: none. That DESCRIBE comes with READ, WRITE, DELETE or ALTER is the authorizer's
    matter."""

    operation: int
    kind: int
    or_cluster: int = 0


WRITE_TOPIC: Final = Need(WRITE, TOPIC)
READ_TOPIC: Final = Need(READ, TOPIC)
DESCRIBE_TOPIC: Final = Need(DESCRIBE, TOPIC)
CREATE_TOPIC: Final = Need(CREATE, TOPIC, or_cluster=CREATE)
DELETE_TOPIC: Final = Need(DELETE, TOPIC, or_cluster=DELETE)
SEE_DELETED_TOPIC: Final = Need(DESCRIBE, TOPIC, or_cluster=DELETE)
DELETE_RECORDS: Final = Need(DELETE, TOPIC)
ALTER_TOPIC: Final = Need(ALTER, TOPIC)
SEE_EPOCHS: Final = Need(DESCRIBE, TOPIC, or_cluster=CLUSTER_ACTION)
DESCRIBE_TOPIC_CONFIGS: Final = Need(DESCRIBE_CONFIGS, TOPIC)
ALTER_TOPIC_CONFIGS: Final = Need(ALTER_CONFIGS, TOPIC)

READ_GROUP: Final = Need(READ, GROUP)
DESCRIBE_GROUP: Final = Need(DESCRIBE, GROUP)
LIST_GROUP: Final = Need(DESCRIBE, GROUP, or_cluster=DESCRIBE)
DELETE_GROUP: Final = Need(DELETE, GROUP)
DESCRIBE_GROUP_CONFIGS: Final = Need(DESCRIBE_CONFIGS, GROUP)
ALTER_GROUP_CONFIGS: Final = Need(ALTER_CONFIGS, GROUP)

WRITE_TRANSACTION: Final = Need(WRITE, TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION: Final = Need(DESCRIBE, TRANSACTIONAL_ID)

ALTER_CLUSTER: Final = Need(ALTER, CLUSTER)
WRITE_MARKERS: Final = Need(ALTER, CLUSTER, or_cluster=CLUSTER_ACTION)
DESCRIBE_CLUSTER: Final = Need(DESCRIBE, CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Need(DESCRIBE_CONFIGS, CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = Need(ALTER_CONFIGS, CLUSTER)
ACT_AS_BROKER: Final = Need(CLUSTER_ACTION, CLUSTER)
WRITE_IDEMPOTENTLY: Final = Need(IDEMPOTENT_WRITE, CLUSTER)

WHOLE: Final[dict[int, Need]] = {
    8: READ_GROUP,
    9: DESCRIBE_GROUP,
    11: READ_GROUP,
    12: READ_GROUP,
    13: READ_GROUP,
    14: READ_GROUP,
    27: WRITE_MARKERS,
    28: READ_GROUP,
    29: DESCRIBE_CLUSTER,
    30: ALTER_CLUSTER,
    31: ALTER_CLUSTER,
    34: ALTER_CLUSTER,
    35: DESCRIBE_CLUSTER,
    43: ALTER_CLUSTER,
    45: ALTER_CLUSTER,
    46: DESCRIBE_CLUSTER,
    47: DELETE_GROUP,
    48: DESCRIBE_CLUSTER_CONFIGS,
    49: ALTER_CLUSTER_CONFIGS,
    50: DESCRIBE_CLUSTER,
    51: ALTER_CLUSTER,
    55: DESCRIBE_CLUSTER,
    56: ACT_AS_BROKER,
    57: ALTER_CLUSTER,
    58: ACT_AS_BROKER,
    62: ACT_AS_BROKER,
    63: ACT_AS_BROKER,
    64: ALTER_CLUSTER,
    67: ACT_AS_BROKER,
    68: READ_GROUP,
    70: ACT_AS_BROKER,
    73: ACT_AS_BROKER,
    74: DESCRIBE_CLUSTER_CONFIGS,
    80: ALTER_CLUSTER,
    81: ALTER_CLUSTER,
    82: ACT_AS_BROKER,
}
"""API key → what a request needs as a whole, on the cluster or on the one group that it names. What
each topic or group of a list needs, the handler asks for where it walks the list."""
