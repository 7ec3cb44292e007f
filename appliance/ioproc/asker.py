"""A network process as an ioproc sees it: its arena, and the completions it has coming.

Completions of one turn are gathered and pushed in one loop at its end. What the ring does not take
stays here in order; a peer that asks and never reads is cut off at `BACKLOG` completions.
"""

from collections import deque
from typing import Final

from appliance.ring.ring import RingWriter

BACKLOG: Final = 1 << 16

Completion = tuple[int, ...]
"""op, flags (error code + 1), handle, token, a, b, c, d, g, h, i, j, e, f; what is left out is
0."""


def refusal(op: int, code: int, handle: int, token: int) -> Completion:
    """A completion that carries an error and nothing else; offsets are -1, lengths 0."""
    return (op, code + 1, handle, token, -1, -1, -1, -1)


class Nobody:
    """Who asks when the appliance itself appends: its completions are dropped."""

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out: deque[Completion] = deque(maxlen=0)


class Asker:
    """Netproc `index`."""

    __slots__ = ("_writer", "arena", "dropped", "index", "out")

    def __init__(self, index: int, arena: memoryview, writer: RingWriter) -> None:
        self.index = index
        self.arena = arena
        self.out: list[Completion] = []
        self.dropped = 0
        self._writer = writer

    def push(self) -> bool:
        """Hand the completions to the ring; False when some have to wait for room."""
        out = self.out
        if not out:
            return True
        push = self._writer.push
        sent = 0
        for completion in out:
            if not push(*completion):
                break
            sent += 1
        if sent == len(out):
            out.clear()
            return True
        del out[:sent]
        if len(out) > BACKLOG:
            self.dropped += len(out) - BACKLOG
            del out[BACKLOG:]
        return False

    def forget(self) -> None:
        """The process died: nobody waits for these any more."""
        self.out.clear()
