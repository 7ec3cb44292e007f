"""The control records of a KRaft log and its snapshots: leader, voters, where a snapshot ends.

A control record's key is (version, type); its value is a message in flexible encoding whose first
field is its own version (KIP-595, KIP-630, KIP-853).
"""

from struct import Struct
from types import SimpleNamespace
from typing import Any, Final

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.wire.batch import NewRecord
from appliance.wire.fields import UNREADABLE, Field, Layout, reader, writer

LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6

_KEY: Final = Struct(">hh")
_SHORT: Final = Struct(">hhx")  # version, one number, no tagged fields
_HEADER: Final = Struct(">hqx")
_FOOTER: Final = Struct(">hx")

_ENDPOINT: Final = Layout(
    dict, (Field("name", "string"), Field("host", "string"), Field("port", "uint16")), True
)
_SPAN: Final = Layout(dict, (Field("lowest", "int16"), Field("highest", "int16")), True)
_VOTER: Final = Layout(
    dict,
    (
        Field("voter_id", "int32"),
        Field("directory_id", "uuid"),
        Field("endpoints", "struct", array=True, nested=_ENDPOINT),
        Field("kraft_version", "struct", nested=_SPAN),
    ),
    True,
)
_VOTERS: Final = Layout(
    dict, (Field("version", "int16"), Field("voters", "struct", array=True, nested=_VOTER)), True
)

_VOTE: Final = Layout(dict, (Field("voter_id", "int32"),), True)
_write_change: Final = writer(
    Layout(
        dict,
        (
            Field("version", "int16"),
            Field("leader_id", "int32"),
            Field("voters", "struct", array=True, nested=_VOTE),
            Field("granting", "struct", array=True, nested=_VOTE),
        ),
        True,
    )
)

Voters = tuple[tuple[int, bytes], ...]
"""(node id, 16-byte directory id) of each voter; the id is zero while voters are static."""


def leader_change(now_ms: int, leader_id: int, voters: Voters) -> NewRecord:
    """The record with which a new leader begins its epoch; all voters have granted it."""
    ids = [SimpleNamespace(voter_id=voter_id) for voter_id, _ in voters]
    out: list[bytes] = []
    _write_change(out, SimpleNamespace(version=0, leader_id=leader_id, voters=ids, granting=ids))
    return _record(now_ms, LEADER_CHANGE, b"".join(out))


def snapshot_header(now_ms: int, last_log_timestamp: int) -> NewRecord:
    """The first record of a snapshot. last_log_timestamp: of the newest record in it, ms."""
    return _record(now_ms, SNAPSHOT_HEADER, _HEADER.pack(0, last_log_timestamp))


def snapshot_footer(now_ms: int) -> NewRecord:
    """The last record of a snapshot: without it the file is not whole."""
    return _record(now_ms, SNAPSHOT_FOOTER, _FOOTER.pack(0))


def kraft_version(now_ms: int, level: int) -> NewRecord:
    """The finalized kraft.version."""
    return _record(now_ms, KRAFT_VERSION, _SHORT.pack(0, level))


def kraft_voters(now_ms: int, value: bytes) -> NewRecord:
    """The voters as another record's value said them."""
    return _record(now_ms, KRAFT_VOTERS, value)


def _record(now_ms: int, kind: int, value: bytes) -> NewRecord:
    return NewRecord(now_ms, _KEY.pack(0, kind), value)


def type_of(key: bytes | None) -> int:
    """The type in a control record's key, -1 when there is none."""
    return int(_KEY.unpack_from(key)[1]) if key is not None and len(key) >= _KEY.size else -1


def read_kraft_version(value: bytes | None) -> int:
    """The level in a KRaftVersionRecord; raises PeerError(CORRUPT_MESSAGE)."""
    if value is None or len(value) < _SHORT.size:
        raise PeerError(CORRUPT_MESSAGE, "a KRaftVersion record is too short")
    return int(_SHORT.unpack_from(value)[1])


def read_voters(value: bytes | None) -> Voters:
    """The voters in a VotersRecord; raises PeerError(CORRUPT_MESSAGE)."""
    data = value or b""
    try:
        message: dict[str, Any] = reader(_VOTERS)(data, 0, [len(data)])[0]
    except UNREADABLE as cause:
        raise PeerError(CORRUPT_MESSAGE, f"a KRaftVoters record: {cause}") from cause
    return tuple((voter["voter_id"], voter["directory_id"]) for voter in message["voters"])
