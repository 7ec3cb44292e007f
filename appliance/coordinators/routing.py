"""Which shard a group belongs to; requests for several groups, and one answer out of several.

Pure functions for the network process: it sends the home of each partition of `__consumer_offsets`
what `split` gives it, and answers what `splice` makes of the answers, whose rows it does not read.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from appliance.wire.fields import put_uvarint
from appliance.wire.request_head import is_flexible
from appliance.wire.varint import read_uvarint

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

_SEVERAL: Final = {
    OFFSET_FETCH: "groups",
    DESCRIBE_GROUPS: "groups",
    DELETE_GROUPS: "groups_names",
    CONSUMER_GROUP_DESCRIBE: "group_ids",
}
"""The field of a request that names its groups."""
_NO_THROTTLE_IN_0: Final = (DESCRIBE_GROUPS, LIST_GROUPS)
_COUNT: Final = Struct(">i")


@lru_cache(maxsize=1 << 14)
def shard_of(group_id: str, partitions: int) -> int:
    """Kafka's rule: the 31 low bits of Java's String.hashCode (UTF-16 units) modulo the count."""
    value = 0
    encoded = group_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (value * 31 + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partitions


def split(api_key: int, request: Any, partitions: int) -> dict[int, Any]:
    """What each partition is asked of a request for several groups, in ascending order.

    At least one is asked: the first, by who asks about no group.
    """
    if api_key == LIST_GROUPS:
        return dict.fromkeys(range(partitions), request)
    name = _SEVERAL[api_key]
    parts: dict[int, list[Any]] = {}
    for one in getattr(request, name):
        group_id = one if isinstance(one, str) else one.group_id
        parts.setdefault(shard_of(group_id, partitions), []).append(one)
    if len(parts) < 2:
        return dict.fromkeys(parts or (0,), request)
    return {shard: replace(request, **{name: tuple(parts[shard])}) for shard in sorted(parts)}


def splice(api_key: int, version: int, answers: Sequence[bytes]) -> bytes:
    """One encoded answer of those of several partitions: their lists, put together.

    A partition that failed with an error for the whole request (ListGroups) makes the answer that
    error, as a part of the groups would look like all of them.
    """
    head = 0 if version == 0 and api_key in _NO_THROTTLE_IN_0 else 4
    if api_key == LIST_GROUPS:
        head += 2
        for answer in answers:
            if answer[head - 2 : head] != b"\0\0":
                return answer
    flexible = is_flexible(api_key, version)
    rows, count = [], 0
    for answer in answers:
        if flexible:
            assert answer[-1] == 0, "an answer with tagged fields"
            several, at = read_uvarint(memoryview(answer), head, len(answer))
            count += several - 1
            rows.append(answer[at:-1])
        else:
            count += _COUNT.unpack_from(answer, head)[0]
            rows.append(answer[head + 4 :])
    out = [answers[0][:head]]
    if flexible:
        put_uvarint(out, count + 1)
        rows.append(b"\0")
    else:
        out.append(_COUNT.pack(count))
    return b"".join(out + rows)
