"""Kafka's words for the numbers of ACLs: kinds of resources, patterns, operations, permissions."""

from typing import Final

from appliance.authorization.operations import LAST_OPERATION, USER

UNKNOWN: Final = 0
"""Stands for every number that is none of these."""
KINDS: Final = (
    *("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN"),
    "USER",
)
PATTERNS: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS: Final = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
    *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
    *("CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
PERMISSIONS: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
assert len(KINDS) == USER + 1 and len(OPERATIONS) == LAST_OPERATION + 1


def word(number: int, words: tuple[str, ...]) -> str:
    """The word for a number, `UNKNOWN` if it has none."""
    return words[number] if 0 <= number < len(words) else words[UNKNOWN]
