"""Where in the files the offsets lie that readers may reach: the high watermark's place and the
last stable offset's.

Fetches are planned from these without asking the home, so both are places where a batch begins or
a segment ends, and nothing that lies before them is above the offset. Each write says where it
ended; when the high watermark reaches such an end, that is its place. One that lies between two
ends (a follower took part of a write) has the place of the one before. Invariant: `ends` is in
order, and above the last stable offset. Driven by `partition.py`.
"""

from collections import deque
from typing import Final

MOST_ENDS: Final = 4096
"""Older ones are forgotten: what waits there is asked for at the home."""

UNKNOWN: Final = (-1, -1)


class FilePositions:
    """ends: (end offset, base offset of the segment, position behind it), not reached yet.
    visible, stable: (segment, position) of the high watermark and of the last stable offset, each
    UNKNOWN at times."""

    __slots__ = ("ends", "stable", "visible")

    def __init__(self, segment: int, position: int) -> None:
        self.ends: deque[tuple[int, int, int]] = deque(maxlen=MOST_ENDS)
        self.visible = self.stable = (segment, position)

    def set_visible(self, high_watermark: int, last_stable: int) -> None:
        """The high watermark or the last stable offset is another."""
        ends = self.ends
        while ends and ends[0][0] <= last_stable:
            _, segment, position = ends.popleft()
            self.stable = self.visible = segment, position
        if high_watermark > last_stable:
            for end, segment, position in ends:
                if end > high_watermark:
                    break
                self.visible = segment, position

    def unknown(self, end: tuple[int, int, int]) -> None:
        """The log ends at `end` and nothing is known of what lies before."""
        self.ends.clear()
        self.ends.append(end)
        self.visible = self.stable = UNKNOWN

    def drop_places(self, active: int, high_watermark: int, last_stable: int) -> None:
        """Positions in segments before the active one, which begins at `active`, hold no more."""
        if self.visible[0] < active:
            self.visible = (active, 0) if high_watermark >= active else UNKNOWN
        if self.stable[0] < active:
            self.stable = (active, 0) if last_stable >= active else UNKNOWN
