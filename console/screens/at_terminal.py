"""The console gives its terminal back however it ends: signals and a hang-up end it as q does."""

import asyncio
import gc
import select
import signal
import sys
from typing import Any, Final

from textual._compositor import CompositorUpdate
from textual.screen import Screen

from console.screens.inks import Inked
from console.screens.painted import Painted
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

    def __init__(self) -> None:
        super().__init__()
        self.painted = Painted()

    def watch_terminal(self) -> None:
        """Begins that; without an effect in tests, where there is no terminal."""
        if self.is_headless:
            return
        self.app_resume_signal.subscribe(self, lambda _: self.paint_anew())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, number)
        if not self.is_web:
            self._terminal = select.poll()
            self._terminal.register(sys.__stdin__ or 0, 0)  # a hang-up alone

    def paint_anew(self) -> None:
        """Writes everything again: something else may have written to the terminal."""
        self.painted.forget_all()
        if self.screen_stack:
            self.screen.refresh()

    def on_resize(self) -> None:
        """A terminal may have lost what it showed."""
        self.paint_anew()

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """As Textual does it, but only cells that differ from what the terminal shows."""
        if isinstance(renderable, CompositorUpdate) and not self.is_headless:
            if self._batch_count:
                self.painted.forget_all()  # it is dropped
            else:
                renderable = self.painted.find_changes(renderable)
        super()._display(screen, renderable)

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
