"""The console gives its terminal back however it ends: signals and a hang-up end it as q does."""

import asyncio
import gc
import select
import signal
import sys
from typing import Any, Final

from console.screens.inks import Inked
from console.streams import painter

SWITCH_S: Final = 0.0005
"""How long a thread that reads 10,000 topics may keep a key waiting, each time; Python's own 5 ms
add up to what a person notices."""
COLLECTED_AFTER: Final = (5_000, 5, 100)
"""When Python looks for garbage: rarely among all objects, before the large answers are frozen."""


class AtTerminal(Inked):
    """An app that SIGTERM, SIGHUP and a lost terminal end in order; `return_code` is 128 and the
    number of the signal."""

    _terminal: "select.poll | None" = None

    def watch_terminal(self) -> None:
        """Begins that; without an effect in tests, where there is no terminal."""
        if self.is_headless:
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, number)
        if not self.is_web:
            self._terminal = select.poll()
            self._terminal.register(sys.__stdin__ or 0, 0)  # a hang-up alone

    def is_hung_up(self) -> bool:
        """True once the terminal is gone; the app ends then."""
        gone = self._terminal is not None and bool(self._terminal.poll(0))
        if gone:
            self._leave(signal.SIGHUP)
        return gone

    def _leave(self, number: int) -> None:
        self.exit(return_code=128 + number)

    def run(self, **how: Any) -> None:
        """As Textual does it. A failed write to the terminal is no error: Textual would wait for
        ever for the thread that writes."""
        sys.__stderr__ = painter()  # type: ignore[misc, assignment]
        super().run(**how)


def prepare() -> None:
    """Make this process one in which a key waits for nobody."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECTED_AFTER)
