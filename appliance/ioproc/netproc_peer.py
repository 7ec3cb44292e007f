"""A network process as an ioproc sees it: its arena, and the completions it has coming.

Completions of one turn are gathered and pushed in one loop at its end. What the ring does not take
stays here in order, and nothing is ever dropped while its asker lives. From `BACKLOG` completions
on nothing more is taken from the asker (`main.py`), so what waits here is bounded by what it had
asked until then. Of long answers so much is made in a turn as a turn may take, and the next of it
when all before it is in the ring.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from appliance.ring.messages import CARRIES
from appliance.ring.ring import PIECES, RingWriter

BACKLOG: Final = 1 << 13
"""So many completions wait before their asker has to take some of them: eight rings full."""
A_TURN: Final = 1 << 15
"""Bytes of long answers that are made in a turn; a slice more at most."""

Completion = tuple[int, ...]
"""op, flags (error code + 1), handle, token, a, b, c, d, g, h, i, j, e, f; what is left out is
0."""


def refusal(op: int, code: int, handle: int, token: int) -> Completion:
    """A completion that carries an error and nothing else; offsets are -1, lengths 0."""
    return (op, code + 1, handle, token, -1, -1, -1, -1)


class Nobody:
    """The asker of the appliance's own appends: its completions are dropped."""

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out: deque[Completion] = deque(maxlen=0)


class NetprocPeer:
    """Netproc `index`. life: how many of them have died. payloads: what the completions of `out`
    that go before others carry, in their order."""

    __slots__ = ("_long", "_made", "_writer", "arena", "index", "life", "out", "payloads")

    def __init__(self, index: int, arena: memoryview, writer: RingWriter) -> None:
        self.index = index
        self.arena = arena
        self.life = 0
        self.out: list[Completion] = []
        self.payloads: deque[bytes] = deque()
        self._long: deque[tuple[int, Iterator[bytes], int, Completion]] = deque()
        self._made = 0  # bytes of them in this turn
        self._writer = writer

    def before(self, op: int, handle: int, token: int, rows: bytes, size: int) -> None:
        """These go before the completion that comes next, as one of CARRIES, in pieces that fit
        into the ring. size: of a row."""
        most = max(1, self._writer.max_payload // PIECES // size) * size
        for at in range(0, len(rows), most):
            self.out.append((op, 1, handle, token))
            self.payloads.append(rows[at : at + most])

    def answer_in_slices(
        self, op: int, slices: Iterator[bytes], size: int, last: Completion
    ) -> None:
        """A long answer: rows that go before `last` as with `before`, slice by slice."""
        self._long.append((op, slices, size, last))
        self._tell_more()

    def _tell_more(self) -> None:
        while self._long and self._made < A_TURN:
            op, slices, size, last = self._long[0]
            rows = next(slices, b"")
            self._made += len(rows)
            self.before(op, last[2], last[3], rows, size)
            if not rows:
                self._long.popleft()
                self.out.append(last)

    def push(self) -> bool:
        """Hand the completions to the ring; False when there are more than that: they wait for
        room, or for the next turn."""
        out = self.out
        if not out:
            return True
        push = self._writer.push
        sent = 0
        for completion in out:
            if completion[0] in CARRIES:
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
            self._made = 0
            if not self._long:
                return True
            self._tell_more()
            return False
        del out[:sent]
        return False

    @property
    def behind(self) -> bool:
        """True if so many completions wait for it that it should send nothing more now."""
        return len(self.out) >= BACKLOG

    def forget_requests(self) -> None:
        """The process died: nobody waits for these any more."""
        self.life += 1
        self.out.clear()
        self.payloads.clear()
        self._long.clear()


Asker = NetprocPeer | Nobody
"""The process that asked for an append."""
