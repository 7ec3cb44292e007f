"""Messages that cost more than their turn has room for: they are handled in the next turns.

A few bytes of a compressed batch open to megabytes, and a coordinator decides on thousands of rows
of one request. The bytes that compressed batches open to, and those of coordinators' requests, are
counted; what comes when a turn has had its share is postponed. Requests take turns, so that one
with hundreds of batches doesn't keep the others waiting. Messages for one partition stay in their
order, whoever sends them. A batch that opens to more than a few megabytes is walked over in several
turns. Searches by time are postponed, too: each may walk over a whole batch. A short batch that is
not compressed is never postponed for its own sake. What is asked of a partition that is new and not
open yet opens it; a turn opens a few, since each makes a folder and files. Apache Kafka has no
bound for any of these: it opens each batch in one of many threads.
"""

from collections import Counter, deque
from typing import Final

from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.partitions.read_rules import MAX_TIMESTAMP
from appliance.ring.messages import (
    APPEND,
    COORDINATE,
    DELETE_RECORDS,
    DESCRIBE_PRODUCERS,
    EPOCH_END,
    LIST_OFFSET,
    MOVE,
    OLD_SET,
    READ,
    Message,
)
from appliance.ring.slots import read_list_offset, unpack_append
from appliance.wire.batch import Walk
from appliance.wire.batch_header import ATTRIBUTES_AT, CODEC_MASK
from appliance.wire.compression import OPENED

SHARE: Final = 8 << 20
"""Bytes that the batches of one request open to before its next ones are postponed."""
TURN: Final = 24 << 20
"""Bytes that all batches of a turn open to before the next ones are."""
PLAIN: Final = 1 << 15
"""Bytes of a batch up to which it costs little when it is not compressed."""
PAYLOAD: Final = 16 << 10
"""Bytes of requests for coordinators that are decided in a turn before the next ones are
postponed: some hundred rows."""

OPENINGS: Final = 4
"""New partitions that a turn opens because somebody asks for them."""

_COSTLY: Final = frozenset({APPEND, COORDINATE, LIST_OFFSET})
_OF_PARTITION: Final = _COSTLY | {READ, DELETE_RECORDS, DESCRIBE_PRODUCERS, EPOCH_END, MOVE}
"""What a network process asks of one partition."""

_Queue = deque[tuple[NetprocPeer, Message]]


class PostponedMessages:
    """held: by who asks and the number of its request. began, until: bytes opened before this turn,
    and up to which nobody asks for more. payload: bytes of requests for coordinators that this turn
    has left; openings: new partitions that it may still open. walks: over the records of batches
    that are held, by who asks and the token."""

    __slots__ = (
        "_counts",
        "_exchange",
        "_is_resuming",
        "_queues",
        "began",
        "held",
        "openings",
        "payload",
        "until",
        "walks",
    )

    def __init__(self) -> None:
        self.held: dict[tuple[int, int], _Queue] = {}
        self.began = OPENED[0]
        self.until = self.began + SHARE
        self.payload = PAYLOAD
        self.openings = OPENINGS
        self.walks: dict[tuple[int, int], Walk] = {}
        self._exchange = (-1, -1)
        self._queues: dict[int, _Queue] = {}  # by the partition that has something in it
        self._counts: Counter[int] = Counter()
        self._is_resuming = False

    def postpone(self, asker: NetprocPeer, message: Message, *, is_open: bool) -> bool:
        """Return True if this message waits for one of the next turns now. is_open: its partition
        is."""
        if self._is_resuming:
            return False
        opens = not is_open and (self.openings <= 0 or bool(self.held))
        if message.op not in (_OF_PARTITION if opens else _COSTLY):
            return False
        exchange = asker.index, message.token >> 32
        queue = self._queues.get(message.handle)
        if queue is None:
            if not opens and not self._exceeds(asker, message, exchange):
                return False
            queue = self.held.setdefault(exchange, deque())
        queue.append((asker, message))
        self._queues[message.handle] = queue
        self._counts[message.handle] += 1
        return True

    def cancel_reads(self, asker: NetprocPeer, token: int) -> None:
        """Forget the postponed READs of the request token >> 32 (CANCEL)."""
        for exchange, queue in list(self.held.items()):
            kept: _Queue = deque()
            for row in queue:
                one = row[1]
                if row[0] is asker and one.op == READ and one.token >> 32 == token >> 32:
                    self._uncount(one.handle)
                else:
                    kept.append(row)
            if len(kept) < len(queue):
                queue.clear()
                queue.extend(kept)
            if not queue:
                del self.held[exchange]

    def _exceeds(self, asker: NetprocPeer, message: Message, exchange: tuple[int, int]) -> bool:
        if message.op == COORDINATE:
            return self.payload < 0
        if OPENED[0] <= self.until:
            return False
        if message.op == LIST_OFFSET:  # latest and earliest are at hand
            timestamp = read_list_offset(message).timestamp
            return timestamp >= 0 or timestamp == MAX_TIMESTAMP
        _, _, _, position, _, length, _ = unpack_append(message)
        is_costly = message.flags & OLD_SET
        is_costly = is_costly or asker.arena[position + ATTRIBUTES_AT + 1] & CODEC_MASK
        if not is_costly and length <= PLAIN:
            return False
        if exchange != self._exchange and OPENED[0] - self.began < TURN:
            self._exchange = exchange
            self.until = OPENED[0] + SHARE
            return False
        return True

    def put_back(self, asker: NetprocPeer, message: Message, walk: Walk) -> None:
        """Hold an append before all others of its partition until its walk has come further."""
        handle, exchange = message.handle, (asker.index, message.token >> 32)
        queue = self._queues.get(handle)
        if queue is None:
            queue = self.held.setdefault(exchange, deque())
        queue.appendleft((asker, message))
        self._queues[handle] = queue
        self._counts[handle] += 1
        self.walks[asker.index, message.token] = walk

    def resume(self) -> tuple[NetprocPeer, Message] | None:
        """The next message that is due in this turn; None when the turn has had its share. Call
        `resumed` behind the last one."""
        spent = self.payload < 0 or self.openings <= 0 or OPENED[0] - self.began >= SHARE
        if not self.held or spent:
            return None
        self._is_resuming = True
        exchange = next(iter(self.held))
        queue = self.held.pop(exchange)
        asker, message = queue.popleft()
        if queue:
            self.held[exchange] = queue  # behind the others
        self._uncount(message.handle)
        return asker, message

    def resumed(self) -> None:
        """Handle what comes as before."""
        self._is_resuming = False

    def _uncount(self, handle: int) -> None:
        self._counts[handle] -= 1
        if not self._counts[handle]:
            del self._counts[handle], self._queues[handle]

    def drop(self, index: int) -> None:
        """A network process died: nobody waits for what it asked."""
        for key in [key for key in self.walks if key[0] == index]:
            del self.walks[key]
        for exchange, queue in list(self.held.items()):
            left = deque(row for row in queue if row[0].index != index)
            for _, message in (row for row in queue if row[0].index == index):
                self._uncount(message.handle)
            queue.clear()
            queue.extend(left)
            if not queue:
                del self.held[exchange]
