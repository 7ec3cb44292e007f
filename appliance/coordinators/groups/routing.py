"""Which partition of `__consumer_offsets` is asked what, and one answer out of several.

Pure functions for the network process. A request that names one group goes to one partition as it
came: only the group's id is looked at. One that names several, or asks for all, is split, and the
answers are spliced, whose rows nobody reads.
"""

from collections.abc import Sequence
from dataclasses import replace
from struct import Struct
from typing import Any, Final

from appliance.base.errors import MalformedRequest
from appliance.coordinators.runtime.kind import Part, partition_of
from appliance.wire import messages
from appliance.wire.fields import UNREADABLE, put_uvarint
from appliance.wire.offset_messages import split_fetch
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
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69

_SEVERAL: Final = {
    DESCRIBE_GROUPS: "groups",
    DELETE_GROUPS: "groups_names",
    CONSUMER_GROUP_DESCRIBE: "group_ids",
}
"""The field of a request that names its groups."""
ALWAYS_SEVERAL: Final = frozenset(
    (DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS, CONSUMER_GROUP_DESCRIBE)
)
GROUPS_SINCE: Final = 8
"""OffsetFetch: several groups."""
_SHORT: Final = Struct(">h").unpack_from
_NO_THROTTLE_IN_0: Final = (DESCRIBE_GROUPS, LIST_GROUPS)
_COUNT: Final = Struct(">i")


def parts(key: int, version: int, body: bytes, partitions: int) -> list[Part]:
    """Which partitions are asked what: the one of the group that is named, or those of several.
    Raises MalformedRequest."""
    if key not in ALWAYS_SEVERAL and not (key == OFFSET_FETCH and version >= GROUPS_SINCE):
        return [(partition_of(group_id(key, version, body), partitions), body)]
    if key == OFFSET_FETCH:
        try:
            return split_fetch(version, body, messages.ELEMENTS_MAX, partition_of, partitions)
        except UNREADABLE as cause:
            raise MalformedRequest(f"OffsetFetch v{version}: {cause}") from cause
    request = messages.decode_request(key, version, body)
    return [
        (partition, body if part is request else messages.encode_request(part))
        for partition, part in split(key, request, partitions).items()
    ]


def group_id(key: int, version: int, body: bytes) -> str:
    """The group's id: the first field of every request that names one group. Raises
    MalformedRequest."""
    if is_flexible(key, version):
        size, at = read_uvarint(memoryview(body), 0, len(body))
        size -= 1
    elif len(body) >= 2:
        size, at = _SHORT(body)[0], 2
    else:
        size, at = -1, 0
    if not 0 <= size <= len(body) - at:
        raise MalformedRequest(f"group id of {size} bytes, {len(body) - at} remain")
    try:
        return body[at : at + size].decode()
    except UnicodeDecodeError as cause:
        raise MalformedRequest(f"the group id is not UTF-8: {cause}") from cause


def split(api_key: int, request: Any, partitions: int) -> dict[int, Any]:
    """What each partition is asked of a request for several groups, in ascending order.

    At least one is asked: the first, by who asks about no group.
    """
    if api_key == LIST_GROUPS:
        return dict.fromkeys(range(partitions), request)
    field = _SEVERAL[api_key]
    found: dict[int, list[Any]] = {}
    for one in getattr(request, field):
        name = one if isinstance(one, str) else one.group_id
        found.setdefault(partition_of(name, partitions), []).append(one)
    if len(found) < 2:
        return dict.fromkeys(found or (0,), request)
    return {one: replace(request, **{field: tuple(found[one])}) for one in sorted(found)}


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
