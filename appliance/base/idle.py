"""Work that nobody waits for gives way to everybody else: a door to the scheduler's."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Final, TypeVar

_SET: Final = {"x86_64": 251, "aarch64": 30}
"""ioprio_set(2), which neither Python nor the C library has a name for."""
_THREAD: Final = 1
_IDLE: Final = 3 << 13
_LAST: Final = 19
T = TypeVar("T")


def give_way() -> None:
    """From now on this thread, no other one of the process, gets disk and CPU when nobody else
    wants them; as far as the kernel and its I/O scheduler know of that."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _LAST)
    number = _SET.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _THREAD, 0, _IDLE)


def giving_way(work: Callable[[], T]) -> T:
    """Runs the work on a thread with idle priority, and returns its result or raises its exception.
    The calling thread, and processes that it starts later, keep theirs."""
    done: Future[T] = Future()

    def run() -> None:
        give_way()
        try:
            done.set_result(work())
        except BaseException as why:
            done.set_exception(why)

    Thread(target=run, daemon=True).start()
    return done.result()
