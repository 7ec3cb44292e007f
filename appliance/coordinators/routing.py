"""Which shard a group belongs to, and one answer out of those of several shards.

Pure functions for the network process: it sends a request for groups to the home of each partition
of `__consumer_offsets` that `shards` names.
"""

from collections.abc import Sequence
from typing import Any, Final

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
DELETE_GROUPS: Final = 42
OFFSET_DELETE: Final = 47


def shard_of(group_id: str, partitions: int) -> int:
    """Kafka's rule: the 31 low bits of Java's String.hashCode (UTF-16 units) modulo the count."""
    value = 0
    encoded = group_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (value * 31 + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partitions


def shards(api_key: int, version: int, request: Any, partitions: int) -> list[int]:  # noqa: ANN401
    """The partitions that must see the request, each once; at least one."""
    raise NotImplementedError


def merge(answers: Sequence[Any]) -> Any:  # noqa: ANN401
    """One response of the decoded responses (same class) of several shards, in the order given."""
    raise NotImplementedError
