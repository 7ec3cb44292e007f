"""One client's connection: a transport, frames out of its bytes, answers back in the order of the
requests, and the state that says which of this goes on.

Reading stops (and TCP holds the client back) while too many answers wait or there is no room; it
goes on when there is room again. Whoever makes no progress for too long is hung up on by the sweep.
The floor is what all connections of a process share; requests go to its reception.
"""

import contextlib
import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final

from appliance.authorization.rights import Rights
from appliance.base.caller import ANONYMOUS
from appliance.base.compiled import mypyc_attr
from appliance.config.broker import BrokerConfig
from appliance.handlers.exchange import Exchange, Line
from appliance.netproc import sniff, states
from appliance.netproc.admission import Admission
from appliance.netproc.cursors import Cursors
from appliance.netproc.framing import FrameRefused, Framing
from appliance.netproc.habits import Habits
from appliance.netproc.limits import ConnectionLimits
from appliance.netproc.pace import FramePace
from appliance.netproc.page_cache import PageCache
from appliance.netproc.sealing import Sealing
from appliance.netproc.sending import COLD, FULL, SHARE, Sending
from appliance.netproc.states import CLOSED, DRAINING, HANDSHAKE, MUTED, OPEN, STARVING, move
from appliance.netproc.stopwatch import Account, Stopwatch
from appliance.netproc.transport import ENDED, READ, WRITE, Transport
from appliance.ring.arena import UNIT, Arena
from appliance.ring.client_table import ClientRows
from appliance.ring.counters import AnswerCounts
from appliance.shell.bugs import Bugs
from appliance.shell.log import NOTICE, Log
from appliance.shell.loop import Loop

MOST_IN_FLIGHT: Final = 128
MOST_HANDSHAKES: Final = 8  # rounds in a turn, each up to a ms: others are served in between
_MS_NS: Final = 1_000_000
_USUAL: Final = (errno.EPIPE, errno.ECONNRESET, errno.ETIMEDOUT)
_NAME: Final = 100  # characters of a client's own in a line of the log
_HUNG_UP: Final = ~(READ | WRITE)  # the bits that come unasked


class Floor:
    """What the connections of a process share, and which of them wait for what.

    heir: goes on with connections that are drained; without one they are hung up on. sealing: says
    who has shown a certificate. committed, applied: where the metadata log ends, and how far it is
    replayed here: far behind, nobody is read. dirty: have something to send in this turn. starving:
    look for room in the next turn. in_line: wait for memory for a long request, in their order.
    hungry: for a short one. cold: wait for the disk."""

    def __init__(
        self,
        loop: Loop,
        log: Log,
        watch: Stopwatch,
        memory: memoryview,
        config: BrokerConfig,
        counts: AnswerCounts,
        clients: ClientRows,
        committed: memoryview,
        listeners: Sequence[str] = (),
    ) -> None:
        """memory: the receive arena's. clients: where it is told who is connected. committed: the
        word that says how far the metadata is. listeners: their names; none: as configured."""
        self.counts = counts
        self.clients = clients
        self.listeners = list(listeners) or [one.name for one in config.opened()]
        self.loop = loop
        self.log = log
        self.bugs = Bugs(log)
        self.watch = watch
        self.memory = memory
        self.arena = Arena(len(memory))
        self.admission = Admission(self.arena, len(memory))
        self.page_cache = PageCache()
        self.limits = ConnectionLimits()
        self.frame_limit = min(config.int("socket.request.max.bytes"), len(memory) // 2)
        self.queued_limit = config.int("penstock.connection.queued.max.bytes")
        self.forwarded_limit = config.int("penstock.connection.control.max.requests")
        self.committed = committed
        self.applied = self.now_ns = 0  # of the metadata; of this turn
        self.open: dict[int, Connection] = {}
        self.dirty: list[Connection] = []
        self.starving: dict[Connection, None] = {}
        self.in_line: dict[Connection, None] = {}
        self.hungry: dict[Connection, None] = {}
        self.cold: dict[Connection, None] = {}
        self.heir: Heir | None = None
        self.sealing: Sealing | None = None
        self.handshakes = 0  # rounds of them in this turn

    def mark_dirty(self, connection: "Connection") -> None:
        """Something can be sent at the end of this turn."""
        if not connection.dirty:
            connection.dirty = True
            self.dirty.append(connection)

    def leave_line(self, connection: "Connection") -> None:
        """It waits for memory no more."""
        self.hungry.pop(connection, None)
        self.in_line.pop(connection, None)
        self.admission.in_line = bool(self.in_line)

    def habits(self) -> Iterator[Habits]:
        """Of every connection."""
        return (connection.habits for connection in self.open.values())


@mypyc_attr(allow_interpreted_subclasses=True)
class Reception(ABC):
    """Who serves what a connection receives."""

    @abstractmethod
    def request(self, connection: "Connection", position: int, end: int) -> None:
        """One whole frame lies at memory[position:end], without its length."""
        ...

    @abstractmethod
    def level(self, connection: "Connection") -> bool:
        """Its next request may be taken although `applied` is behind `committed`."""
        ...

    def holds(self, connection: "Connection") -> bool:
        """Its next request must not be taken before those under way are answered."""
        return False

    @abstractmethod
    def abandoned(self, x: Exchange) -> None:
        """Nobody waits for the answer to this any more: its connection is closed."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Heir(ABC):
    """Who takes the connections over when this process ends and another one goes on."""

    @abstractmethod
    def takes(self, connection: "Connection") -> bool:
        """Everything it asked is answered and sent: whether it is done with here."""
        ...


class Connection:
    """One client. state: one of `states`. dirty: it is among the floor's. listener: the number of
    that by which it came. row: where others see it. software: name and version by ApiVersions.
    principal: proved. rights: of principal and client_id, as in the last request; the intake's.
    kept: messages that no ring has taken; forwarded: those control has not answered; outbox's.
    moved_ns: when bytes last came. pace: of the frame that is arriving; the sweep's."""

    __slots__ = (
        "_blocked",
        "_floor",
        "_pause_until_ns",
        "_reception",
        "account",
        "address",
        "client_id",
        "cursors",
        "dirty",
        "forwarded",
        "framing",
        "habits",
        "kept",
        "line",
        "listener",
        "mask",
        "moved_ns",
        "one_by_one",
        "pace",
        "principal",
        "rights",
        "row",
        "sending",
        "software",
        "state",
        "transport",
    )

    def __init__(
        self,
        floor: Floor,
        reception: Reception,
        transport: Transport,
        address: str,
        listener: int,
    ) -> None:
        self._floor = floor
        self._reception = reception
        self.transport = transport
        self.address = address
        self.listener = listener
        self.principal = ANONYMOUS
        self.software: tuple[str, str] | None = None
        self.client_id: bytes | None = None
        self.rights: Rights | None = None
        share = floor.limits.share(address)
        self.framing = Framing(floor.admission, floor.memory, floor.frame_limit, share)
        self.sending = Sending(floor.page_cache, floor.counts)
        self.habits = Habits(address)
        self.account = Account()
        self.cursors: Cursors | None = None  # made by its first fetch
        self.line: Line | None = None  # made by its first request of a transaction
        self.state = HANDSHAKE
        self.dirty = False
        self.kept = self.forwarded = 0
        self.one_by_one = False  # near its quota: no request before the last one is answered
        self.mask = READ  # what the loop watches for; written by `_watch` alone
        self._blocked = False  # the transport took less than there is to send
        self.moved_ns = floor.now_ns
        self.pace: FramePace | None = None
        self._pause_until_ns = 0
        floor.loop.register(transport.fd, READ, self)  # may fail: nothing knows of it yet
        self.row = floor.clients.claim(address, floor.listeners[listener], floor.now_ns // _MS_NS)
        floor.open[transport.fd] = self
        self._agree()

    @property
    def pause_until_ns(self) -> int:
        """Its client is over a quota until then; in the past: it is not."""
        return self._pause_until_ns

    @property
    def closed(self) -> bool:
        """For ever."""
        return self.state == CLOSED

    # What the loop and the turn tell --------------------------------------------------------------

    def ready(self, mask: int) -> None:
        """The loop says that the socket can be read or written, or that the client hung up."""
        floor, state = self._floor, self.state
        if floor.watch.running:
            floor.watch.begin(self.account)
        if state == HANDSHAKE:
            floor.handshakes += 1
            if floor.handshakes <= MOST_HANDSHAKES:
                self._agree()  # else the loop says it again, in the next turn
        elif state != CLOSED and self.transport.wants:
            self._go_on()
        elif state != CLOSED:
            if mask & WRITE:
                floor.mark_dirty(self)
            if (mask & READ and state == OPEN) or mask & _HUNG_UP:
                self._receive()
        if floor.watch.running:
            floor.watch.end()

    def resume(self) -> None:
        """A pause is over, or there may be room again: go on with what is here, then read."""
        floor = self._floor
        if self.state == MUTED:
            if self._pause_until_ns > floor.now_ns:
                return
            self.state = move(MUTED, states.PAUSE_OVER)
        elif self.state == STARVING:
            self.state = move(STARVING, states.ROOM)
        elif self.state != OPEN:
            return
        if floor.watch.running:
            floor.watch.begin(self.account)
        self._take()
        if self.transport.buffered and not self.transport.wants and self.state == OPEN:
            self._receive()
        self._watch()
        if floor.watch.running:
            floor.watch.end()

    def feed(self) -> bool:
        """Go on if there is memory for what has arrived; False: it waits as before."""
        if self.state == STARVING and not self.framing.settle_bytes():
            return False
        self._floor.leave_line(self)
        self.resume()
        return True

    def mute(self, until_ns: int) -> None:
        """Take no more requests before `until_ns`; whoever says so calls `resume` then."""
        if self.state != CLOSED:
            self.state = move(self.state, states.MUTE)
            self._pause_until_ns = max(until_ns, self._pause_until_ns)
            self._watch()

    def tell_pause(self, kind: int, until_ms: int, pause_ms: int) -> None:
        """Show others that the client was told to wait, for this kind of quota."""
        self._floor.clients.pause(self.row, kind, until_ms, pause_ms)

    def flush(self) -> None:
        """Send what is answered, in order, as far as the transport takes it."""
        if self.state == CLOSED:
            return
        floor = self._floor
        try:
            outcome = self.sending.send(self.transport, floor.now_ns)
        except OSError as problem:
            if problem.errno not in _USUAL:
                self.complain("send-failed", str(problem))
            self.close()
            return
        if outcome == SHARE:
            floor.mark_dirty(self)
        elif outcome == COLD:
            floor.cold[self] = None
        blocked = outcome == FULL
        if blocked != self._blocked or self.transport.wants:
            self._blocked = blocked
            self._watch()
        if self.state == DRAINING:
            self._hang_up_if_drained()

    def drain(self) -> None:
        """Take no more requests; hang up once all is answered and sent, or leave it to the heir."""
        if self.state == HANDSHAKE:
            self.close()
        elif self.state != CLOSED:
            if self.state != DRAINING:
                self.state = move(self.state, states.DRAIN)
                self._watch()
            self._hang_up_if_drained()

    def complain(self, event: str, why: str) -> None:
        """One line about this peer, at most one a second for each event and address."""
        name = self.client_id
        who = {} if name is None else {"client": name.decode(errors="replace")[:_NAME]}
        self._floor.log.event_from(NOTICE, event, self.address, **who, why=why)

    def blame(self, where: str, bug: Exception) -> None:
        """Tell a bug that stopped this connection in the middle of something, and hang up."""
        self._floor.bugs.report(where, bug, peer=self.address)
        self.close()

    def close(self) -> None:
        """Hang up; what is pending is dropped when its completions come."""
        if self.state == CLOSED:
            return
        self.state = move(self.state, states.CLOSE)
        floor, sending = self._floor, self.sending
        floor.loop.unregister(self.transport.fd)
        del floor.open[self.transport.fd]
        floor.starving.pop(self, None)
        floor.leave_line(self)
        floor.cold.pop(self, None)
        floor.limits.release(self.address)
        sending.publish_counts(floor.clients, self.row, floor.now_ns)
        floor.clients.release(self.row)
        asked = list(sending.queue)
        self.transport.close()
        sending.drop()
        self.framing.drop()
        for x in asked:
            self._reception.abandoned(x)

    # The transport --------------------------------------------------------------------------------

    def _agree(self) -> None:
        """Go on with the transport's conversation before the first request."""
        try:
            agreed = self.transport.agree() and self._meet()
        except (OSError, ValueError) as problem:
            if not isinstance(problem, BrokenPipeError):  # it went, and said nothing of why
                self.complain("handshake-failed", str(problem))
            self.close()
            return
        self.moved_ns = self._floor.now_ns
        if agreed:
            self.state = move(self.state, states.AGREED)
            if self.transport.buffered:
                self._floor.starving[self] = None  # the socket may say nothing more
        self._watch()

    def _meet(self) -> bool:
        """Who it is by its certificate; True. Raises ValueError: nobody."""
        shown, floor = self.transport.certificate(), self._floor
        if shown is not None:
            assert floor.sealing is not None, "a certificate where no TLS is spoken"
            self.principal = floor.sealing.principal(floor.listeners[self.listener], shown)
        return True

    def _go_on(self) -> None:
        """Go on with the transport's conversation in the middle of others."""
        try:
            self.transport.go_on()
        except OSError:
            self.close()
            return
        if not self.transport.wants:
            if self.sending.out:
                self._floor.mark_dirty(self)
            if self.transport.buffered:
                self._floor.starving[self] = None
        self._watch()
        if self.state == DRAINING:
            self._hang_up_if_drained()

    def _receive(self) -> None:
        framing, transport = self.framing, self.transport
        if (room := framing.room()) is None:
            self._wait_for_memory()
            return
        try:
            count = transport.receive(room)
        except OSError:
            count = ENDED
        if count == ENDED:
            self.close()
            return
        if count > 0:
            framing.arrived(count)
            self.moved_ns = self._floor.now_ns
            self._take()
        if transport.wants:
            self._watch()
        elif transport.buffered and self.state == OPEN:
            self._floor.starving[self] = None

    def _take(self) -> None:
        """Hand whole frames to the reception, one after the other, as long as it is open."""
        framing, sending, floor = self.framing, self.sending, self._floor
        reception = self._reception
        try:
            if framing.aside and not framing.settle_bytes():
                self._wait_for_memory()
                return
            while self.state == OPEN and framing.start != framing.end:
                queued = len(sending.queue)
                if (
                    self.kept
                    or self.forwarded >= floor.forwarded_limit
                    or (floor.committed[0] != floor.applied and not reception.level(self))
                    or queued >= MOST_IN_FLIGHT
                    or sending.out_bytes > floor.queued_limit
                    or (queued and self.one_by_one)
                    or (queued and self.line is not None and reception.holds(self))
                ):
                    if framing.waiting():
                        self._starve(floor.starving)
                    return
                if not (end := framing.next()):
                    break
                reception.request(self, framing.body, end)
            if floor.admission.in_line:
                framing.rest()  # others need it
        except FrameRefused as refused:
            self._refuse(refused)

    def _starve(self, line: dict["Connection", None]) -> None:
        """Takes no more until there is room again; the next turn looks. line: the floor's
        of those who wait for the same."""
        if self.state == OPEN:
            self.state = move(OPEN, states.FULL)
            line[self] = None
            self._watch()

    def _wait_for_memory(self) -> None:
        """Reads no more until `feed`."""
        floor = self._floor
        self._starve(floor.in_line if self.framing.asks() > UNIT else floor.hungry)
        floor.admission.in_line = bool(floor.in_line)

    def _refuse(self, refused: FrameRefused) -> None:
        who = sniff.what(refused.head)
        if who is None:
            who = f"{refused}; 8 to {self._floor.frame_limit} are taken (socket.request.max.bytes)"
        if sniff.is_http(refused.head):
            with contextlib.suppress(OSError):
                self.transport.send([sniff.HTTP_ANSWER], False)
        self.complain("refused-bytes", who)
        self.close()

    def _hang_up_if_drained(self) -> None:
        if not self.sending.idle() or self.transport.wants:
            return
        heir = self._floor.heir
        if heir is None or heir.takes(self):
            self.close()

    def _watch(self) -> None:
        """Tell the loop what this connection waits for."""
        if self.state == CLOSED:
            return
        mask = self.transport.wants
        assert mask or self.state != HANDSHAKE, "a handshake waits for nothing"
        if not mask:
            mask = (READ if self.state == OPEN else 0) | (WRITE if self._blocked else 0)
        if mask != self.mask:
            self.mask = mask
            self._floor.loop.modify(self.transport.fd, mask)
