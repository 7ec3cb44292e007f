"""Which partition of `__consumer_offsets` is asked what, and one answer out of several.

Pure functions for the network process. A request that names one group goes to one partition as it
came: only the group's id is looked at. One that names several, or asks for all, is split, and the
answers are spliced, whose rows nobody reads.
"""

from collections.abc import Generator, Sequence
from typing import Any, Final

from appliance.base.errors import MalformedRequest
from appliance.coordinators.runtime import routing
from appliance.coordinators.runtime.kind import Part, RowsOf, partition_of
from appliance.coordinators.runtime.routing import first_text, second_text
from appliance.wire import messages
from appliance.wire.fields import UNREADABLE
from appliance.wire.offset_messages import split_fetch, split_fetch_in_slices
from appliance.wire.request_head import is_flexible

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
TXN_OFFSET_COMMIT: Final = 28
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
MEMBERS_SINCE: Final = 3
"""LeaveGroup: several members."""
THROTTLED_COMMIT_SINCE: Final = 3
"""OffsetCommit: the answer has a throttle time."""
_NO_THROTTLE_IN_0: Final = (DESCRIBE_GROUPS, LIST_GROUPS)


_HEAD: Final = 4
"""Bytes of the throttle time."""
_CODE: Final = 2
_OFFSETS: Final = ("topics", "partitions")


def rows(key: int, version: int) -> RowsOf | None:
    """Where a request has rows that may be decided in parts."""
    if key in _SEVERAL:
        head = 0 if version == 0 and key in _NO_THROTTLE_IN_0 else _HEAD
        return RowsOf((_SEVERAL[key],), _group, head, is_once=key != DELETE_GROUPS)
    if key == OFFSET_FETCH and version >= GROUPS_SINCE:
        return RowsOf(("groups",), _group, _HEAD, split=_split_fetch)
    if key == OFFSET_COMMIT:
        return RowsOf(_OFFSETS, None, _HEAD if version >= THROTTLED_COMMIT_SINCE else 0)
    if key == TXN_OFFSET_COMMIT:
        return RowsOf(_OFFSETS, None, _HEAD)
    if key == OFFSET_DELETE:
        return RowsOf(_OFFSETS, None, _CODE + _HEAD, 0)
    if key == LEAVE_GROUP and version >= MEMBERS_SINCE:
        return RowsOf(("members",), None, _HEAD + _CODE, _HEAD)
    return None


def _split_fetch(version: int, body: bytes, partitions: int) -> Generator[None, None, list[Part]]:
    """Steps that give the parts of a long OffsetFetch. Raises MalformedRequest."""
    most = messages.elements[0]
    try:
        return (yield from split_fetch_in_slices(version, body, most, partition_of, partitions))
    except UNREADABLE as cause:
        raise MalformedRequest(f"OffsetFetch v{version}: {cause}") from cause


def parts(key: int, version: int, body: bytes, partitions: int) -> list[Part]:
    """Which partitions are asked what: the one of the group that is named, or those of several.
    Raises MalformedRequest."""
    if key not in ALWAYS_SEVERAL and not (key == OFFSET_FETCH and version >= GROUPS_SINCE):
        name = second_text if key == TXN_OFFSET_COMMIT else first_text
        return [(partition_of(name(key, version, body), partitions), body)]
    if key == OFFSET_FETCH:
        try:
            return split_fetch(version, body, messages.elements[0], partition_of, partitions)
        except UNREADABLE as cause:
            raise MalformedRequest(f"OffsetFetch v{version}: {cause}") from cause
    request = messages.decode_request(key, version, body)
    return [
        (partition, body if part is request else messages.encode_request(part))
        for partition, part in split(key, request, partitions).items()
    ]


def split(api_key: int, request: Any, partitions: int) -> dict[int, Any]:
    """Splits a request for several groups into one for each partition, in ascending order.

    At least one is asked: the first, by who asks about no group.
    """
    if api_key == LIST_GROUPS:
        return dict.fromkeys(range(partitions), request)
    return routing.split(request, _SEVERAL[api_key], _group, partitions)


def _group(one: Any) -> str:
    name: str = one if isinstance(one, str) else one.group_id
    return name


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
    return routing.splice(answers, head, flexible=is_flexible(api_key, version))
