"""Which shard a group belongs to, and one answer out of those of several shards.

Pure functions for the network process: it sends a request for groups to the home of each partition
of `__consumer_offsets` that `shards` names.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import chain
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
CONSUMER_GROUP_DESCRIBE: Final = 69


@lru_cache(maxsize=1 << 14)
def shard_of(group_id: str, partitions: int) -> int:
    """Kafka's rule: the 31 low bits of Java's String.hashCode (UTF-16 units) modulo the count."""
    value = 0
    encoded = group_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (value * 31 + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partitions


def shards(api_key: int, version: int, request: Any, partitions: int) -> list[int]:
    """The partitions that must see the request, each once, in ascending order.

    At least one: who asks about no group is answered by the first.
    """
    if api_key == LIST_GROUPS:
        return list(range(partitions))
    if api_key == OFFSET_FETCH and version >= 8:
        names = [one.group_id for one in request.groups]
    elif api_key == DESCRIBE_GROUPS:
        names = request.groups
    elif api_key == DELETE_GROUPS:
        names = request.groups_names
    elif api_key == CONSUMER_GROUP_DESCRIBE:
        names = request.group_ids
    else:
        names = [request.group_id]
    return sorted({shard_of(name, partitions): None for name in names}) or [0]


def merge(answers: Sequence[Any]) -> Any:
    """One response of the decoded responses (same class) of several shards, in the order given.

    Lists are put together; a shard that failed with an error for the whole request (ListGroups)
    makes the answer that error, as a part of the groups would look like all of them.
    """
    first = answers[0]
    for answer in answers:
        if getattr(answer, "error_code", 0):
            return answer
    lists = {
        item.name: tuple(chain.from_iterable(getattr(answer, item.name) for answer in answers))
        for item in fields(first)
        if isinstance(getattr(first, item.name), tuple)
    }
    return replace(first, **lists)
