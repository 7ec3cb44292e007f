"""The socket of a conversation with another node, in the epoll loop of whoever talks.

It connects when there is something to ask, and again after a pause when that failed or nothing was
answered: 50 ms, twice as long each time, a second at most, with the next address of a name that has
several. Names are
looked up on a thread, addresses at once. Nothing here waits.

A host that is not heard any more closes nothing: the kernel asks it each second, and gives the
connection up when nothing was acknowledged for 3 s. A process that is late, or stopped, is not
taken for that: its kernel answers. Without it who was cut off would wait for the retransmission of
an answer that was lost, whose pauses double each time.
"""

import errno
import select
import socket
from contextlib import suppress
from threading import Thread
from typing import Any, Final, Protocol

from appliance.base.clock import Clock
from appliance.base.errors import ConfigError, MalformedRequest
from appliance.peers.carrier import BLOCKED, Carrier, Carry, plain
from appliance.peers.conversation import IN_FLIGHT, NEVER, Body, Conversation, Done
from appliance.shell.loop import FileHandler

_CONNECT_MS: Final = 3_000
_VERSIONS_MS: Final = 3_000
_FIRST_PAUSE_MS: Final = 50
_LONGEST_PAUSE_MS: Final = 1_000
_LOOK_AGAIN_MS: Final = 5
_RENEWED: Final = 0.85
"""Part of a login's life after which the connection is made anew: where Kafka's clients begin."""
_PROBE_S: Final = 1
_UNHEARD_MS: Final = 3_000
_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_S),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD_MS),
)
_UNDER_WAY: Final = (errno.EINPROGRESS, errno.EAGAIN, errno.EINTR)
_REFUSED: Final = (errno.ECONNREFUSED, errno.ECONNRESET)

Address = tuple[socket.AddressFamily, Any]


class Watcher(Protocol):
    """The part of `shell.loop.Loop` that a link needs."""

    def register(self, fd: int, mask: int, handler: FileHandler) -> None: ...

    def modify(self, fd: int, mask: int) -> None: ...

    def unregister(self, fd: int) -> None: ...


class Link:
    """One connection at a time to a node. Its owner calls `turn` in each turn of its loop.

    A request that waits at the other side (a long poll) holds back those behind it: who has both
    kinds takes two links.
    """

    __slots__ = ("_addresses", "_carrier", "_carry", "_clock", "_lookup", "_mask", "_not_before_ms",
                 "_opens", "_pauses", "_renew_ms", "_sock", "_talk", "_unsent", "_until_ms",
                 "_watcher", "host", "node", "port")  # fmt: skip

    def __init__(
        self,
        node: int,
        host: str,
        port: int,
        watcher: Watcher,
        clock: Clock,
        client_id: str,
        in_flight: int = IN_FLIGHT,
        carry: Carry = plain,
    ) -> None:
        """node: its id. client_id: sent with each request. carry: makes what moves the bytes of a
        connection, in plaintext or TLS."""
        self.node = node
        self.host = host
        self.port = port
        self._watcher = watcher
        self._clock = clock
        self._talk = Conversation(client_id, "penstock", in_flight)
        self._carry = carry
        self._sock: socket.socket | None = None
        self._carrier: Carrier | None = None  # from the moment TCP is connected
        self._lookup: _Lookup | None = None
        self._addresses: list[Address] = []
        self._opens = False  # a connection is under way
        self._mask = 0
        self._unsent: list[memoryview] = []
        self._pauses = 0
        self._not_before_ms = 0
        self._until_ms = NEVER  # for a connection that is under way
        self._renew_ms = NEVER  # the login of the connection ends soon after

    def __repr__(self) -> str:
        return f"Link(node {self.node} at {self.host}:{self.port})"

    @property
    def connected(self) -> bool:
        """There is a connection, as far as is known here."""
        return self._sock is not None and not self._opens

    @property
    def idle(self) -> bool:
        """True if no request is in flight."""
        return not (self._talk.waiting or self._talk.in_flight)

    def ask_peer(
        self,
        api_key: int,
        version: int,
        message: Body,
        done: Done,
        timeout_ms: int,
        lowest: int = 0,
    ) -> None:
        """Ask in the highest version up to `version` that the node serves, not below `lowest`.

        message: plain values by kio's names (`wire.build`), or what encodes the body for a version.
        done: called once, in a later turn or from `turn`, with kio's answer or a PeerError
        (`conversation.Done`)."""
        until = self._now_ms() + timeout_ms
        self._talk.ask_peer(api_key, range(lowest, version + 1), message, done, until)

    def ask_raw(
        self,
        api_key: int,
        version: int,
        message: Body,
        done: Done,
        timeout_ms: int,
        lowest: int = 0,
    ) -> None:
        """The same; the answer is `Undecoded`: its bytes where they were received."""
        until = self._now_ms() + timeout_ms
        self._talk.ask_peer(api_key, range(lowest, version + 1), message, done, until, raw=True)

    def run_once(self) -> int:
        """Send, connect, give up what is late. Answers in how many ms it wants to be called again
        at the latest; NEVER when nothing is due."""
        if self._talk.quiet and self._until_ms == NEVER and self._lookup is None:
            return NEVER  # as most links are in most turns
        now_ms = self._now_ms()
        if self._talk.expire(now_ms):
            self._lost("a request was not answered in time")
        if now_ms >= self._until_ms:
            self._hang_up("no connection in time", failed=True)
        if now_ms >= self._renew_ms and not self._talk.in_flight:
            self._drop()
            self._talk.reopen()
        if self._sock is None and self._talk.waiting and now_ms >= self._not_before_ms:
            self._connect(now_ms)
        ready = self._sock is not None and not self._opens and not self._unsent
        if ready and self._talk.speaks and now_ms < self._renew_ms:
            self._send()
        due_ms = min(self._talk.deadline_ms, self._until_ms)
        if self._lookup is not None:
            due_ms = min(due_ms, now_ms + _LOOK_AGAIN_MS)
        elif self._sock is None and self._talk.waiting:
            due_ms = min(due_ms, self._not_before_ms)
        return NEVER if due_ms == NEVER else max(0, due_ms - now_ms)

    def close(self) -> None:
        """Hang up; whoever waits hears NETWORK_EXCEPTION. It may be asked again."""
        self._hang_up("the connection was given up", failed=False)

    def ready(self, mask: int) -> None:
        """The socket is ready (`shell.loop.Handler`)."""
        if self._opens and self._carrier is None:
            self._connected()
        elif self._opens:
            self._agree()
        elif mask & ~select.EPOLLOUT:
            self._receive()
        else:
            self._send()

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // 1_000_000

    # Connecting -----------------------------------------------------------------------------------

    def _connect(self, now_ms: int) -> None:
        addresses = self._addresses or self._look_up()
        if not addresses:
            return
        family, where = addresses[self._pauses % len(addresses)]
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as cause:  # no descriptors left
            self._hang_up(str(cause), failed=True)
            return
        with suppress(OSError):
            for option in _OPTIONS:
                sock.setsockopt(*option)
        code = sock.connect_ex(where)
        if code and code not in _UNDER_WAY:
            sock.close()
            self._not_made(code)
            return
        self._sock, self._opens, self._until_ms = sock, True, now_ms + _CONNECT_MS
        self._mask = select.EPOLLOUT
        self._watcher.register(sock.fileno(), self._mask, self)

    def _look_up(self) -> list[Address]:
        """Empty: they are not known yet, or not at all."""
        if self._lookup is None:
            with suppress(OSError):
                self._addresses = _resolve(self.host, self.port, socket.AI_NUMERICHOST)
                return self._addresses
            self._lookup = _Lookup(self.host, self.port)
            self._lookup.start()
        if self._lookup.is_alive():
            return []
        found, self._lookup = self._lookup.found, None
        if not found:
            self._hang_up(f"{self.host} has no address", failed=True)
        return found  # asked again for each connection: names move

    def _connected(self) -> None:
        sock = self._sock
        assert sock is not None
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        try:
            # Where nobody listens on a port that the system gives out itself, a socket may meet
            # itself.
            if not code and sock.getsockname() == sock.getpeername():
                code = errno.ECONNREFUSED
        except OSError as cause:
            code = cause.errno or errno.ENOTCONN
        if code:
            self._not_made(code)
            return
        self._watcher.unregister(sock.fileno())  # a carrier that cannot be made closes it
        try:
            carrier = self._carry(sock, self.host)
        except (OSError, ConfigError) as cause:
            self._sock = None
            sock.close()
            self._hang_up(str(cause), failed=True)
            return
        self._sock, self._carrier = carrier.sock, carrier
        self._mask = select.EPOLLIN
        self._watcher.register(carrier.sock.fileno(), self._mask, self)
        self._agree()

    def _agree(self) -> None:
        """Goes on with the handshake, and asks what the node serves when that is over."""
        carrier = self._carrier
        assert carrier is not None
        try:
            agreed = carrier.do_handshake()
        except OSError as cause:
            self._hang_up(str(cause), failed=True)
            return
        if not agreed:
            self._watch(carrier.wants)
            return
        self._opens, self._until_ms = False, NEVER
        now_ms = self._now_ms()
        if carrier.lifetime_ms:
            self._renew_ms = now_ms + int(carrier.lifetime_ms * _RENEWED)
        self._talk.opened(now_ms + _VERSIONS_MS)
        self._watch(select.EPOLLIN)
        self._send()

    def _not_made(self, code: int) -> None:
        """The kernel says why there is no connection: only who refuses it is there to say so."""
        why = errno.errorcode.get(code, str(code))
        self._hang_up(why, failed=True, refused=code in _REFUSED)

    def _hang_up(self, why: str, *, failed: bool, refused: bool = False) -> None:
        """failed: the next connection is made after a pause. refused: by the other host."""
        self._drop()
        if failed:
            pause = min(_FIRST_PAUSE_MS << min(self._pauses, 10), _LONGEST_PAUSE_MS)
            self._pauses += 1
            self._not_before_ms = self._now_ms() + pause
        self._talk.closed(f"node {self.node} at {self.host}:{self.port}: {why}", refused=refused)

    def _drop(self) -> None:
        """Closes the socket, if there is one."""
        sock, self._sock = self._sock, None
        carrier, self._carrier = self._carrier, None
        if sock is not None:
            self._watcher.unregister(sock.fileno())
            (sock if carrier is None else carrier).close()
        self._unsent = []
        self._opens, self._mask = False, 0
        self._until_ms = self._renew_ms = NEVER

    def _watch(self, mask: int) -> None:
        assert self._sock is not None
        if mask != self._mask:
            self._mask = mask
            self._watcher.modify(self._sock.fileno(), mask)

    # Bytes ----------------------------------------------------------------------------------------

    def _send(self) -> None:
        sock, carrier = self._sock, self._carrier
        assert sock is not None
        assert carrier is not None
        if not self._unsent:
            pieces = self._talk.outgoing()
            if self._sock is not sock:  # somebody whose request is not served closed it
                return
            self._unsent = [memoryview(piece) for piece in pieces]
        while self._unsent:
            try:
                count = carrier.send_pieces(self._unsent)
            except OSError as cause:
                self._lost(str(cause))
                return
            if count == BLOCKED:
                break
            while self._unsent and count >= len(self._unsent[0]):
                count -= len(self._unsent.pop(0))
            if count:
                self._unsent[0] = self._unsent[0][count:]
        self._watch(select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))

    def _receive(self) -> None:
        carrier, talk = self._carrier, self._talk
        assert carrier is not None
        again = True
        while again and self._carrier is carrier:
            try:
                count = carrier.receive_into(talk.room())
                if count == BLOCKED:
                    return
                if count:
                    talk.received(count)
            except (OSError, MalformedRequest) as cause:
                if self._carrier is carrier:
                    self._lost(str(cause))
                return
            if not count:
                self._lost("it was closed")
            elif talk.heard:
                self._pauses = 0
            again = carrier.buffered

    def _lost(self, why: str) -> None:
        """Waits before a reconnect if no request was answered. ApiVersions does not count: a node
        that closes right behind it would be connected to without a pause."""
        self._hang_up(why, failed=not self._talk.heard)


class _Lookup(Thread):
    """found: the addresses of a name."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(daemon=True)
        self._where = host, port
        self.found: list[Address] = []

    def run(self) -> None:
        with suppress(OSError, UnicodeError):
            self.found = _resolve(*self._where, 0)


def _resolve(host: str, port: int, flags: int) -> list[Address]:
    """IPv4 first, as we listen where a name has both. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return sorted(
        ((family, where) for family, _, _, _, where in found),
        key=lambda one: one[0] != socket.AF_INET,
    )
