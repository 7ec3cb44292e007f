"""An exception that ends a thread is told, and never leaves a process behind in which nobody does
the thread's work.

Each process says once what becomes of it: one whose threads run in a loop ends, and its successor
starts them again; one whose threads each do one thing tells the exception and goes on.
"""

import threading
from collections.abc import Callable

Death = Callable[[str, BaseException], object]
"""(name of the thread, what it raised)."""


def on_thread_death(act: Death) -> None:
    """Sets what is called on a thread of this process that ends by an exception, SystemExit
    included."""

    def hook(died: threading.ExceptHookArgs) -> None:
        name = "?" if died.thread is None else died.thread.name
        act(name, died.exc_value or died.exc_type())

    threading.excepthook = hook
