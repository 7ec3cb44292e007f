"""Changes of DeleteGroups and OffsetDelete (KIP-496) for the audit: groups are no records of the
metadata."""

from collections.abc import Callable
from typing import Any, Final

from appliance.base import errors

Things = Callable[[Any, Any], list[dict[str, str]]]
"""(request, answer): what was changed."""


def _groups(_: Any, answer: Any) -> list[dict[str, str]]:
    return [
        {"type": "group", "name": one.group_id, "action": "delete"}
        for one in answer.results
        if int(one.error_code) == errors.NONE
    ]


def _offsets(request: Any, answer: Any) -> list[dict[str, str]]:
    thing = {"type": "offset", "action": "delete", "of": request.group_id}
    return [
        thing | {"name": f"{topic.name}-{one.partition_index}"}
        for topic in answer.topics
        for one in topic.partitions
        if int(answer.error_code) == int(one.error_code) == errors.NONE
    ]


CHANGED: Final[dict[int, Things]] = {42: _groups, 47: _offsets}
"""By API key."""
