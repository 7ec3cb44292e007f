"""Input and output of a shard: the circumstances of one request, and the results of one turn.

Callers: the I/O process, which makes a Call per request and carries out the Outcome, and every file
of this room, which adds to the Outcome of the turn under way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from appliance.authorization.rights import Rights

NEVER: Final = 1 << 62
"""A deadline that does not come, in ms."""
UNVERIFIED: Final = -1
"""Nobody has asked yet whether a request belongs to a transaction."""

Producer = tuple[int, int]
"""Producer id and epoch."""


@dataclass(slots=True, frozen=True)
class Call:
    """The circumstances of a request.

    api_key, version: of the request. token: chosen by the shell, handed back with the answer.
    rights: of who asks. standing: of one that writes within a transaction: NONE when it may, else
    UNVERIFIED or the error code with which it may not. prepared: what `Shard.PREPARE` made of a
    long request before, None of a short one.
    """

    api_key: int
    version: int
    token: int
    rights: Rights
    standing: int = UNVERIFIED
    prepared: Any = None

    @property
    def client_id(self) -> str:
        """From the request header, "" when null."""
        return self.rights.caller.client_id

    @property
    def client_host(self) -> str:
        """As Kafka shows it: `/127.0.0.1`."""
        return f"/{self.rights.caller.address}"


class Note(NamedTuple):
    """Something that an operator may look for. about: whose it is, a group's id. is_loss: somebody
    lost something by it; else it is the usual course."""

    event: str
    about: str
    is_loss: bool
    fields: Mapping[str, object]


class Outcome:
    """The work of the shell after a turn.

    records: (key, value or None for a tombstone), to append to the shard's partition as one batch,
    in this order. They are already applied: do not replay them again.
    responses: (token, plain values for `wire.build.response` of the asking call's key and version),
    to send once everything appended to the partition so far, these records included, is committed.
    producer: of the transaction that all records belong to, None when they belong to none. They go
    to the log before anything else is decided, so that its marker comes behind them.
    unverified: nothing was decided: the request is to come again when its `Call.standing` is known.
    notes: what the turn did, for the log.
    """

    __slots__ = ("notes", "producer", "records", "responses", "unverified")

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.responses: list[tuple[int, Mapping[str, Any]]] = []
        self.producer: Producer | None = None
        self.unverified = False
        self.notes: list[Note] = []


def expiry_time(wall_ms: int) -> int:
    """The time by which things are old, where every clock is believed."""
    return wall_ms
