"""A network process as an ioproc sees it: its arena, and the completions it has coming.

Completions of one turn are gathered and pushed in one loop at its end. What the ring does not take
stays here in order, and nothing is ever dropped while its asker lives. From `BACKLOG` completions
on nothing more is taken from the asker (`main.py`), so what waits here is bounded by what it had
asked until then.
"""

from collections import deque
from typing import Final

from appliance.ring.messages import GOES_BEFORE
from appliance.ring.ring import PIECES, RingWriter

BACKLOG: Final = 1 << 13
"""So many completions wait before their asker has to take some of them: eight rings full."""

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
    """Netproc `index`. life: how many of them have died. payloads: what the completions of `out`
    that go before others carry, in their order."""

    __slots__ = ("_writer", "arena", "index", "life", "out", "payloads")

    def __init__(self, index: int, arena: memoryview, writer: RingWriter) -> None:
        self.index = index
        self.arena = arena
        self.life = 0
        self.out: list[Completion] = []
        self.payloads: deque[bytes] = deque()
        self._writer = writer

    def before(self, op: int, handle: int, token: int, rows: bytes, size: int) -> None:
        """These go before the completion that comes next, as one of GOES_BEFORE, in pieces that fit
        into the ring. size: of a row."""
        most = max(1, self._writer.max_payload // PIECES // size) * size
        for at in range(0, len(rows), most):
            self.out.append((op, 1, handle, token))
            self.payloads.append(rows[at : at + most])

    def push(self) -> bool:
        """Hand the completions to the ring; False when some have to wait for room."""
        out = self.out
        if not out:
            return True
        push = self._writer.push
        sent = 0
        for completion in out:
            if completion[0] in GOES_BEFORE:
                op, flags, handle, token = completion
                payload = self.payloads[0]
                if not self._writer.push_with_payload(op, flags, handle, token, payload=payload):
                    break
                self.payloads.popleft()
            elif not push(*completion):
                break
            sent += 1
        if sent == len(out):
            out.clear()
            return True
        del out[:sent]
        return False

    @property
    def behind(self) -> bool:
        """Whether so much waits for it that it should ask nothing more now."""
        return len(self.out) >= BACKLOG

    def forget(self) -> None:
        """The process died: nobody waits for these any more."""
        self.life += 1
        self.out.clear()
        self.payloads.clear()
