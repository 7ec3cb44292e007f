"""The time in which a key is handled: threads that read much stand back, and Python looks for
garbage later. Both would hold the loop up for longer than most keys take.
"""

import asyncio
import gc
import time
from typing import Final

from console.screens.sources import Hush

_DRAWN_S: Final = 0.04
"""From the action of a key until its effect is on the terminal: the screen is drawn 60 times a
second at most, and takes up to 20 ms for a whole view."""
_MOST_S: Final = 0.25
"""A key that is held down does not keep garbage for longer."""


class KeyTime:
    """hush: what the threads ask whether they may go on. Belongs to the loop."""

    def __init__(self, hush: Hush) -> None:
        self._hush = hush
        self._began_s = 0.0
        self._holds_garbage = False
        self._ends: asyncio.TimerHandle | None = None

    def begin_key(self) -> None:
        """A key was pressed."""
        self._hush.begin_hush()
        if gc.isenabled():
            gc.disable()
            self._holds_garbage, self._began_s = True, time.monotonic()

    def end_soon(self) -> None:
        """Its action has run: what it changed is about to be drawn."""
        if self._ends is not None:
            self._ends.cancel()
        self._ends = asyncio.get_running_loop().call_later(_DRAWN_S, self.end_key)

    def end_key(self) -> None:
        """Its effect is shown."""
        self._hush.end_hush()
        if self._holds_garbage:
            self._holds_garbage = False
            gc.enable()

    def release_late(self) -> None:
        """Called now and then: not every key comes back, and one may be held down."""
        if self._holds_garbage and time.monotonic() - self._began_s > _MOST_S:
            self.end_key()
