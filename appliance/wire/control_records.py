"""Control records of a Raft log: who leads since when, who votes, where a snapshot begins and ends.

They come in batches of their own with the control bit set. Key: version and type as two int16.
Value: the message, which begins with its own version. Sources: KIP-595 (leader change), KIP-630
(snapshots), KIP-853 (voters). Callers: the metadata log and its snapshots.
"""

from struct import Struct
from typing import Any, ClassVar, Final

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.wire.declared import of, reader_of, record, writer_of
from appliance.wire.fields import UNREADABLE

_KEY: Final = Struct(">hh")
_VERSION: Final = Struct(">h")

ABORT: Final = 0  # the end of a transaction of a producer, not part of a Raft log
COMMIT: Final = 1


@record
class VoterRecord:
    """voter_directory_id came with version 1."""

    voter_id: int = of("int32")
    voter_directory_id: bytes = of("uuid", since=1, default=bytes(16))


@record
class LeaderChangeMessage:
    """The first record that a leader writes in its epoch."""

    TYPE: ClassVar = 2
    VERSIONS: ClassVar = range(2)
    version: int = of("int16", default=1)
    leader_id: int = of("int32")
    voters: tuple[VoterRecord, ...] = of("[]struct")
    granting_voters: tuple[VoterRecord, ...] = of("[]struct")


@record
class SnapshotHeaderRecord:
    """The first record of a snapshot. last_contained_log_timestamp: ms since 1970."""

    TYPE: ClassVar = 3
    VERSIONS: ClassVar = range(1)
    version: int = of("int16", default=0)
    last_contained_log_timestamp: int = of("int64")


@record
class SnapshotFooterRecord:
    """The last record of a snapshot: one without it is not whole."""

    TYPE: ClassVar = 4
    VERSIONS: ClassVar = range(1)
    version: int = of("int16", default=0)


@record
class KRaftVersionRecord:
    """The finalized kraft.version."""

    TYPE: ClassVar = 5
    VERSIONS: ClassVar = range(1)
    version: int = of("int16", default=0)
    k_raft_version: int = of("int16")


@record
class VoterEndpoint:
    name: str = of("string")
    host: str = of("string")
    port: int = of("uint16")


@record
class KRaftVersionFeature:
    min_supported_version: int = of("int16")
    max_supported_version: int = of("int16")


@record
class VotersRecordVoter:
    voter_id: int = of("int32")
    voter_directory_id: bytes = of("uuid")
    endpoints: tuple[VoterEndpoint, ...] = of("[]struct")
    k_raft_version_feature: KRaftVersionFeature = of("struct")


@record
class VotersRecord:
    """The voters of the quorum from here on."""

    TYPE: ClassVar = 6
    VERSIONS: ClassVar = range(1)
    version: int = of("int16", default=0)
    voters: tuple[VotersRecordVoter, ...] = of("[]struct")


ControlRecord = (
    LeaderChangeMessage
    | SnapshotHeaderRecord
    | SnapshotFooterRecord
    | KRaftVersionRecord
    | VotersRecord
)

_TYPES: Final[dict[int, type]] = {
    cls.TYPE: cls
    for cls in (
        LeaderChangeMessage,
        SnapshotHeaderRecord,
        SnapshotFooterRecord,
        KRaftVersionRecord,
        VotersRecord,
    )
}


def encode(message: ControlRecord) -> tuple[bytes, bytes]:
    """(key, value) of the control record."""
    assert message.version in message.VERSIONS
    cls: type = type(message)
    out: list[bytes] = []
    writer_of(cls, message.version)(out, message)
    return _KEY.pack(0, message.TYPE), b"".join(out)


def decode(key: bytes | None, value: bytes | None) -> ControlRecord:
    """The message of a control record of a Raft log; raises PeerError(CORRUPT_MESSAGE)."""
    try:
        _, kind = _KEY.unpack_from(key or b"")
        cls: Any = _TYPES.get(kind)
        if cls is None:
            raise ValueError(f"type {kind} is not known")
        data = value or b""
        version = min(_VERSION.unpack_from(data)[0], cls.VERSIONS[-1])
        found: ControlRecord = reader_of(cls, version)(data, 0, [len(data)])[0]
    except UNREADABLE as cause:
        raise PeerError(CORRUPT_MESSAGE, f"control record: {cause}") from cause
    return found
