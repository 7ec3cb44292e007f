"""Serves the quorum requests of other nodes: votes, epochs, fetches of the log, snapshots.

A fetch that finds nothing new is parked until something has come or its time is up. Invariant:
nothing is answered before quorum-state has what the answer follows from (`settle`). Called by
`shell.py` for each such request, and by the driver in each turn.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from appliance.authorization import needs
from appliance.authorization.rights import Rights
from appliance.base.clock import Clock
from appliance.base.disk import Disk
from appliance.base.errors import (
    INVALID_REQUEST,
    NONE,
    POSITION_OUT_OF_RANGE,
    SNAPSHOT_NOT_FOUND,
    UNSUPPORTED_VERSION,
    MalformedRequest,
    PeerError,
    StorageFailed,
)
from appliance.control.quorum import request_checks as checks
from appliance.control.quorum import wire
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.metadata.checkpoint import SnapshotId
from appliance.metadata.identity import Identity
from appliance.peers.conversation import NEVER
from appliance.quorum.messages import BeginEpoch, EndEpoch, Fetch, Fetched, Vote
from appliance.quorum.voters import STATIC, ControllerEndpoint
from appliance.shell.log import WARNING, Log
from appliance.wire.build import response
from appliance.wire.messages import decode_request, encode_response

Reply = Callable[[int, int, int, bytes], None]
"""Gets netproc, token, code and body of an answer."""


class _Parked(NamedTuple):
    """A fetch that waits. seen: what would be news. listener: by which it came."""

    netproc: int
    token: int
    version: int
    asked: wire.QuorumRequest
    until_ms: int
    seen: tuple[int, int, int, bool]
    listener: str


class QuorumParts(NamedTuple):
    """This voter's state and its doors to the operating system, as the driver and the server use
    them."""

    quorum: MetadataQuorum
    identity: Identity
    disk: Disk
    clock: Clock
    events: Log


class QuorumServer:
    """settle: what follows from what was heard is on the disk and done at return, or, False: there
    was no room for it. places: where controllers are reached by a listener of this name; learn:
    hears of that. acting: the
    replica may know what quorum-state does not, because a request has not come to its end."""

    def __init__(
        self,
        parts: QuorumParts,
        settle: Callable[[], bool],
        reply: Reply,
        places: Callable[[str], wire.Places],
        learn: Callable[[int, Sequence[ControllerEndpoint]], None],
    ) -> None:
        self._quorum, self._identity, self._disk, self._clock, self._events = parts
        self._replica = parts.quorum.replica
        self._settle = settle
        self.acting = False
        self._answer = reply
        self._places = places
        self._learn = learn
        self._parked: list[_Parked] = []

    def forget_netproc(self, netproc: int) -> None:
        """It is dead: nobody hears what it asked for."""
        self._parked = [one for one in self._parked if one.netproc != netproc]

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // 1_000_000

    # Serving others -------------------------------------------------------------------------------

    def serve(
        self, netproc: int, token: int, key: int, version: int, body: bytes, rights: Rights
    ) -> None:
        """A request of another node: one of `quorum_wire.SERVED`. Raises StorageFailed."""
        if version not in wire.SERVED[key]:
            self._answer(netproc, token, UNSUPPORTED_VERSION, b"")
            return
        try:
            request = decode_request(key, version, body)
        except MalformedRequest as cause:
            self._events.event_seldom(WARNING, "malformed-request", api=key, cause=str(cause))
            self._answer(netproc, token, INVALID_REQUEST, b"")
            return
        asked: wire.QuorumRequest | None = None
        listener = rights.caller.listener
        try:
            if code := rights.refusal(needs.ACT_AS_BROKER):
                raise PeerError(code, "it may not act as a node of the cluster")
            if key == wire.SNAPSHOT:
                self._reply(netproc, token, key, version, self._part(request))
                return
            asked = wire.read(key, request, self._identity.cluster_id)
            checks.check_fields(asked.what)
            if isinstance(asked.what, Fetch):
                self._fetch(netproc, token, version, asked, listener)
                return
            static = self._quorum.kraft_version == STATIC
            checks.check_voter(asked, self._replica, static=static)
            checks.check_epoch(asked.what, self._replica, self._now_ms())
        except PeerError as cause:
            fields = {"peer": rights.caller.address, "cause": cause.message}
            self._events.event_seldom(WARNING, "voter-refused", **fields)
            values = wire.refusal(key, cause.code)
            if asked is not None and isinstance(cause, checks.RowRefused):
                values = self._refused(asked.what, cause.code, self._places(listener))
            self._reply(netproc, token, key, version, values)
            return
        if isinstance(asked.what, BeginEpoch):
            self._learn(asked.what.leader, asked.endpoints)
        granted = self._said(asked.what)
        values = wire.make_answer(asked.what, self._leader, self._places(listener), granted)
        self._reply(netproc, token, key, version, values)

    def _refused(
        self, what: Vote | BeginEpoch | EndEpoch | Fetch, code: int, places: wire.Places
    ) -> wire.Values:
        """The answer to a request whose fields are wrong."""
        if isinstance(what, Fetch):
            leader, epoch = self._leader
            return wire.records(Fetched(epoch, leader), what, b"", places, code)
        return wire.make_answer(what, self._leader, places, code=code)

    @property
    def _leader(self) -> tuple[int, int]:
        leadership = self._quorum.leadership
        return leadership.leader_id, leadership.epoch

    def _said(self, what: Vote | BeginEpoch | EndEpoch | Fetch) -> bool:
        """Act upon it; whether a vote is granted."""
        replica, now_ms, granted = self._replica, self._now_ms(), False
        self.acting = True
        if isinstance(what, Vote):
            granted = replica.vote(what, now_ms).granted
        elif isinstance(what, BeginEpoch):
            replica.begin_epoch(what, now_ms)
        elif isinstance(what, EndEpoch):
            replica.end_epoch(what, now_ms)
        return self._act() and granted

    def _fetch(
        self, netproc: int, token: int, version: int, asked: wire.QuorumRequest, listener: str
    ) -> None:
        what = asked.what
        assert isinstance(what, Fetch)
        answer = self._fetched_by(what, self._now_ms())
        limits = asked.limits
        fresh = answer.parts is not None or answer.snapshot is not None or what.end < self._end
        fresh = fresh or answer.high_watermark > limits.high_watermark
        if answer.leads and not fresh and limits.max_wait_ms > 0:
            until_ms = self._now_ms() + limits.max_wait_ms
            waits = _Parked(netproc, token, version, asked, until_ms, self._news, listener)
            self._parked.append(waits)
        else:
            self._say(netproc, token, version, asked, answer, listener)

    def _fetched_by(self, what: Fetch, now_ms: int) -> Fetched:
        self.acting = True
        answer = self._replica.fetched_by(what, now_ms)
        self._act()
        return answer

    def _act(self) -> bool:
        """As the driver's. What was heard is acted upon at return."""
        written = self._settle()
        self.acting = False
        return written

    @property
    def _end(self) -> int:
        return self._quorum.log.end_offset

    @property
    def _news(self) -> tuple[int, int, int, bool]:
        """The values whose change answers a parked fetch."""
        replica = self._replica
        return self._end, replica.high_watermark, replica.epoch, replica.leads

    def answer_parked(self, now_ms: int) -> int:
        """Answer parked fetches that have something to say: when the next one's time is up, in ms.
        Raises StorageFailed."""
        if not self._parked:
            return NEVER
        news = self._news
        due = [one for one in self._parked if one.until_ms <= now_ms or one.seen != news]
        self._parked = [one for one in self._parked if one not in due]
        for one in due:
            what = one.asked.what
            assert isinstance(what, Fetch)
            answer = self._fetched_by(what, now_ms)
            self._say(one.netproc, one.token, one.version, one.asked, answer, one.listener)
        return min((one.until_ms for one in self._parked), default=NEVER)

    def _say(
        self,
        netproc: int,
        token: int,
        version: int,
        asked: wire.QuorumRequest,
        answer: Fetched,
        listener: str,
    ) -> None:
        """Answer a fetch, with what stands in the log whether it is on the disk or not."""
        what, data = asked.what, b""
        assert isinstance(what, Fetch)
        if answer.leads and answer.parts is None and answer.snapshot is None:
            data = self._read(what.end, asked.limits.max_bytes)
        values = wire.records(answer, what, data, self._places(listener))
        self._reply(netproc, token, wire.FETCH, version, values)

    def _read(self, start: int, max_bytes: int) -> bytes:
        """Whole batches, at least one if there is one."""
        found: list[bytes] = []
        size = 0
        for _, batch in self._quorum.log.read(start, self._end):
            if found and size + len(batch) > max_bytes:
                break
            found.append(bytes(batch))
            size += len(batch)
        return b"".join(found)

    def _reply(self, netproc: int, token: int, key: int, version: int, values: wire.Values) -> None:
        self._answer(netproc, token, NONE, encode_response(response(key, version, values)))

    def _part(self, request: Any) -> wire.Values:
        """A piece of a snapshot. Raises PeerError with the code of the whole answer."""
        asked = wire.read_snapshot(request, self._identity.cluster_id)
        leader = self._leader
        code = wire.not_leading(asked.epoch, leader[1], leads=self._quorum.leadership.leads)
        path = f"{self._quorum.log.folder}/{SnapshotId(*asked.snapshot).file_name}"
        if code == NONE and not self._disk.exists(path):
            code = SNAPSHOT_NOT_FOUND
        if code != NONE:
            return wire.snapshot_told(asked, leader, code)
        try:
            file = self._disk.open_file(path)
        except StorageFailed:  # just deleted
            return wire.snapshot_told(asked, leader, SNAPSHOT_NOT_FOUND)
        try:
            size = file.size()
            if not 0 <= asked.position < size:
                return wire.snapshot_told(asked, leader, POSITION_OUT_OF_RANGE)
            data = file.pread(min(max(asked.max_bytes, 1), size - asked.position), asked.position)
        finally:
            file.close()
        self._replica.hear_of(asked.replica, asked.directory, self._now_ms())
        return wire.snapshot_told(asked, leader, NONE, size, data)
