"""`penstock top`."""

import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from console.flags.folder import located
from console.flags.units import Seconds
from console.model.asking.failure import OK, usage
from console.model.local.clients import Connections
from console.model.local.stats import Meter
from console.show.top import HELP, KINDS, Seen, View, lines, pressed, sorted_by
from console.streams import escaped, paint

_KEY_BYTES: Final = 64
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
"""The other screen of the terminal, without a cursor; and back."""


class _Look:
    """Looks at one appliance again and again."""

    def __init__(self, data_dir: str) -> None:
        """Raises Failure."""
        self._meter = Meter(data_dir)
        self._clients = Connections(self._meter.clients)
        self._began_s = time.monotonic()
        self.seen = self._told("since the start")

    def again(self) -> None:
        """Reads the figures since the last call. Raises Failure: the appliance has ended."""
        self._meter.read_counters()
        now_s = time.monotonic()
        span_s, self._began_s = now_s - self._began_s, now_s
        self.seen = self._told(f"last {span_s:.1f} s")

    def _told(self, since: str) -> Seen:
        return Seen(
            time.strftime("%H:%M:%S"), since, self._meter.topics(),
            self._clients.read_connections(), self._meter.processes(),
            sum(one.requests_s for one in self._meter.apis()),
        )  # fmt: skip


@click.command("top")
@located
@click.option("-t", "--topics", "kind", flag_value="t", default="t", help="Start with topics.")
@click.option("-c", "--connections", "kind", flag_value="c", help="Start with client connections.")
@click.option("-p", "--processes", "kind", flag_value="p", help="Start with processes.")
@click.option(
    "--sort", metavar="COLUMN", help="Sort by a column; the start of its title is enough."
)
@click.option(
    "--interval", type=Seconds(0.1, 3600), default=2.0, metavar="TIME",
    help="Refresh interval.  [default: 2s]",
)  # fmt: skip
@click.option(
    "-n", "--pictures", type=click.IntRange(1), metavar="COUNT",
    help="Stop after this many refreshes.  [default: 1 without a terminal]",
)  # fmt: skip
def command(data: str, kind: str, sort: str | None, interval: float, pictures: int | None) -> int:
    """Show the live throughput of an appliance of this host by topic, client and process.

    Keys: t topics, c connections, p processes; < and > sort by another column, r reverses the
    order, q quits. Rates cover the time since the last refresh. Without a terminal it prints plain
    text once after an interval, or -n times. The command reads the appliance's shared memory and
    sends no request; it needs the appliance's user or root.

    \b
    penstock top
    penstock top --connections --sort out
    penstock top -p -n 10 > processes.txt
    """
    view = View(KINDS[kind])
    try:
        view = sorted_by(view, sort) if sort else view
    except ValueError as wrong:
        raise usage(str(wrong)) from None
    look = _Look(data)
    if sys.stdin.isatty() and sys.stdout.isatty():
        _live(look, view, interval, pictures)
    else:
        _plainly(look, view, interval, pictures or 1)
    return OK


def _plainly(look: _Look, view: View, interval: float, pictures: int) -> None:
    for number in range(pictures):
        time.sleep(interval)
        look.again()
        print("\n".join(([""] if number else []) + lines(view, look.seen)), flush=True)


def _live(look: _Look, first: View, interval: float, pictures: int | None) -> None:
    """Until q, Ctrl-C, or so many pictures."""
    view: View | None = first
    with _keys() as keyboard:
        drawn, due_s = 1, time.monotonic() + interval
        while view is not None:
            _draw(view, look.seen)
            wait_s = max(0.0, due_s - time.monotonic())
            if select.select([keyboard], [], [], wait_s)[0]:
                view = _after(view, keyboard)
                continue
            if drawn == pictures:
                return
            look.again()
            drawn, due_s = drawn + 1, time.monotonic() + interval


def _after(view: View, keyboard: int) -> View | None:
    """The view after what was typed; None where it ends, also with the terminal."""
    typed = os.read(keyboard, _KEY_BYTES).decode(errors="replace")
    found: View | None = view if typed else None
    for key in typed:
        found = pressed(found, key) if found is not None else None
    return found


def _draw(view: View, seen: Seen) -> None:
    size = shutil.get_terminal_size()
    shown = lines(view, seen, most=size.lines - 1)
    shown += [""] * (size.lines - 1 - len(shown)) + [HELP]
    text = "\n".join(f"{escaped(line)[: size.columns]}\x1b[K" for line in shown)
    paint(f"\x1b[H{text}")


@contextmanager
def _keys() -> Iterator[int]:
    """Keys come as they are pressed, on another screen; all is as before afterwards."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        paint(_ENTER)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        paint(_LEAVE)
