"""Somebody who sits at the console: presses keys, waits for what must be seen, reads the screen.

Each key is handled before the next is pressed, but what is asked in a thread is answered whenever
it is: wait for what the next key needs (`plan`, `form`, `back`, a row under the cursor), and not
for words that something else may show as well, as a toast does or a dialog that is about to close.
`SLOW_ANSWERS=0.5 pytest …` lets every answer take up to so many seconds more: what a test does not
wait for, it misses.
"""

import asyncio
import os
import random
import time
from contextlib import ExitStack
from unittest import mock

from textual.color import Color
from textual.widgets import Input, TextArea

from console.model.asking.link import Link
from console.screens.app import ConsoleApp
from console.screens.changes.dialog import READY
from console.screens.places import HOME, key_of
from console.screens.sources import answered

SMALL, LARGE = (80, 24), (200, 50)
SLOW_S = float(os.environ.get("SLOW_ANSWERS", "0"))
_ASKING = ("sources", "changes.door", "records.sending", "records.schema")
_LIMIT_S = 60.0
_LOOK_S = 0.02


class Seat:
    def __init__(self, app, pilot):
        self.app = app
        self.press = pilot.press
        self.click = pilot.click
        self.resize = pilot.resize_terminal
        self._pilot = pilot

    def lines(self):
        """What is on the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    def text(self):
        return "\n".join(self.lines())

    def line(self, words):
        """The first line with these words in it, "" when there is none."""
        return next((line for line in self.lines() if words in line), "")

    def shades(self):
        """(text, contrast of its colour with what is behind it) of every piece; 1: invisible."""
        for strip in self.app.screen._compositor.render_strips():
            for piece in strip:
                style = piece.style
                words = any(char.isalnum() for char in piece.text)
                if words and style and style.color and style.bgcolor:
                    ink = Color.from_rich_color(style.color)
                    yield piece.text, _contrast(ink, Color.from_rich_color(style.bgcolor))

    async def until(self, holds, about=""):
        """Wait until something holds, with the screen in the message when it never does."""
        for _ in range(round(_LIMIT_S / _LOOK_S)):
            if holds():
                return
            await self._pilot.pause(_LOOK_S)
        raise AssertionError(f"never seen: {about}\n{self.text()}")

    async def sees(self, *words):
        """Wait until all of these are on the screen."""
        for one in words:
            await self.until(lambda one=one: one in self.text(), one)

    async def reads(self, words):
        """Wait until this is in a window on the screen, however its lines are broken."""
        await self.until(
            lambda: words in " ".join(self.text().replace("│", " ").split()), repr(words)
        )

    async def hears(self, words):
        """Wait until a toast says this, however its lines are broken."""
        toasts = self.app._notifications
        await self.until(lambda: any(words in one.message for one in toasts), words)

    async def misses(self, words):
        """Wait until this is not on the screen any more."""
        await self.until(lambda: words not in self.text(), f"a screen without {words!r}")

    async def plan(self):
        """Wait until a dialog shows what a change would do."""
        await self.until(lambda: getattr(self.app.screen, "state", "") == READY, "a plan")

    async def form(self):
        """Wait until something can be typed."""
        await self.until(lambda: isinstance(self.app.focused, Input | TextArea), "a form")

    async def back(self):
        """Wait until nothing is above the place any more."""
        await self.until(lambda: len(self.app.screen_stack) == 1, "the place alone")

    async def settled(self):
        """Wait until every message that is on its way has been handled."""
        await self._pilot.pause()

    async def still_picture(self, draw):
        """What `draw` gives once it has given the same for half a second."""
        last, same = draw(), 0
        while same < 0.5 / _LOOK_S:
            await self._pilot.pause(_LOOK_S)
            before, last = last, draw()
            same = same + 1 if last == before else 0
        return last

    async def type(self, text):
        await self.press(*text)


def tab(kind):
    """The key that leads to a list."""
    return key_of(kind)


def _contrast(one, other):
    """As WCAG 2 has it: 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color):
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def reading(bootstrap):
    """A Link that only reads, as the command makes it."""
    return Link(bootstrap, {"reconnect.backoff.max.ms": "500"}, 10.0, read_only=True)


def writing(bootstrap):
    """The Link for changes, as the command makes it."""
    return Link(bootstrap, {"reconnect.backoff.max.ms": "500"}, 10.0)


async def _nothing_left():
    """Wait until the loop has nothing to do at once: a key is handled when all that it led to is.
    Textual's own way takes a process that is given no processor for one that has nothing to do, and
    waits 40 ms for each key of one that is."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    while loop._ready:
        await asyncio.sleep(0)


def _slowly(answered):
    """As threads ask, with chance in how long it takes."""

    def slow(name, ask):
        time.sleep(random.uniform(0, SLOW_S))
        return answered(name, ask)

    return slow


def sit(bootstrap, act, *, size=SMALL, first=HOME, prepare=None, jobs=None, read_only=False):
    """Open a console and let `act`, a coroutine function of a Seat, use it. prepare: is given the
    app before it asks anything. jobs: the jobs folder."""

    async def play():
        changing = None if read_only else writing(bootstrap)
        app = ConsoleApp(reading(bootstrap), first, jobs, changing=changing)
        if prepare is not None:
            prepare(app)

        async def handled(*_):
            await _nothing_left()
            app.screen._on_timer_update()
            await _nothing_left()

        with ExitStack() as patched:
            # How full the disk of this host is, is not what these tests are about.
            patched.enter_context(mock.patch("console.model.local.attention._LITTLE", 0.0))
            # Others act without a key: what rests must not be asked less often for that.
            patched.enter_context(mock.patch("console.screens.sources._LONGEST_S", 0.0))
            # A console keeps what it has until the program ends; here others follow.
            patched.enter_context(mock.patch("gc.freeze"))
            for one in ("app", "pilot"):
                patched.enter_context(mock.patch(f"textual.{one}.wait_for_idle", handled))
            for one in _ASKING if SLOW_S else ():
                name = f"console.screens.{one}.answered"
                patched.enter_context(mock.patch(name, _slowly(answered)))
            async with app.run_test(size=size, notifications=True) as pilot:
                await act(Seat(app, pilot))

    asyncio.run(play())
