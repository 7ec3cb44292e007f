"""`penstock console`."""

import os
import signal
import sys
from contextlib import ExitStack
from types import FrameType
from typing import Final

import click

from console.flags.connection import connected
from console.model.asking.failure import usage
from console.model.asking.link import Link
from console.show.output import print_note

_LOOPBACK: Final = ("localhost", "127.0.0.1")
_IN_BROWSER: Final = "TEXTUAL_DRIVER"
"""Set where it is shown in a browser: it has no terminal then."""


@click.command("console")
@click.argument("place", nargs=-1, metavar="[PLACE]")
@click.option("--jobs", metavar="DIR", help="The jobs folder.  [default: that of the appliance]")
@click.option("--demo", is_flag=True, help="Open it on the demo's data with its jobs running.")
@click.option(
    "--web", is_flag=True, help="Serve it to a browser of this host, and print the address."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8092, help="Port of --web.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal: it marks text.")
@connected
def command(
    link: Link,
    place: tuple[str, ...],
    jobs: str | None,
    demo: bool,
    web: bool,
    port: int,
    read_only: bool,
    no_mouse: bool,
) -> int:
    """Open the terminal console: problems, rates, topics, groups, jobs.

    Press ? for the keys. PLACE is the first view: overview, topics, topic NAME, groups, group NAME,
    jobs, job NAME, preview FILE, txns, users, acls, audit or log. Rates and processes are shown for
    an appliance of this host; when none runs, the console offers to start one.

    \b
    penstock console
    penstock console topic orders
    penstock console --read-only
    penstock console -b kafka.example.org:9092
    penstock console --demo
    """
    from console.screens.places import HOME, NoPlace, jump

    try:
        first = jump(" ".join(place)) if place else HOME
    except NoPlace as wrong:
        raise usage(str(wrong)) from None
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not (at_terminal or web or _IN_BROWSER in os.environ):
        raise usage("it needs a terminal", "penstock stats and penstock topic list write to a pipe")
    named = jobs or os.environ.get("PENSTOCK_JOBS")
    with ExitStack() as stack:
        if demo:
            link, named = _demo(stack)
        elif at_terminal:
            _offer(stack, link)
        if web:
            from console.commands.console_web import serve

            return serve(link, place, named, port, read_only=read_only)
        from console.screens.app import run

        quick = {"reconnect.backoff.max.ms": "1000"}  # what is back is shown at once
        properties = quick | link.properties
        reading = Link(link.bootstrap, properties, link.timeout_s, read_only=True)
        changing = None if read_only else Link(link.bootstrap, properties, link.timeout_s)
        return run(reading, first, named, changing, mouse=not no_mouse)


def _demo(stack: ExitStack) -> tuple[Link, str | None]:
    """(where the demo's appliance is, its jobs folder). It ends when the stack does."""
    from console.commands.demo.background import Background

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    demo = stack.enter_context(Background())
    if demo.reason is not None:
        print_note(f"The jobs of the demo are left out: {demo.reason}.")
    return Link(demo.bootstrap, {}, 30.0), demo.jobs_folder or None


def _end(number: int, _: FrameType | None) -> None:
    """A signal ends the console as `q` does."""
    raise SystemExit(128 + number)


def _offer(stack: ExitStack, link: Link) -> None:
    """Offers to start an appliance when none answers at the default address. It outlives the
    console.
    """
    from console.flags.confirm import asked
    from console.model.asking.failure import Failure
    from console.model.storage.data_folder import DEFAULT_DATA
    from penstock.local import Appliance, ApplianceError

    host, _, port = link.bootstrap.rpartition(":")
    if host not in _LOOPBACK or not port.isdecimal() or not link.is_asked:
        return
    try:
        link.reach()
    except Failure as nobody:
        print_note(f"{nobody.message}.")
    else:
        return
    print_note(f"penstock up starts an appliance in this terminal; its data: ./{DEFAULT_DATA}")
    if not asked("Start it now, in the background?"):
        return
    appliance = Appliance(os.path.abspath(DEFAULT_DATA), port=int(port), outlives=True)
    try:
        appliance.start()
    except (ApplianceError, OSError) as problem:
        raise Failure(f"it did not start: {problem}", name="CANNOT_START") from None
    ends = f"It keeps running: kill {appliance.pid} ends it in order. Its log: {appliance.log_file}"
    print_note(ends)
    stack.callback(print_note, ends)
