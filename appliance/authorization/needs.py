"""Required operations of every API: an operation on a resource, as in Apache Kafka's table (its
documentation, "Authorization Primitives").

`authorization/apis.py` says what a request of each API needs as a whole. ApiVersions and
DescribeCluster need nothing.
"""

from typing import Final, NamedTuple

from appliance.authorization.operations import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    CREATE_TOKENS,
    DELEGATION_TOKEN,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOKENS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
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

CREATE_TOKENS_OF_USER: Final = Need(CREATE_TOKENS, USER)
DESCRIBE_TOKENS_OF_USER: Final = Need(DESCRIBE_TOKENS, USER)
DESCRIBE_TOKEN: Final = Need(DESCRIBE, DELEGATION_TOKEN)

ALTER_CLUSTER: Final = Need(ALTER, CLUSTER)
WRITE_MARKERS: Final = Need(ALTER, CLUSTER, or_cluster=CLUSTER_ACTION)
DESCRIBE_CLUSTER: Final = Need(DESCRIBE, CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Need(DESCRIBE_CONFIGS, CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = Need(ALTER_CONFIGS, CLUSTER)
ACT_AS_BROKER: Final = Need(CLUSTER_ACTION, CLUSTER)
WRITE_IDEMPOTENTLY: Final = Need(IDEMPOTENT_WRITE, CLUSTER)
