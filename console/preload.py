"""Modules of the appliance's processes, imported before the first fork: they share the memory."""

import gc
import sys

from console import import_module


def preload() -> None:
    """Import what the supervisor and its children run, with no pass of the garbage collector over
    it, then or later. kio's types look for hypothesis, a test library, and load it when it is
    there: 0.3 s and 20 MB for nothing."""
    absent = "hypothesis" not in sys.modules
    if absent:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
    gc.disable()
    for module in ("netproc.main", "ioproc.main", "control.main", "supervisor"):
        import_module(f"appliance.{module}")
    gc.freeze()
    gc.enable()
    if absent:
        del sys.modules["hypothesis"]
