"""-w/--watch: show it again and again until Ctrl-C.

On a terminal each picture replaces the one before; into a pipe they follow each other, so that
`-w -o jsonl` is a stream of rows, `-w -o json` a picture a line, `-w -o yaml` a stream of documents
with `---` between them.
"""

import functools
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from console.flags.units import Seconds
from console.show.output import LINE
from console.streams import paint


def watched(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -w/--watch and --interval; the command draws one picture and is called for each."""

    @click.option("-w", "--watch", is_flag=True, help="Refresh until Ctrl-C.")
    @click.option(
        "--interval", type=Seconds(0.1, 3600), default=2.0, metavar="TIME",
        help="Refresh interval.  [default: 2s]",
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(*args: object, watch: bool, interval: float, **kwargs: object) -> object:
        output = kwargs.get("output")
        if watch and output == "json":
            kwargs["output"] = LINE
        for number in itertools.count():
            if number and output == "yaml":
                print("---")
            if watch and output in ("table", "wide") and sys.stdout.isatty():
                # Home, then clear: without a flash between two pictures.
                paint("\x1b[H\x1b[J")
                print(f"{time.strftime('%H:%M:%S')}, every {interval:g} s\n")
            code = command(*args, **kwargs)
            if not watch:
                return code
            sys.stdout.flush()
            time.sleep(interval)
        raise AssertionError("a watch ends by Ctrl-C")

    return wrapped
