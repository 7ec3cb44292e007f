"""The console's own log of requests: how many, their time and their failures. The same request
again is the same line, so the log of a day is short.
"""

from dataclasses import dataclass, replace
from typing import Final

MOST: Final = 500


@dataclass(slots=True, frozen=True)
class Entry:
    """what: in a few words. line: the command that does the same, "" where there is none. times:
    how often it was so in a row. first_s, last_s: wall clock. took_s: the last time. problem: what
    went wrong, "" when nothing did. outcome: what happened, where that is told. is_change: whether
    it was one; each of them is an entry of its own."""

    what: str
    line: str
    problem: str
    first_s: float
    last_s: float
    times: int
    took_s: float
    outcome: str = ""
    is_change: bool = False


class Journal:
    """The entries, the one that changed last at the end."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._open: dict[tuple[str, str], str] = {}
        self._number = 0

    def add_entry(
        self,
        what: str,
        now_s: float,
        *,
        line: str = "",
        took_s: float = 0.0,
        problem: str = "",
        outcome: str = "",
        is_change: bool = False,
    ) -> None:
        """Something was done. now_s: wall clock."""
        same = None if is_change else self._open.get((what, line))
        entry = self._entries.pop(same, None) if same is not None else None
        if same is None or entry is None or entry.problem != problem:
            if same is not None and entry is not None:
                self._entries[same] = entry
            self._number += 1
            same = str(self._number)
            entry = Entry(what, line, problem, now_s, now_s, 0, 0.0, outcome, is_change)
            if not is_change:
                self._open[what, line] = same
        self._entries[same] = replace(
            entry, last_s=now_s, times=entry.times + 1, took_s=took_s, outcome=outcome
        )
        while len(self._entries) > MOST:
            gone = self._entries.pop(next(iter(self._entries)))
            if self._open.get((gone.what, gone.line)) not in self._entries:
                self._open.pop((gone.what, gone.line), None)

    @property
    def entries(self) -> dict[str, Entry]:
        """Number → entry; not to be changed."""
        return self._entries
