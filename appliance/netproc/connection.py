"""One client's connection: bytes into the arena, frames out of them, answers back in the order of
the requests.

Reading stops (and TCP holds the client back) while too many answers wait or the arena has no room;
it goes on when there is room again. Whoever makes no progress for too long is hung up on by the
server's sweep.
"""

import contextlib
import errno
import os
import select
import socket
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Final

from appliance.handlers.exchange import Exchange, FileRange, Piece
from appliance.netproc import sniff
from appliance.netproc.cursors import Cursors
from appliance.netproc.habits import Habits
from appliance.netproc.page_cache import ReadAhead
from appliance.netproc.slabs import Slab, allocate, preferred_size

if TYPE_CHECKING:
    from appliance.netproc.server import Server

_LENGTH = Struct(">i").unpack_from
_SMALLEST_FRAME: Final = 8  # key, version and correlation id
_MOST_IN_FLIGHT: Final = 128
_MOST_BUFFERS: Final = 64  # of one sendmsg
_GROWTH: Final = 2  # a frame may reserve so many times what its sender has sent so far
_FIRST_ROOM: Final = 256 * 1024
_TURN_BYTES: Final = 2 << 20  # sent to one client before the others have their turn: under a ms
_QUIET_NS: Final = 1_000_000_000

_RANGE_BYTES: Final = 128  # what a file range that waits costs us
_MISSING: Final = -1

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT


def _held(piece: Piece) -> int:
    return _RANGE_BYTES if isinstance(piece, FileRange) else len(piece)


class Connection:
    """State of one socket. `start` … `end` of the slab have arrived and are not consumed yet."""

    __slots__ = (
        "address",
        "ahead",
        "begun",
        "closed",
        "cursors",
        "dirty",
        "end",
        "fd",
        "habits",
        "largest_frame",
        "listener",
        "mask",
        "moved_ns",
        "muted_until_ns",
        "one_by_one",
        "out",
        "out_bytes",
        "queue",
        "server",
        "slab",
        "sock",
        "spent_ns",
        "start",
        "there",
    )

    def __init__(self, server: "Server", sock: socket.socket, address: str, listener: int) -> None:
        self.server = server
        self.sock = sock
        self.fd = sock.fileno()
        self.address = address
        self.listener = listener
        self.habits = Habits(address)
        self.slab: Slab | None = None
        self.start = self.end = 0
        self.largest_frame = 0
        self.queue: deque[Exchange] = deque()  # requests in order, answered or not
        self.out: deque[Piece] = deque()  # what is being sent
        self.out_bytes = 0
        self.mask = READ
        self.moved_ns = server.now_ns  # when bytes last moved either way
        self.muted_until_ns = 0  # nothing is read before: the client is over its quota
        self.one_by_one = False  # near its quota: no request before the last one is answered
        self.closed = False
        self.cursors: Cursors | None = None  # made by its first fetch
        self.ahead: ReadAhead | None = None  # made by its first read that the page cache has not
        self.begun: Piece | None = None  # a range of a file of which the bytes up to `there`
        self.there = 0  # were seen in memory
        self.dirty = False
        self.spent_ns = 0  # time of ours that is not billed yet (request_percentage)

    # In -------------------------------------------------------------------------------------------

    def ready(self, mask: int) -> None:
        """The loop says that the socket can be read or written."""
        server = self.server
        if mask & WRITE:
            server.mark_dirty(self)
        if mask & ~WRITE and not self.closed:
            if server.watch.running:
                server.watch.begin(self)
            self._receive()
            server.watch.end()

    def _receive(self) -> None:
        slab = self.slab
        if slab is None:
            wanted = preferred_size(self.largest_frame, len(self.server.memory))
            slab = allocate(self.server.arena, wanted, 1)
            if slab is None:
                self._stop_reading()
                return
            self.slab = slab
            self.start = self.end = slab.position
        elif self.end == slab.limit and not self._make_room():
            return
        try:
            count = self.sock.recv_into(self.server.memory[self.end : self.slab.limit])  # type: ignore[union-attr]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if count == 0:
            self.close()
            return
        self.end += count
        self.moved_ns = self.server.now_ns
        self.consume()

    def consume(self) -> None:
        """Hand every whole frame that has arrived to the server."""
        server = self.server
        memory = server.memory
        start, end = self.start, self.end
        while end - start >= 4:
            length = _LENGTH(memory, start)[0]
            if not _SMALLEST_FRAME <= length <= server.frame_limit:
                self.start = start
                self._refuse_frame(length)
                return
            if end - start < 4 + length:
                break
            if self._too_much_waits():
                self.start = start
                self._stop_reading()
                return
            self.largest_frame = max(self.largest_frame, length)
            start += 4 + length
            self.start = start
            server.request(self, start - length, start)
            if self.closed:
                return
        slab = self.slab
        assert slab is not None
        if start == end and slab.users == 1:
            start = end = slab.position
            self.end = end
        self.start = start
        frame_end = end
        if end - start >= 4:
            frame_end = start + 4 + _LENGTH(memory, start)[0]
        if end == slab.limit or frame_end > slab.limit:
            self._make_room()

    def _make_room(self) -> bool:
        """Take a slab in which the frame that is arriving fits (or more of it, while its sender has
        shown little)."""
        server = self.server
        have = self.end - self.start
        needed = have + 1
        if have >= 4:
            frame = 4 + _LENGTH(server.memory, self.start)[0]
            trusted = max(_GROWTH * have, _GROWTH * self.largest_frame, _FIRST_ROOM)
            needed = max(needed, min(frame, trusted))
        wanted = preferred_size(self.largest_frame, len(server.memory))
        slab = allocate(server.arena, wanted, needed)
        if slab is None:
            self._stop_reading()
            return False
        old = self.slab
        assert old is not None
        target = slab.position
        server.memory[target : target + have] = server.memory[self.start : self.end]
        old.let_go()
        self.slab = slab
        self.start, self.end = target, target + have
        return True

    def _too_much_waits(self) -> bool:
        return (
            len(self.queue) >= _MOST_IN_FLIGHT
            or self.out_bytes > self.server.queued_limit
            or self.server.choked
            or self.muted_until_ns > self.server.now_ns
            or (self.one_by_one and bool(self.queue))
        )

    def mute(self, until_ns: int) -> None:
        """Take no more requests before `until_ns`; the server calls `resume` then."""
        self.muted_until_ns = max(until_ns, self.muted_until_ns)
        self._watch(self.mask & ~READ)

    def _stop_reading(self) -> None:
        """Nothing more is taken until there is room again; the server tries every turn."""
        if self.muted_until_ns <= self.server.now_ns:
            self.server.starving[self] = None
        self._watch(self.mask & ~READ)

    def resume(self) -> None:
        """There may be room again: go on with what is here, then read."""
        if self.closed or self.muted_until_ns > self.server.now_ns:
            return
        if self._too_much_waits():
            self.server.starving[self] = None
            return
        self._watch(self.mask | READ)
        if self.slab is not None and self.end - self.start >= 4:
            if self.server.watch.running:
                self.server.watch.begin(self)
            self.consume()
            self.server.watch.end()

    def rest(self) -> None:
        """Give the slab back when it holds nothing; called for connections that have been quiet."""
        slab = self.slab
        if slab is not None and self.start == self.end and slab.users == 1:
            slab.let_go()
            self.slab = None
            self.start = self.end = 0

    def _refuse_frame(self, length: int) -> None:
        server = self.server
        head = bytes(server.memory[self.start : self.start + 4])
        who = sniff.what(head)
        if who is None:
            limit = server.frame_limit
            who = f"a frame of {length} bytes; 8 to {limit} are taken (socket.request.max.bytes)"
        if sniff.is_http(head):
            with contextlib.suppress(OSError):
                self.sock.send(sniff.HTTP_ANSWER)
        server.complain(self, "refused-bytes", who)
        self.close()

    # Out ------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what is answered, in order, as far as the socket takes it."""
        if self.closed:
            return
        queue, out = self.queue, self.out
        while queue and queue[0].answer is not None:
            answer = queue.popleft().answer
            assert answer is not None
            out.extend(answer)
            self.out_bytes += sum(map(_held, answer))
        room = _TURN_BYTES
        try:
            while out:
                sent = self._send_some(out)
                if sent == _MISSING:
                    self._watch(self.mask & ~WRITE)
                    self.server.cold[self] = None
                    return
                if not sent:
                    self._watch(self.mask | WRITE)
                    return
                room -= sent
                if room <= 0 and out:
                    self.server.mark_dirty(self)
                    return
        except OSError as problem:
            if problem.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ETIMEDOUT):
                self.server.complain(self, "send-failed", str(problem))
            self.close()
            return
        self.out_bytes = 0
        if self.mask & WRITE:
            self._watch(self.mask & ~WRITE)

    def _send_some(self, out: deque[Piece]) -> int:
        """One system call; the bytes that the socket took, 0 when it is full, _MISSING when what
        comes next is still on its way from the disk."""
        head = out[0]
        if isinstance(head, FileRange):
            return self._send_file(out, head)
        try:
            if len(out) == 1:
                sent = self.sock.send(head)
            else:
                buffers: list[bytes] = []
                more = 0
                for piece in out:
                    if isinstance(piece, FileRange):
                        more = socket.MSG_MORE
                        break
                    buffers.append(piece)
                    if len(buffers) == _MOST_BUFFERS:
                        break
                sent = self.sock.sendmsg(buffers, (), more)
        except BlockingIOError:
            return 0
        self.moved_ns = self.server.now_ns
        left = sent
        while left:
            piece = out[0]
            assert not isinstance(piece, FileRange)
            if left < len(piece):
                out[0] = piece[left:]
                break
            left -= len(piece)
            out.popleft()
        return sent

    def _send_file(self, out: deque[Piece], piece: FileRange) -> int:
        file, position, length = piece
        if piece is self.begun:
            share = self.there - position
        else:
            share = min(length, _TURN_BYTES)
            if not self._is_there(file.fd, position, position + share):
                return _MISSING
        try:
            sent = os.sendfile(self.fd, file.fd, position, share)
        except BlockingIOError:
            return 0
        if sent == 0:
            raise OSError(errno.EIO, f"the segment ends {length} bytes before what was promised")
        self.moved_ns = self.server.now_ns
        if sent == length:
            out.popleft()
            self.begun = None
            return sent
        out[0] = FileRange(file, position + sent, length - sent)
        if sent < share:
            self.begun, self.there = out[0], position + share
        return sent

    def _is_there(self, fd: int, position: int, end: int) -> bool:
        """May these bytes of a file be sent, because they are in memory or do not get there?"""
        server = self.server
        if server.page_cache.holds(fd, end - 1):
            if self.ahead is not None:
                self.ahead.passed(fd, end)
            return True
        if self.ahead is None:
            self.ahead = ReadAhead(server.page_cache)
        return self.ahead.missed(fd, position, end, server.now_ns)

    # Life -----------------------------------------------------------------------------------------

    def _watch(self, mask: int) -> None:
        if mask != self.mask:
            self.mask = mask
            self.server.loop.modify(self.fd, mask)

    def sweep(self, now_ns: int, idle_ns: int, no_progress_ns: int) -> None:
        """Once a second: hang up on who is idle or makes no progress, free what lies unused."""
        if self.muted_until_ns > now_ns:
            self.moved_ns = now_ns  # it is we who do not read
        still = now_ns - self.moved_ns
        stuck = bool(self.out) or self.start != self.end
        if stuck and not self.queue and still > no_progress_ns:
            self.server.complain(self, "no-progress", f"nothing moved for {still // 10**6} ms")
            self.close()
        elif still > idle_ns and not self.busy():
            self.close()
        elif still > _QUIET_NS:
            self.rest()

    def busy(self) -> bool:
        """Something is asked, unsent or half received."""
        return bool(self.queue or self.out or self.start != self.end)

    def close(self) -> None:
        """Hang up; what is pending is dropped when its completions come."""
        if self.closed:
            return
        self.closed = True
        self.server.forget(self)
        self.sock.close()
        self.out.clear()
        self.queue.clear()
        if self.slab is not None:
            self.slab.let_go()
            self.slab = None
