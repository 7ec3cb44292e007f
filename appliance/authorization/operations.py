"""Operations and resource types, in Kafka's words and numbers (KIP-11, KIP-140, KIP-430).

An operation's number is its bit in the authorized operations of an answer.
"""

from typing import Final, NamedTuple

from appliance.base import errors

ALL: Final = 2
"""Of rules alone: each of those below."""
READ: Final = 3
WRITE: Final = 4
CREATE: Final = 5
DELETE: Final = 6
ALTER: Final = 7
DESCRIBE: Final = 8
CLUSTER_ACTION: Final = 9
DESCRIBE_CONFIGS: Final = 10
ALTER_CONFIGS: Final = 11
IDEMPOTENT_WRITE: Final = 12
CREATE_TOKENS: Final = 13
DESCRIBE_TOKENS: Final = 14
TWO_PHASE_COMMIT: Final = 15
LAST_OPERATION: Final = TWO_PHASE_COMMIT

TOPIC: Final = 2
GROUP: Final = 3
CLUSTER: Final = 4
TRANSACTIONAL_ID: Final = 5
DELEGATION_TOKEN: Final = 6
USER: Final = 7

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of its kind."""


class Resource(NamedTuple):
    """kind: one of the above."""

    kind: int
    name: str


THE_CLUSTER: Final = Resource(CLUSTER, CLUSTER_NAME)

SUPPORTED: Final = {
    TOPIC: (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    GROUP: (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    CLUSTER: (
        *(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS),
        IDEMPOTENT_WRITE,
    ),
    TRANSACTIONAL_ID: (WRITE, DESCRIBE, TWO_PHASE_COMMIT),
    DELEGATION_TOKEN: (DESCRIBE,),
    USER: (CREATE_TOKENS, DESCRIBE_TOKENS),
}
"""The operations that there are on each kind of resource."""

REFUSED: Final = {
    TOPIC: errors.TOPIC_AUTHORIZATION_FAILED,
    GROUP: errors.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: errors.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN: errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    USER: errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error that tells that a resource of this kind is refused. Users are asked about for tokens
alone."""

TEXTS: Final = {
    errors.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    errors.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    errors.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
}
"""The same for people, as Kafka says it."""
