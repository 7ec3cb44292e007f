"""The end of a text file, and what is added to it: for logs that are followed."""

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_READ_MOST: Final = 256 * 1024
"""Of what was there already, and of what came since the last look: more is passed over."""


@dataclass(slots=True, frozen=True)
class Line:
    """at: where it begins in the file, in bytes, which tells lines apart while the file grows."""

    at: int
    text: str


class Tail:
    """The last lines of one file, which may not exist yet, may grow, and may begin anew. most: how
    many lines are kept.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._lines: deque[Line] = deque(maxlen=most)
        self._at = -1  # not looked at yet

    def read_lines(self) -> list[Line]:
        """Returns the lines since the last call; at first, the last lines. A line is returned once
        it is complete. Raises OSError.
        """
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            size = 0
        if size < self._at:  # it began anew
            self._lines.clear()
            self._at = 0
        begin = max(self._at, 0)
        if size - begin > _READ_MOST:
            begin = size - _READ_MOST
        if size <= begin:
            self._at = begin
            return []
        with self._path.open("rb") as file:
            file.seek(begin)
            told = file.read(size - begin)
        if begin > max(self._at, 0):  # it begins within a line
            cut = told.find(b"\n") + 1
            begin, told = begin + cut, told[cut:]
        first = self._at < 0
        whole = told[: told.rfind(b"\n") + 1]
        found, at = [], begin
        for line in whole.splitlines(keepends=True):
            found.append(Line(at, line.decode(errors="replace").rstrip("\r\n")))
            at += len(line)
        self._at = at
        self._lines.extend(found)
        return list(self._lines) if first else found

    @property
    def lines(self) -> tuple[Line, ...]:
        """Those that are kept, the oldest first."""
        return tuple(self._lines)
