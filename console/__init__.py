"""The `penstock` command: `main`, called by the console script and by `python -m console`.

It parses, calls one command's module and turns every failure into a line that names cause and
remedy, and into an exit code. Commands and their libraries are imported when they are called, so
that `penstock --help` and `penstock up` load only what they need.
"""

import gc
import importlib
import os
import sys
import time
from types import ModuleType
from typing import Final, NoReturn, cast

SUCCEEDS: Final = "PENSTOCK_SUCCEEDS_AT"
"""Environment of an appliance that goes on in the process of the one before, whose CPU time is not
its own: when it began, in seconds of the monotonic clock."""
BEGAN_S: Final = float(os.environ.pop(SUCCEEDS, 0)) or time.monotonic() - time.process_time()
"""About when this process began, on the monotonic clock: what the interpreter took is in it."""


def import_module(name: str, package: str | None = None) -> ModuleType:
    """As importlib's, without collections of garbage: what modules make stays, and looking through
    it takes a fifth of the time of a large import."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name, package)
    finally:
        if collects:
            gc.enable()


def main() -> NoReturn:
    """Run the command line of this process and exit with its code (`console/root.py`)."""
    # kio tells hypothesis of its types wherever that is installed: a third of a start.
    cast("dict[str, object]", sys.modules).setdefault("hypothesis", None)
    try:
        from console.cores import leave_memory_out
        from console.root import run
        from console.streams import settle_streams

        leave_memory_out()
        settle_streams()
    except KeyboardInterrupt:
        sys.exit(130)
    run()
