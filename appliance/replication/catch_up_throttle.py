"""How fast replicas that are far behind are fetched while somebody writes.

A writer with acks=all waits for the replicas in sync, and those share processors, network and disk
with what is fetched for the others. So that is fetched in small answers, and behind each of them
comes a rest that is as long as the answer took, times `REST`: whatever is short, and wherever it
is, it is used a part of the time, and the less the busier it is. Nobody has to say what is short.

While nobody writes there is neither limit nor rest. What is behind gains on what is written all the
same: the rest halves while less than half of what is fetched is gain, and no rest is longer than
`FLOOR` allows. One I/O process; no clock: times come in, in ns.
"""

from typing import Final

QUIET_NS: Final = 1_000_000_000
"""So long after somebody wrote it counts as over."""
REST: Final = 3
"""Times as long as an answer took, while that is enough to catch up: a quarter of the time."""
LONG_NS: Final = 4_000_000
"""An answer that takes longer, from its question until all of it is held, is followed by smaller
ones."""
LEAST: Final = 256 << 10
MOST: Final = 1 << 20
"""Bytes of an answer, while somebody writes. When nobody does, of the first one: each one may have
twice as many as the one before, so that there is a moment to notice a writer."""
STEP: Final = 128 << 10
FLOOR: Final = 32 << 20
"""Bytes each second that all conversations have together at least, if they find them."""
WINDOW_NS: Final = 1_000_000_000
"""Over so long it is looked at whether what is behind gains."""
UNLIMITED: Final = 1 << 31
_MS: Final = 1_000_000


class Writing:
    """Tracks whether producers write that may wait for this node."""

    __slots__ = ("_last_ns",)

    def __init__(self) -> None:
        self._last_ns = -QUIET_NS

    def on_record_written(self, now_ns: int) -> None:
        """A record was written after it had been level, here or at a leader."""
        self._last_ns = now_ns

    def goes_on(self, now_ns: int) -> bool:
        """True if a producer wrote a moment ago."""
        return now_ns - self._last_ns < QUIET_NS


class Pace:
    """The pace of one connection with one request in flight: asked ─▶ took, went ─▶ rest_ms until 0
    ─▶ asked."""

    __slots__ = (
        "_alone",
        "_asked_ns",
        "_bytes",
        "_due_ns",
        "_gained",
        "_grown",
        "_rest",
        "_since_ns",
        "_size",
    )

    def __init__(self) -> None:
        self._size = LEAST
        self._alone = MOST
        self._rest = REST
        self._asked_ns = -1  # no question whose rest is to be decided
        self._bytes = 0  # of its answer
        self._due_ns = 0
        self._since_ns = -1
        self._gained = self._grown = 0

    def limit(self, *, writing: bool) -> int:
        """Bytes that the next answer may have."""
        return self._size if writing else self._alone

    def asked(self, now_ns: int) -> None:
        """A question goes."""
        self._asked_ns, self._bytes = now_ns, 0

    def took(self, size: int) -> None:
        """So many bytes of its answer."""
        self._bytes += size

    def add_progress(self, gained: int, grown: int) -> None:
        """A partition is so many records further, and the leader has so many more than when it was
        last heard of."""
        self._gained += gained
        self._grown += grown

    def rest_ms(self, now_ns: int, others: int, *, writing: bool) -> int:
        """All that came is held: in how many ms the next question may go, 0: now. others: how many
        conversations there are beside this one, which share the time."""
        decides = self._asked_ns >= 0
        if not writing:
            if decides and self._bytes * 2 >= self._alone:
                self._alone = min(UNLIMITED, 2 * self._alone)
            self._asked_ns, self._due_ns, self._size = -1, 0, LEAST
            return 0
        self._alone = MOST
        if decides:
            self._decide(now_ns, others)
        return max(0, -((now_ns - self._due_ns) // _MS))

    def _decide(self, now_ns: int, others: int) -> None:
        took_ns = max(0, now_ns - self._asked_ns)
        if took_ns > LONG_NS:
            self._size = max(LEAST, self._size // 2)
        elif self._bytes * 2 >= self._size:
            self._size = min(MOST, self._size + STEP)
        if self._since_ns < 0:
            self._since_ns = self._asked_ns
        if now_ns - self._since_ns >= WINDOW_NS:
            self._adapt()
            self._since_ns = now_ns
        share_ns = took_ns * ((self._rest + 1) * (others + 1) - 1)
        floor_ns = self._bytes * 1_000_000_000 * (others + 1) // FLOOR
        self._due_ns = now_ns + min(share_ns, max(0, floor_ns - took_ns))
        self._asked_ns = -1

    def _adapt(self) -> None:
        gained, grown = self._gained, self._grown
        if gained < 2 * grown:
            self._rest //= 2
        elif gained > 4 * grown:
            self._rest = min(REST, 2 * self._rest + 1)
        self._gained = self._grown = 0
