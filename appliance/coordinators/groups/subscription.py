"""The topics that a consumer's subscription names (embedded protocol "consumer").

All versions of the subscription begin as version 0 does: a version, then the topic names; the rest
is for the members alone. Caller: the classic group, for the rule which offsets may expire.
"""

from typing import Final

from appliance.wire.fields import UNREADABLE, Field, StructLayout, reader

CONSUMER: Final = "consumer"
_read = reader(StructLayout(dict, (Field("topics", "string", array=True),), False))


def topics_of(metadata: bytes) -> tuple[str, ...] | None:
    """The topic names, None when the bytes are no subscription."""
    try:
        found, _ = _read(metadata, 2, [len(metadata)])
    except UNREADABLE:
        return None
    topics: tuple[str, ...] = found["topics"]
    return topics
