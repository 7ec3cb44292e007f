"""One client's connection: a transport, frames out of its bytes, answers back in the order of the
requests, and the state that says which of this goes on.

Reading stops (and TCP holds the client back) while too many answers wait or there is no room. The
sweep closes stalled connections. All share ConnectionsState; requests go to a RequestReceiver.
"""

import errno
from typing import Final

from appliance.authorization.rights import Rights
from appliance.base.caller import ANONYMOUS
from appliance.config.bounds import HANDSHAKES, LOGIN_BYTES, REQUEST_BYTES, setting_of
from appliance.handlers.exchange import Line
from appliance.netproc.connections import connection_states as states
from appliance.netproc.connections.client_activity import ClientActivity
from appliance.netproc.connections.connection_states import (
    AUTHENTICATING,
    CHECKING,
    CLOSED,
    DRAINING,
    FINISHING,
    HANDSHAKE,
    MUTED,
    OPEN,
    READ_FROM,
    STARVING,
    next_state,
)
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.connections.frame_pace import FramePace
from appliance.netproc.connections.framing import FrameRefused, Framing
from appliance.netproc.connections.receivers import RequestReceiver
from appliance.netproc.connections.request_time import Account
from appliance.netproc.connections.send_queue import COLD, FULL, SENT, SHARE, SendQueue
from appliance.netproc.files.fetch_cursors import FetchCursors
from appliance.netproc.transport import protocol_sniff
from appliance.netproc.transport.transport import ENDED, GONE, PEER_ENDED, READ, WRITE, Transport
from appliance.ring.arena import UNIT
from appliance.shell.log import NOTICE

MOST_IN_FLIGHT: Final = 128
MOST_HANDSHAKES: Final = 8  # rounds in a turn, each up to a ms: others are served in between
_MS_NS: Final = 1_000_000
_USUAL: Final = (errno.EPIPE, errno.ECONNRESET, errno.ETIMEDOUT)
_NAME: Final = 100  # characters of a client's own in a line of the log


class Connection:
    """One client. state: one of `states`. dirty: it is in the shared list of these. listener: the
    number of that by which it came. row: where others see it. software: name and version, by
    ApiVersions. principal: proved. session: of its login, None: it needs none. rights: of
    principal and client_id, as in the last request; the intake's. kept: messages that no ring has
    taken; forwarded: those control has not answered; the outbox's. since_ns: when it came;
    moved_ns: when bytes last did. pace: of the frame that arrives; the sweep's.
    pause_until_ns: its client is over a quota until then."""

    __slots__ = (
        "_blocked", "_ended", "_greeting", "_receiver", "_shared", "account", "address",
        "client_id", "cursors", "dirty", "forwarded", "framing", "habits", "kept", "line",
        "listener", "mask", "moved_ns", "one_by_one", "pace", "pause_until_ns", "principal",
        "rights", "row", "sending", "session", "since_ns", "software", "state", "transport",
    )  # fmt: skip

    def __init__(
        self,
        shared: "ConnectionsState[Connection]",
        receiver: "RequestReceiver[Connection]",
        transport: Transport,
        address: str,
        listener: int,
    ) -> None:
        self._shared = shared
        self._receiver = receiver
        self.transport = transport
        self.address = address
        self.listener = listener
        self.principal = ANONYMOUS
        self.software: tuple[str, str] | None = None
        self.client_id: bytes | None = None
        self.rights: Rights | None = None
        share = shared.limits.share(address)
        self.framing = Framing(shared.admission, shared.memory, shared.frame_limit, share)
        keeper = shared.doorkeeper
        self.session = None if keeper is None else keeper.session(listener, shared.now_ns)
        self.framing.bound(self._shared.request_limit(self.session))
        self.sending = SendQueue(shared.page_cache, shared.counts)
        self.habits = ClientActivity(address)
        self.account = Account()
        self.cursors: FetchCursors | None = None  # made by its first fetch
        self.line: Line | None = None  # made by its first request of a transaction
        self.state = HANDSHAKE
        self.dirty = False
        self.kept = self.forwarded = 0
        self.one_by_one = False  # near its quota: no request before the last one is answered
        self.mask = READ  # what the loop watches for; written by `_watch` alone
        self._blocked = False  # the transport took less than there is to send
        self._ended = False  # its client sends nothing more, seen while it was not read
        self._greeting = False  # its handshake is counted among those under way
        self.since_ns = self.moved_ns = shared.now_ns
        self.pace: FramePace | None = None
        self.pause_until_ns = 0
        shared.loop.register(transport.fd, READ, self)  # may fail: nothing knows of it yet
        self.row = shared.clients.claim(
            address, shared.listeners[listener], shared.now_ns // _MS_NS
        )
        shared.open[transport.fd] = self
        self._begin()

    @property
    def closed(self) -> bool:
        """True after `close`; the state is final."""
        return self.state == CLOSED

    # What the loop and the turn tell --------------------------------------------------------------

    def ready(self, mask: int) -> None:
        """The loop says that the socket can be read or written, or that the client hung up."""
        shared, state = self._shared, self.state
        if shared.watch.running:
            shared.watch.begin_account(self.account)
        if state == HANDSHAKE:
            shared.handshakes += 1
            if shared.handshakes <= MOST_HANDSHAKES:
                self._agree()  # else the loop says it again, in the next turn
        elif state != CLOSED and self.transport.wants:
            self._go_on()
        elif state != CLOSED:
            if mask & WRITE:
                self.mark_dirty()
            if mask & READ and state in READ_FROM:
                self._receive()
            elif mask & GONE:
                self.close()
            elif mask & PEER_ENDED:
                self._note_end()
        if shared.watch.running:
            shared.watch.end_account()

    def resume(self) -> None:
        """A pause is over, or there may be room again: go on with what is here, then read."""
        shared = self._shared
        if self.state == MUTED:
            if self.pause_until_ns > shared.now_ns:
                return
            self.state = next_state(MUTED, states.PAUSE_OVER)
        elif self.state == STARVING:
            self.state = next_state(STARVING, states.ROOM)
        elif self.state not in READ_FROM:
            return
        session = self.session
        if session is not None and not session.known and self.state == OPEN:
            self.state = next_state(OPEN, states.AGAIN)
        if shared.watch.running:
            shared.watch.begin_account(self.account)
        self._take()
        if self.transport.buffered and not self.transport.wants and self.state in READ_FROM:
            self._receive()
        self._watch()
        if shared.watch.running:
            shared.watch.end_account()

    def feed(self) -> bool:
        """Go on if there is memory for what has arrived; False: it waits as before."""
        if self.state == STARVING and not self.framing.settle_bytes():
            return False
        self._shared.leave_line(self)
        self.resume()
        return True

    def mute(self, until_ns: int) -> None:
        """Take no more requests before `until_ns`; whoever says so calls `resume` then."""
        if self.state != CLOSED:
            self.state = next_state(self.state, states.MUTE)
            self.pause_until_ns = max(until_ns, self.pause_until_ns)
            self._watch()

    def tell_pause(self, kind: int, until_ms: int, pause_ms: int) -> None:
        """Show others that the client was told to wait, for this kind of quota."""
        self._shared.clients.pause(self.row, kind, until_ms, pause_ms)

    def mark_dirty(self) -> None:
        """Something can be sent at the end of this turn."""
        if not self.dirty:
            self.dirty = True
            self._shared.dirty.append(self)

    def flush(self) -> None:
        """Send what is answered, in order, as far as the transport takes it."""
        if self.state == CLOSED or self.sending.lent:
            return
        shared = self._shared
        try:
            outcome = self.sending.send_answers(self.transport, shared.now_ns)
        except OSError as problem:
            self._end_sending(problem)
            return
        if outcome != SENT and shared.long_answers is not None:
            alone_ns = shared.now_ns - shared.switched_ns
            outcome = shared.long_answers.consider(self, outcome, alone_ns)
        if outcome == SHARE:
            self.mark_dirty()
        elif outcome == COLD:
            shared.cold[self] = None
        blocked = outcome == FULL
        if blocked != self._blocked or self.transport.wants:
            self._blocked = blocked
            self._watch()
        if self.state == DRAINING or self.state == FINISHING:
            self._hang_up_if_drained()

    def take_back(self, problem: Exception | None) -> None:
        """As `long_answers.Lender`."""
        if self.state == CLOSED:
            self.sending.drop()
            self.transport.close()
        elif problem is None:
            self.mark_dirty()
        else:
            self._end_sending(problem)

    def _end_sending(self, problem: Exception) -> None:
        if not isinstance(problem, OSError):
            self.blame("sending", problem)
            return
        if problem.errno not in _USUAL:
            self.complain("send-failed", str(problem))
        self.close()

    def drain(self) -> None:
        """Take no more requests; hang up once all is answered and sent, or leave it to the heir."""
        if self.state in (HANDSHAKE, AUTHENTICATING, CHECKING):
            self.close()
        elif self.state != CLOSED:
            if self.state != DRAINING and self.state != FINISHING:
                self.state = next_state(self.state, states.DRAIN)
                self._watch()
            self._hang_up_if_drained()

    def complain(self, event: str, why: str, bound: str = "") -> None:
        """One line, at most one a second for each event and address. bound: reached."""
        client = (self.client_id or b"").decode(errors="replace")[:_NAME]
        who = {key: one for key, one in (("bound", bound), ("client", client)) if one}
        self._shared.log.event_from(NOTICE, event, self.address, **who, why=why)

    def blame(self, where: str, bug: Exception) -> None:
        """Tell a bug that stopped this connection in the middle of something, and hang up."""
        self._shared.bugs.report(where, bug, peer=self.address)
        self.close()

    def close(self) -> None:
        """Hang up; what is pending is dropped when its completions come."""
        if self.state == CLOSED:
            return
        self.state = next_state(self.state, states.CLOSE)
        shared, sending = self._shared, self.sending
        shared.loop.unregister(self.transport.fd)
        del shared.open[self.transport.fd]
        shared.starving.pop(self, None)
        shared.leave_line(self)
        shared.cold.pop(self, None)
        self._end_handshake()
        shared.limits.release(self.address)
        sending.publish_counts(shared.clients, self.row, shared.now_ns)
        shared.clients.release(self.row)
        asked = list(sending.queue)
        sending.drop()
        self.transport.hang_up(lent=sending.lent)
        self.framing.drop()
        for x in asked:
            self._receiver.abandoned(x)

    # Its login ------------------------------------------------------------------------------------

    def hold_login(self) -> None:
        """Reads nothing while a login is decided, or its refusal is held back."""
        self.state = next_state(self.state, states.ASKED)
        self._watch()

    def end_login(self, known: bool) -> None:
        """Goes on behind an answer. known: it may be served, else its mechanism wants more."""
        waited = self.state == CHECKING
        if known or waited:
            self.state = next_state(self.state, states.KNOWN if known else states.UNDECIDED)
        self.framing.bound(self._shared.request_limit(self.session))
        if waited:
            self._take()
            self._watch()

    def ask_again(self) -> None:
        """It has to log in anew before its next request."""
        self.state = next_state(self.state, states.AGAIN)
        self.framing.bound(self._shared.request_limit(self.session))

    def dismiss(self) -> None:
        """It is not let in: hang up as soon as that is sent."""
        if self.state != CLOSED:
            self.state = next_state(self.state, states.DISMISS)
            self._watch()

    # The transport --------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Its first round of a handshake counts as the others do, where there is one."""
        shared = self._shared
        if self.transport.stays:
            if not shared.limits.begin_handshake(self.address):
                self.complain("connection-refused", "too many handshakes", HANDSHAKES)
                self.close()
                return
            self._greeting = True
            shared.handshakes += 1
            if shared.handshakes > MOST_HANDSHAKES:
                return  # the loop tells of its first bytes
        self._agree()

    def _end_handshake(self) -> None:
        if self._greeting:
            self._greeting = False
            self._shared.limits.end_handshake(self.address)

    def _agree(self) -> None:
        """Go on with the transport's conversation before the first request."""
        try:
            agreed = self.transport.agree()
            if agreed and self.session is None and (shown := self.transport.certificate()):
                self.principal = self._shared.meet(self.listener, self.address, shown)
        except (OSError, ValueError) as problem:
            if not isinstance(problem, BrokenPipeError):  # it went, and said nothing of why
                self.complain("handshake-failed", str(problem))
                self._shared.audit_handshake(self.listener, self.address, why=str(problem))
            self.close()
            return
        self.moved_ns = self._shared.now_ns
        if agreed:
            self._end_handshake()
            event = states.AGREED if self.session is None else states.STRANGER
            self.state = next_state(self.state, event)
            if self.transport.buffered:
                self._shared.starving[self] = None  # the socket may say nothing more
        self._watch()

    def _go_on(self) -> None:
        """Go on with the transport's conversation in the middle of others."""
        try:
            self.transport.continue_io()
        except OSError:
            self.close()
            return
        if not self.transport.wants:
            if self.sending.out:
                self.mark_dirty()
            if self.transport.buffered:
                self._shared.starving[self] = None
        self._watch()
        if self.state == DRAINING or self.state == FINISHING:
            self._hang_up_if_drained()

    def _receive(self) -> None:
        framing, transport, shared = self.framing, self.transport, self._shared
        if (room := framing.room()) is None:
            self._wait_for_memory()
            return
        try:
            count = transport.receive(room)
        except OSError:
            self.close()
            return
        if count == ENDED:
            self._finish()
            return
        if count > 0:
            framing.arrived(count)
            self.moved_ns = shared.now_ns
            if shared.latest is not self:
                shared.latest = self
                shared.switched_ns = shared.now_ns
            self._take()
        if transport.wants:
            self._watch()
        elif transport.buffered and self.state in READ_FROM:
            shared.starving[self] = None

    def _take(self) -> None:
        """Hand whole frames to the receiver, one after the other, as long as it is open."""
        framing, sending, shared = self.framing, self.sending, self._shared
        receiver = self._receiver
        try:
            if framing.aside and not framing.settle_bytes():
                self._wait_for_memory()
                return
            while self.state in READ_FROM and framing.start != framing.end:
                queued = len(sending.queue)
                if (
                    self.kept
                    or self.forwarded >= shared.forwarded_limit
                    or (shared.committed[0] != shared.applied and not receiver.level(self))
                    or queued >= MOST_IN_FLIGHT
                    or sending.out_bytes > shared.queued_limit
                    or (queued and self.one_by_one)
                    or (queued and self.line is not None and receiver.holds(self))
                ):
                    if framing.waiting():
                        self._starve(shared.starving)
                    return
                if not (end := framing.next()):
                    break
                receiver.request(self, framing.body, end)
            if shared.admission.in_line:
                framing.rest()  # others need it
        except FrameRefused as refused:
            self._refuse(refused)

    def _finish(self) -> None:
        """The client sends nothing more: answer what it asked, then hang up, as Kafka does."""
        if self.sending.idle() or self.state == AUTHENTICATING:
            self.close()
            return
        self.state = next_state(self.state, states.END)
        self.framing.drop()  # a frame whose rest never comes
        self._receiver.end_polls(self)
        self._watch()

    def _note_end(self) -> None:
        """The client sends nothing more while it is not read: hang up unless it is to be served
        what it has sent before."""
        self._ended = True
        if self.sending.idle() and not self.framing.is_whole() and not self.transport.unread():
            self.close()
        else:
            self._watch()

    def _starve(self, line: dict["Connection", None]) -> None:
        """Takes no more until there is room again; the next turn looks. line: the shared state's
        of those who wait for the same."""
        if self.state in READ_FROM:
            self.state = next_state(self.state, states.FULL)
            line[self] = None
            self._watch()

    def _wait_for_memory(self) -> None:
        """Reads no more until `feed`."""
        shared = self._shared
        self._starve(shared.in_line if self.framing.asks() > UNIT else shared.hungry)
        shared.admission.in_line = bool(shared.in_line)

    def _refuse(self, refused: FrameRefused) -> None:
        stranger = self.session is not None and not self.session.known
        bound = LOGIN_BYTES if stranger else REQUEST_BYTES
        if (who := protocol_sniff.what(refused.head)) is not None:
            protocol_sniff.greet(self.transport, refused.head)
            self.complain("refused-bytes", who)
        else:
            who = f"{refused}; 8 to {self.framing.limit} are taken ({setting_of(bound)})"
            self.complain("refused-bytes", who, bound)
        self.close()

    def _hang_up_if_drained(self) -> None:
        if not self.sending.idle() or self.transport.wants:
            return
        heir = self._shared.heir if self.state == DRAINING else None
        if heir is None or heir.takes(self):
            self.close()

    def _watch(self) -> None:
        """Tell the loop what this connection waits for."""
        if self.state == CLOSED:
            return
        mask = self.transport.wants
        assert mask or self.state != HANDSHAKE, "a handshake waits for nothing"
        if not mask:
            mask = WRITE if self._blocked else 0
            if self.state in READ_FROM:
                mask |= READ
            elif (self.state == MUTED or self.state == STARVING) and not self._ended:
                mask |= PEER_ENDED
        if mask != self.mask:
            self.mask = mask
            self._shared.loop.modify(self.transport.fd, mask)
