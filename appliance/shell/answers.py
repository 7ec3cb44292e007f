"""Answers on their way to one netproc: cut into pieces that fit the ring, kept while it is full.

Pieces of one answer are pushed one after the other with nothing between them.
"""

from collections import deque

from appliance.ring.messages import ANSWERED
from appliance.ring.ring import PIECES, RingWriter


class Answers:
    """The queue to one netproc."""

    __slots__ = ("_kept", "_piece", "_writer")

    def __init__(self, writer: RingWriter) -> None:
        self._writer = writer
        self._piece = max(1, writer.max_payload // PIECES)
        self._kept: deque[tuple[int, int, int, memoryview]] = deque()

    def put_answer(self, token: int, code: int, body: bytes) -> None:
        """Answer what came with `token`: Kafka error code, and the encoded response body."""
        size = self._piece
        if not self._kept and len(body) <= size:
            push = self._writer.push_with_payload
            if push(ANSWERED, code + 1, 0, token, payload=body):
                return
        view = memoryview(body)
        at = 0
        while True:
            piece = view[at : at + size]
            at += len(piece)
            more = at < len(view)
            self._kept.append((token, code + 1, int(more), piece))
            if not more:
                break
        self.push()

    def push(self) -> bool:
        """Push what fits now; whether everything did."""
        kept = self._kept
        while kept:
            token, flags, more, piece = kept[0]
            if not self._writer.push_with_payload(ANSWERED, flags, 0, token, more, payload=piece):
                return False
            kept.popleft()
        return True

    def drop(self) -> None:
        """The netproc died; its successor has asked nothing."""
        self._kept.clear()
