"""The bytes of a committed offset's record, by hand: no other record is written as often.

The same bytes as `wire.declared` makes of the classes in `records`; a test compares them.
"""

from struct import Struct
from typing import Final

from appliance.coordinators.groups.records import OffsetCommitKey, OffsetCommitValue
from appliance.wire.offset_messages import uvarint

_TYPE: Final = OffsetCommitKey.TYPE
_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_KEY_HEAD: Final = Struct(">hh")  # type, bytes of the group's id
_VALUE_HEAD: Final = Struct(">hqi")  # version, offset, leader epoch
_TIME_AND_NO_TAGS: Final = Struct(">qx")
_TIME_AND_ID: Final = Struct(">qBBB16s")  # one tagged field: number 0, 16 bytes
_NO_ID: Final = bytes(16)


def key_bytes(key: OffsetCommitKey) -> bytes:
    """The record's key, in version 1."""
    group, topic = key.group.encode(), key.topic.encode()
    head = _KEY_HEAD.pack(_TYPE, len(group)) + group
    return head + _I16.pack(len(topic)) + topic + _I32.pack(key.partition)


def value_bytes(value: OffsetCommitValue) -> bytes:
    """The record's value in version 4, which Kafka 4.3 writes."""
    metadata = value.metadata.encode()
    out = _VALUE_HEAD.pack(4, value.offset, value.leader_epoch) + uvarint(len(metadata) + 1)
    if metadata:
        out += metadata
    if value.topic_id == _NO_ID:
        return out + _TIME_AND_NO_TAGS.pack(value.commit_timestamp)
    return out + _TIME_AND_ID.pack(value.commit_timestamp, 1, 0, 16, value.topic_id)
