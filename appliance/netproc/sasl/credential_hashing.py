"""Passwords are hashed here, and tokens verified: milliseconds each, in one thread beside the loop.

hashlib gives the interpreter's lock away meanwhile, and the thread has a lower priority than the
loop, so that logins make nobody wait who has logged in. It begins with the first password. Called
by `logins.py`.
"""

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

from appliance.shell.loop import Loop

_NICE: Final = 5

Job = tuple[Callable[[], Any], Callable[[Any], None]]


class CredentialHashing:
    """Its thread ends with the process. most: jobs that may wait (penstock.logins.max.waiting)."""

    def __init__(self, loop: Loop, most: int) -> None:
        self._most = most
        self._loop = loop
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._done: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._waiting = 0
        self._bell = -1

    def ask_thread(self, work: Callable[[], Any], then: Callable[[Any], None]) -> bool:
        """Calls `then` by the loop with the result of `work`, with False when it raises. False: too
        many wait, or the system
        has no thread or descriptor left."""
        if self._waiting >= self._most or not (self._bell >= 0 or self._start_thread()):
            return False
        self._waiting += 1
        self._jobs.put((work, then))
        return True

    def _start_thread(self) -> bool:
        """Starts the thread, which rings `_bell`. False: not now; the next password tries again."""
        try:
            bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except OSError:
            return False
        thread = threading.Thread(target=self._run, args=(bell,), name="hashing", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # "can't start new thread"
            os.close(bell)
            return False
        self._bell = bell
        self._loop.register(bell, select.EPOLLIN, self)
        return True

    def ready(self, mask: int) -> None:
        """The loop says that something is done."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._done:
            then, said = self._done.popleft()
            self._waiting -= 1
            then(said)

    def _run(self, bell: int) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while True:
            work, then = self._jobs.get()
            try:
                said = work()
            except Exception:  # nobody is let in by a mistake of ours
                said = False
            self._done.append((then, said))
            os.eventfd_write(bell, 1)
