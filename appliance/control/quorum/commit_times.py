"""How long commits of the metadata log take while this node leads it: from the append to the
agreement of a majority, with everything on the disk.

One commit is followed at a time, the oldest that was seen when nothing was followed: what is
appended meanwhile is mostly agreed with it. Called by `driver.py` twice
a turn: after what was appended, and after what was agreed.
"""

from typing import Final

_NOTHING: Final = -1


class CommitTimes:
    """Commit latencies that are measured and not published yet."""

    __slots__ = ("_count", "_end", "_since_ns", "_took_ns")

    def __init__(self) -> None:
        self._end = _NOTHING  # exclusive end of the log that is followed
        self._since_ns = 0
        self._count = self._took_ns = 0

    def record_commits(self, leads: bool, agreed: int, end: int, now_ns: int) -> None:
        """agreed: exclusive end of what is. end: of the log. now_ns: monotonic."""
        if not leads:
            self._end = _NOTHING
            return
        if self._end != _NOTHING and agreed >= self._end:
            self._count += 1
            self._took_ns += now_ns - self._since_ns
            self._end = _NOTHING
        if self._end == _NOTHING and agreed < end:
            self._end, self._since_ns = end, now_ns

    def take_totals(self) -> tuple[int, int]:
        """(commits, ns that they took together) since it was asked last."""
        told = self._count, self._took_ns
        self._count = self._took_ns = 0
        return told
