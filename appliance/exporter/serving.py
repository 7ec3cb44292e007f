"""HTTP for scrapers and probes: one request a connection, GET and HEAD, nothing else; in the clear
or over TLS, with a password or without one (`door.py`).

One thread and one epoll. Whoever connects has some seconds for the request and as many for the
answer, and only so many are let in at a time, so a stranger costs at most a few descriptors and
pages. When all places are taken the oldest connection without a request makes way, else the oldest
one that is half a second old, so that neither idle ones nor those that never read their answer keep
a probe waiting. On a loopback address only requests to this host's names are answered:
a page in a browser could have a name of its own lead there. The caller's `answer` must not wait:
what takes longer is asked for again in later turns. An exception in it is answered with 500.
"""

import re
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, NamedTuple

from appliance.config.bounds import METRICS_CONNECTIONS, setting_of
from appliance.exporter.door import MetricsDoor

MOST: Final = 64
"""Connections at a time by default; the others wait in the backlog while all of these are
answered."""
_ACCEPTED: Final = 64
"""Connections that are taken in one turn."""
_PATIENCE_NS: Final = 10_000_000_000
_OWN_NS: Final = 500_000_000
"""For so long a whole request keeps its place when all are taken."""
_AGAIN_S: Final = 0.02
"""So often somebody is asked for an answer that takes longer."""
_HEAD: Final = 8192
_CHUNK: Final = 1 << 18
_END: Final = b"\r\n\r\n"
_CHALLENGE: Final = 'WWW-Authenticate: Basic realm="penstock", charset="UTF-8"\r\n'
_HOST: Final = re.compile(rb"\r\nHost:([^\r\n]*)\r\n", re.IGNORECASE)
"""Each byte of a line fits one part alone, so a line that does not fit is seen in linear time."""


class HttpAnswer(NamedTuple):
    """status: of HTTP. content_type: of the text."""

    status: int
    content_type: str
    text: str


class _Caller:
    """A connection: first `told` grows to a request, then `left` shrinks to nothing. waits: for an
    answer that is not there yet. asked_ns: when the last part of the request came. refused_ns: when
    a wrong password is answered, 0: none was given."""

    __slots__ = ("address", "asked_ns", "left", "refused_ns", "sock", "told", "until_ns", "waits")

    def __init__(self, sock: socket.socket, address: str, now_ns: int) -> None:
        self.sock = sock
        self.address = address
        self.refused_ns = 0
        self.asked_ns = now_ns
        self.until_ns = now_ns + _PATIENCE_NS
        self.told = b""
        self.left = memoryview(b"")
        self.waits = False


class HttpServer:
    """listener: bound, listening and non-blocking. answer: by the target of a request, such as
    /metrics?x=y, and when that came (monotonic); None: not yet. on_bug: is told where an exception
    was met, and which. door: who may ask. most: connections at a time. reach: told when there are
    more."""

    def __init__(
        self,
        listener: socket.socket,
        answer: Callable[[str, int], HttpAnswer | None],
        on_bug: Callable[[str, Exception], object],
        door: MetricsDoor,
        most: int = MOST,
        reach: Callable[[str, str], object] = lambda _bound, _why: None,
    ) -> None:
        self._most = most
        self._reach = reach
        self._listener = listener
        self._door = door
        self._answer = answer
        self._on_bug = on_bug
        self._callers: dict[int, _Caller] = {}
        self._epoll = select.epoll(flags=select.EPOLL_CLOEXEC)
        self._epoll.register(listener.fileno(), select.EPOLLIN)
        self._full = False
        self._now_ns = 0
        self._is_local = ip_address(listener.getsockname()[0]).is_loopback

    def serve_once(self, wait_s: float, now_ns: Callable[[], int]) -> None:
        """Wait so long at most for something to do, and do it. now_ns: monotonic."""
        if any(one.waits for one in self._callers.values()):
            wait_s = min(wait_s, _AGAIN_S)
        found = self._epoll.poll(wait_s)
        self._now_ns = now_ns()
        for fd, _ in found:
            if fd == self._listener.fileno():
                self._accept_all(now_ns())
            elif (caller := self._callers.get(fd)) is None:
                continue  # it made way for another one in this turn
            elif caller.waits:
                self._close(caller)  # it has gone
            else:
                if not caller.left:
                    caller.asked_ns = now_ns()
                self._go_on(caller)
        for caller in [one for one in self._callers.values() if one.waits]:
            self._go_on(caller)
        now = now_ns()
        for caller in [one for one in self._callers.values() if now >= one.until_ns]:
            self._close(caller)
        if self._full and (len(self._callers) < self._most or self._leaver(now) is not None):
            with suppress(OSError):  # the next turn tries again
                self._epoll.register(self._listener.fileno(), select.EPOLLIN)
                self._full = False

    def close(self) -> None:
        """Hang up on everybody; the listener stays open."""
        for caller in list(self._callers.values()):
            self._close(caller)
        self._epoll.close()

    def _accept_all(self, now_ns: int) -> None:
        for _ in range(_ACCEPTED):
            if len(self._callers) >= self._most and not self._make_room(now_ns):
                self._full = True
                self._epoll.unregister(self._listener.fileno())
                return
            try:
                sock, peer = self._listener.accept()
            except OSError:  # nobody is left, or has gone meanwhile
                return
            sock.setblocking(False)
            try:
                sock = self._door.wrapped(sock, now_ns)
            except OSError:  # it has gone already
                sock.close()
                continue
            caller = self._callers[sock.fileno()] = _Caller(sock, peer[0], now_ns)
            self._epoll.register(sock.fileno(), select.EPOLLIN)
            self._go_on(caller)  # mostly its request is there already

    def _make_room(self, now_ns: int) -> bool:
        """Hang up on who makes way for a newcomer. Return whether there is somebody."""
        why = f"{self._most} connections: {setting_of(METRICS_CONNECTIONS)}"
        self._reach(METRICS_CONNECTIONS, why)
        leaver = self._leaver(now_ns)
        if leaver is not None:
            self._close(leaver)
        return leaver is not None

    def _leaver(self, now_ns: int) -> _Caller | None:
        """The oldest connection without a whole request, else the oldest one that has had its
        time; None: nobody makes way."""
        callers = self._callers.values()
        idle = next((one for one in callers if not one.waits and not one.left), None)
        if idle is not None:
            return idle
        oldest = next(iter(callers), None)
        if oldest is None or now_ns < oldest.until_ns - _PATIENCE_NS + _OWN_NS:
            return None
        return oldest

    def _go_on(self, caller: _Caller) -> None:
        try:
            if caller.waits:
                over = self._answered(caller)
            else:
                over = self._send(caller) if caller.left else self._read(caller)
        except BlockingIOError:
            return
        except OSError as problem:
            over = True
            if not caller.told:
                self._door.tell_handshake(problem, caller.address)
        if over:
            self._close(caller)

    def _read(self, caller: _Caller) -> bool:
        while part := caller.sock.recv(_HEAD):  # of TLS, more may be there without a sign of it
            caller.told += part
            if _END in caller.told:
                self._door.note_caller(caller.sock, caller.told, caller.address, self._now_ns)
                return self._answered(caller)
            if len(caller.told) > _HEAD:
                break
        return True

    def _answered(self, caller: _Caller) -> bool:
        """Send the answer, or keep the caller until there is one. Whether it is over."""
        reply = self._reply(caller)
        if reply is None:
            if not caller.waits:  # it is told of nothing but that the other side has gone
                self._epoll.modify(caller.sock.fileno(), 0)
            caller.waits = True
            return False
        caller.waits = False
        caller.left = memoryview(reply)
        self._epoll.modify(caller.sock.fileno(), select.EPOLLOUT)
        return self._send(caller)

    def _send(self, caller: _Caller) -> bool:
        while caller.left:
            sent = caller.sock.send(caller.left[:_CHUNK])
            caller.left = caller.left[sent:]
        with suppress(OSError):
            caller.sock.shutdown(socket.SHUT_WR)
        return True

    def _reply(self, caller: _Caller) -> bytes | None:
        words = caller.told.partition(b"\r\n")[0].decode("latin-1").split(" ")
        method = words[0]
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            answer = HttpAnswer(
                HTTPStatus.BAD_REQUEST, "text/plain", "this is no request of HTTP\n"
            )
        elif self._is_local and not _is_this_host(caller.told):
            told = "the Host of a request is localhost, an IP address or this host's name\n"
            answer = HttpAnswer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", told)
        elif not self._door.lets_in(caller.told):
            if self._held_back(caller):
                return None
            answer = HttpAnswer(HTTPStatus.UNAUTHORIZED, "text/plain", "a password is needed\n")
        elif method not in ("GET", "HEAD"):
            answer = HttpAnswer(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", "GET or HEAD\n")
        else:
            found = self._found(words[1], caller.asked_ns)
            if found is None:
                return None
            answer = found
        body = answer.text.encode("utf-8", "backslashreplace")
        status = HTTPStatus(answer.status)
        more = _CHALLENGE if status is HTTPStatus.UNAUTHORIZED else ""
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(body)}\r\n{more}Connection: close\r\n\r\n"
        ).encode()
        return head if method == "HEAD" else head + body

    def _held_back(self, caller: _Caller) -> bool:
        """True while a wrong password is not answered yet, so that guesses take their time."""
        if not caller.refused_ns and self._door.refuses(caller.told, caller.address):
            caller.refused_ns = self._now_ns + self._door.delay_ns
        return self._now_ns < caller.refused_ns

    def _found(self, target: str, asked_ns: int) -> HttpAnswer | None:
        try:
            return self._answer(target, asked_ns)
        except Exception as bug:
            self._on_bug("an answer", bug)
            text = f"{type(bug).__name__}: see the event bug\n"
            return HttpAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", text)

    def _close(self, caller: _Caller) -> None:
        del self._callers[caller.sock.fileno()]
        caller.sock.close()  # the epoll forgets it with its last descriptor


def _is_this_host(request: bytes) -> bool:
    """Return whether a request names this host, by an address or its own name, or no host."""
    found = _HOST.search(request)
    if found is None:
        return True
    name = found[1].strip(b" \t").decode("latin-1").lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name in ("localhost", socket.gethostname().lower()):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
