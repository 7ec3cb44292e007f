"""The answers of one connection on their way out, in the order of the requests.

Bytes that stand together go in one call. Ranges of files go by sendfile where the transport can,
and else through a small buffer; either way not before the page cache has them. One client gets so
much in a turn, then the others have theirs. Called by the connection.
"""

import errno
import os
from collections import deque
from typing import Final

from appliance.handlers.exchange import Exchange, FileRange, Piece
from appliance.netproc.files.page_cache import PageCache, ReadAhead
from appliance.netproc.transport.transport import BLOCKED, Transport
from appliance.ring.client_table import ClientRows
from appliance.ring.counters import AnswerCounts

SENT: Final = 0
"""Everything that is answered has been sent."""
FULL: Final = 1
"""The transport takes no more now."""
COLD: Final = 2
"""What comes next is still on its way from the disk."""
SHARE: Final = 3
"""It has had its part of this turn."""
LENT: Final = 4
"""A thread sends what is on its way out (`long_answers.py`)."""

LONG_BYTES: Final = 512 << 10
"""Of a file, still to be sent: worth the two wake-ups that handing it to a thread costs."""

TURN_BYTES: Final = 2 << 20
"""Sent to one client before the others have their turn: under a ms."""
MOST_BUFFERS: Final = 64  # of one call
_RANGE_BYTES: Final = 128  # what a file range that waits costs us
_READ_BYTES: Final = 64 << 10  # of a file, for a transport that cannot send from it
_MISSING: Final = -2
_MS_NS: Final = 1_000_000
_PRODUCE_KEY: Final = 0
_FETCH_KEY: Final = 1


class SendQueue:
    """queue: requests in order, answered or not. out: pieces that are being sent. out_bytes: what
    they hold of our memory. moved_ns: when bytes last went out. lent: the thread alone changes
    these three.

    Counted since it connected: requests that were answered, bytes_in and bytes_sent, frames and
    all; of them produced: of Produce requests, fetched: of answers to fetches. last_api: the key of
    the last one, -1 before it."""

    __slots__ = (
        "_ahead",
        "_begun",
        "_begun_answers",
        "_cache",
        "_counts",
        "_there",
        "_told",
        "_turn_bytes",
        "bytes_in",
        "bytes_sent",
        "fetched",
        "last_api",
        "lent",
        "moved_ns",
        "out",
        "out_bytes",
        "produced",
        "queue",
        "requests",
    )

    def __init__(
        self, cache: PageCache, counts: AnswerCounts, turn_bytes: int = TURN_BYTES
    ) -> None:
        self._cache = cache
        self._counts = counts
        self._turn_bytes = turn_bytes
        self.queue: deque[Exchange] = deque()
        self.out: deque[Piece] = deque()
        self.out_bytes = 0
        self.moved_ns = 0
        self.lent = False
        self.requests = self.bytes_in = self.bytes_sent = self.produced = self.fetched = 0
        self.last_api = -1
        self._told = 0  # requests
        self._begun_answers: list[tuple[int, int]] = []  # row of its stages, since when (ns)
        self._ahead: ReadAhead | None = None  # made by the first read that the page cache has not
        self._begun: Piece | None = None  # a range of a file of which the bytes up to `_there`
        self._there = 0  # were seen in memory

    def send_answers(self, transport: Transport, now_ns: int) -> int:
        """Send what is answered as far as it goes: SENT, FULL, COLD or SHARE. What is answered
        while the rest is lent waits for its end. Raises OSError: no more can be sent."""
        queue, out = self.queue, self.out
        while queue and not self.lent:
            x = queue[0]
            answer = x.answer
            if answer is None:
                break
            queue.popleft()
            key = x.handler.key
            took_ns, row = now_ns - x.started_ns, x.stage_row
            self._counts.answered(
                key, x.received, x.sent, took_ns, row, now_ns, x.taken_ns, x.waits_ns
            )
            self._begun_answers.append((row, now_ns))
            self.requests += 1
            self.bytes_in += x.received
            self.bytes_sent += x.sent
            self.last_api = key
            self.produced += x.received if key == _PRODUCE_KEY else 0
            self.fetched += x.sent if key == _FETCH_KEY else 0
            for piece in answer:
                out.append(piece)
                self.out_bytes += len(piece) if isinstance(piece, bytes) else _RANGE_BYTES
        room = self._turn_bytes
        while out:
            head = out[0]
            if isinstance(head, FileRange):
                sent = self._send_range(transport, head, now_ns)
            else:
                sent = self._send_bytes(transport)
            if sent < 0:
                return COLD if sent == _MISSING else FULL
            if sent:
                self.moved_ns = now_ns
                room -= sent
                if room <= 0 and out:
                    return SHARE
        self.out_bytes = 0
        begun = self._begun_answers
        if begun and begun[0][1] != now_ns:
            self._count_late(now_ns)
        begun.clear()
        return SENT

    def _count_late(self, now_ns: int) -> None:
        """All that was begun is sent now, the last of it in a later turn than the first."""
        for row, since_ns in self._begun_answers:
            if since_ns != now_ns:
                self._counts.sent_late(row, now_ns - since_ns)

    def is_long(self) -> bool:
        """True if a thread is to send what is on its way out."""
        head = self.out[0]
        return isinstance(head, FileRange) and head.length >= LONG_BYTES

    def publish_counts(self, clients: ClientRows, row: int, now_ns: int) -> None:
        """Write what was counted where others see it."""
        if self.requests != self._told:
            self._told = self.requests
            clients.count(
                row, self.requests, self.bytes_in, self.bytes_sent, self.produced, self.fetched,
                self.last_api, now_ns // _MS_NS,
            )  # fmt: skip

    def idle(self) -> bool:
        """True if every request is answered and every answer sent."""
        return not self.queue and not self.out and not self.lent

    def drop(self) -> None:
        """Forget all answers: the client is gone. What is lent is forgotten when it comes back."""
        self.queue.clear()
        if not self.lent:
            self.out.clear()

    def _send_bytes(self, transport: Transport) -> int:
        """One call for the bytes at the head."""
        out = self.out
        buffers: list[bytes] = []
        more = False
        for piece in out:
            if isinstance(piece, FileRange):
                more = True
                break
            buffers.append(piece)
            if len(buffers) == MOST_BUFFERS:
                break
        sent = transport.send_pieces(buffers, more)
        left = sent
        while left > 0:
            first = out[0]
            assert not isinstance(first, FileRange)
            if left < len(first):
                out[0] = first[left:]
                break
            left -= len(first)
            out.popleft()
        return sent

    def _send_range(self, transport: Transport, piece: FileRange, now_ns: int) -> int:
        file, position, length = piece
        if piece is self._begun:
            share = self._there - position
        else:
            share = min(length, self._turn_bytes)
            end = position + share
            if self._cache.holds(file.fd, end - 1):
                if self._ahead is not None:
                    self._ahead.passed(file.fd, end)
            elif not self._fetch(file.fd, position, end, now_ns):
                return _MISSING
        read = b""
        if transport.sends_files:
            taken = transport.send_file(file.fd, position, share)
            if taken == BLOCKED:
                return BLOCKED
        else:
            read = os.pread(file.fd, min(share, _READ_BYTES), position)
            taken = len(read)
        if taken == 0:
            raise OSError(errno.EIO, f"the segment ends {length} bytes before what was promised")
        self._begun = None
        if taken == length:
            self.out.popleft()
        else:
            rest = FileRange(file, position + taken, length - taken)
            self.out[0] = rest
            if taken < share:
                self._begun, self._there = rest, position + share
        if not read:
            return taken
        self.out.appendleft(read)
        self.out_bytes += taken
        return 0

    def _fetch(self, fd: int, position: int, end: int, now_ns: int) -> bool:
        """These bytes are not in memory: let them come. Whether they are sent nevertheless."""
        if self._ahead is None:
            self._ahead = ReadAhead(self._cache)
        return self._ahead.missed(fd, position, end, now_ns)
