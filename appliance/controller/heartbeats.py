"""Which brokers were heard of lately: soft state of the active controller, in no record.

Invariant: what the metadata says of a broker (registered, fenced, shutting down) is in the image
alone; here is only when it was heard of and how far it has read. So a decision whose records never
come true leaves nothing wrong behind. Made anew when a node becomes the active controller: every
unfenced broker then has a whole session before it.

The deadline is the only reason to look; `stale` says who must be fenced. Called by
`broker_states.py` and by whoever drives the controller.
"""

from typing import Final

from appliance.base.dataclass import dataclass
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import BrokerImage

NEVER: Final = 1 << 62
"""A deadline that does not come."""


@dataclass(slots=True)
class _Session:
    """of: the broker epoch. registered: offset of the record that says so. until: when the session
    ends, in ms; 0: it was not heard of. heard: when it was last, in ms. offset: of the metadata
    that it has read, -1 when unknown. shutdown: the offset that all others must reach before it may
    end, -1 while it does not want to."""

    of: int
    registered: int
    until: int = 0
    heard: int = 0
    offset: int = -1
    shutdown: int = -1


class Heartbeats:
    """own: the broker beside this controller, whose life is ours, -1: none. session_ms:
    `broker.session.timeout.ms`. Times are milliseconds of a clock that never goes back."""

    __slots__ = ("_own", "_session_ms", "_sessions", "deadline")

    def __init__(self, image: MetadataImage, own: int, session_ms: int, now_ms: int) -> None:
        assert session_ms > 0
        self._own = own
        self._session_ms = session_ms
        self._sessions: dict[int, _Session] = {}
        self.deadline = NEVER
        for broker in image.brokers.values():
            if not broker.fenced:
                self.record_heartbeat(broker.broker_id, broker.epoch, -1, now_ms)

    def record_heartbeat(self, broker_id: int, epoch: int, offset: int, now_ms: int) -> None:
        """The broker of this epoch has read the metadata up to `offset`, inclusive."""
        session = self._session(broker_id, epoch)
        session.until = now_ms + self._session_ms
        session.heard = now_ms
        session.offset = offset
        self._look()

    def heard_at(self, broker_id: int) -> int:
        """When it was heard of last, in ms; NEVER where no session of it is under way."""
        session = self._sessions.get(broker_id)
        return session.heard if session is not None and session.until else NEVER

    def silent(self, broker_id: int, since_ms: int) -> None:
        """The quorum has not heard of this one since then, when it led: so long ago its session
        began."""
        session = self._sessions.get(broker_id)
        if session is not None and session.until and session.heard > since_ms:
            session.heard = since_ms
            session.until = min(session.until, since_ms + self._session_ms)
            self._look()

    def registers(self, broker_id: int, epoch: int, offset: int) -> None:
        """The broker has this epoch by the record at this offset; nothing of an incarnation before
        counts. It is not heard of yet."""
        self._session(broker_id, epoch).registered = offset
        self._look()

    def registered_at(self, broker_id: int, epoch: int) -> int:
        """The offset that the broker must have read to be in use: of its registration, as far as
        that is known here, or of the record that began it."""
        session = self._sessions.get(broker_id)
        return session.registered if session is not None and session.of == epoch else epoch

    def lost(self, broker_id: int, now_ms: int, within_ms: int) -> None:
        """There is evidence that the broker is gone (it refuses connections, or answers nothing):
        unless it is heard of within so long its session ends."""
        session = self._sessions.get(broker_id)
        if session is not None and session.until:
            session.until = min(session.until, now_ms + within_ms)
            self._look()

    def doubt(self, broker_id: int, now_ms: int, within_ms: int) -> None:
        """Somebody else registers with its id. A broker that lives tells a new controller so at
        once: one that was never heard of here is as good as lost."""
        session = self._sessions.get(broker_id)
        if session is not None and session.offset < 0:
            self.lost(broker_id, now_ms, within_ms)

    def forget_broker(self, broker_id: int) -> None:
        """The broker is not registered any more."""
        self._sessions.pop(broker_id, None)
        self._look()

    def has_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """True if the session of the broker with this epoch has not expired."""
        session = self._sessions.get(broker_id)
        return session is not None and session.of == epoch and now_ms <= session.until

    def stale(self, image: MetadataImage, now_ms: int) -> int:
        """A broker whose session is over and that is not fenced, -1 when there is none. Costs
        nothing before the deadline."""
        if now_ms < self.deadline:
            return -1
        for broker_id, session in self._sessions.items():
            broker = image.brokers.get(broker_id)
            over = broker_id != self._own and session.until < now_ms
            if over and broker is not None and not broker.fenced and broker.epoch == session.of:
                return broker_id
        for session in self._sessions.values():
            if session.until < now_ms:
                session.until = 0  # fenced, or not registered any more
        self._look()
        return -1

    def shuts_down(self, broker_id: int, epoch: int, offset: int) -> None:
        """The broker wants to end, and may when all others have read up to `offset`."""
        self._session(broker_id, epoch).shutdown = offset

    def ends_at(self, broker: BrokerImage) -> int:
        """Returns the metadata offset that the other brokers must reach before this one may shut
        down; -1 without a pending controlled shutdown, or if its begin is unknown here."""
        session = self._sessions.get(broker.broker_id)
        if session is None or session.of != broker.epoch or not broker.in_controlled_shutdown:
            return -1
        return session.shutdown

    def stays(self, broker_id: int) -> None:
        """The broker is fenced: whether it wants to end is asked anew."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.shutdown = -1

    def ended(self, broker_id: int) -> None:
        """The broker was told to end, as it wanted: its successor need not wait for its session."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.shutdown, session.until = -1, 0
            self._look()

    def lowest_offset(self, image: MetadataImage) -> int:
        """How far every active broker has read; NEVER when no other is active."""
        return min(
            (
                self._sessions[broker_id].offset if broker_id in self._sessions else -1
                for broker_id, broker in image.brokers.items()
                if broker_id != self._own and not broker.fenced and self.ends_at(broker) < 0
            ),
            default=NEVER,
        )

    def _session(self, broker_id: int, epoch: int) -> _Session:
        session = self._sessions.get(broker_id)
        if session is None or session.of != epoch:
            session = self._sessions[broker_id] = _Session(epoch, epoch)
        return session

    def _look(self) -> None:
        ends = [
            one.until
            for broker_id, one in self._sessions.items()
            if one.until and broker_id != self._own
        ]
        self.deadline = min(ends) + 1 if ends else NEVER
