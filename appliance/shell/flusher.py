"""Threads that run what blocks but releases the GIL: fdatasync and unlink, off the loop.

A thread that cannot ring ends the process (`threads.py`): its jobs would never be taken. Where no
thread can be started, the job runs on the loop's own.

Invariant: a job's result is taken on the loop's thread, in the order in which the jobs ended; a job
touches nothing but its files. The core submits, waits on `fd` with its other doorbells, and takes.
"""

import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from time import monotonic_ns
from typing import Any, Final, NamedTuple, Protocol

THREADS: Final = 4
"""More files than one are synced faster side by side: 8 files take 0.8 ms on 1 thread, 0.44 ms on
4."""


Tag = tuple[Any, ...]


class Done(NamedTuple):
    """The outcome of a job. failure: what it raised, or None."""

    tag: Tag
    failure: Exception | None
    took_ns: int


class Threads(Protocol):
    """Runs jobs that block: `Flusher`, or a test that decides when they end."""

    def submit(self, tag: Tag, job: Callable[[], None]) -> None:
        """Run `job` somewhere else."""
        ...

    def take_ended(self) -> list[Done]:
        """Jobs that ended since the last call."""
        ...

    def outstanding(self) -> int:
        """Jobs submitted and not taken."""
        ...

    def wait(self) -> None:
        """Return when there is something to take."""
        ...


def run(tag: Tag, job: Callable[[], None]) -> Done:
    """Do a job here and now."""
    failure: Exception | None = None
    began = monotonic_ns()
    try:
        job()
    except Exception as error:  # carried to the loop's thread, which decides
        failure = error
    return Done(tag, failure, monotonic_ns() - began)


class Flusher:
    """A pool of at most `most` threads, started as they are needed."""

    __slots__ = ("_bell", "_done", "_jobs", "_most", "_outstanding", "_threads", "fd")

    def __init__(self, most: int = THREADS) -> None:
        self._most = most
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._bell = select.poll()
        self._bell.register(self.fd, select.POLLIN)
        self._jobs: SimpleQueue[tuple[Tag, Callable[[], None]] | None] = SimpleQueue()
        self._done: deque[Done] = deque()
        self._threads: list[Thread] = []
        self._outstanding = 0

    def submit(self, tag: Tag, job: Callable[[], None]) -> None:
        """Run `job` on a thread, or here where none can be started; `take` returns `tag` when it
        ended."""
        self._outstanding += 1
        if self._outstanding > len(self._threads) < self._most:
            self._start_thread()
        if self._threads:
            self._jobs.put((tag, job))
        else:
            self._done.append(run(tag, job))
            os.eventfd_write(self.fd, 1)

    def _start_thread(self) -> None:
        thread = Thread(target=self._work, name=f"sync-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the host has no room for one more (EAGAIN of clone)
            return
        self._threads.append(thread)

    def take_ended(self) -> list[Done]:
        """Every job that ended since the last call."""
        done = self._done
        if not done:
            return []
        taken = [done.popleft() for _ in range(len(done))]
        self._outstanding -= len(taken)
        return taken

    def outstanding(self) -> int:
        """Jobs submitted and not yet taken."""
        return self._outstanding

    def wait(self) -> None:
        """Return when a job has ended; at once when none is under way."""
        while not self._done and self._outstanding:
            self._bell.poll()  # select knows no descriptor above 1,023
            self.hush()

    def ready(self, mask: int) -> None:
        """A job ended: the bell is taken away, the turn that follows takes the result."""
        self.hush()

    def hush(self) -> None:
        """Take the bell away; called when `fd` is readable."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.fd)

    def threads(self) -> int:
        """How many threads were needed so far."""
        return len(self._threads)

    def close(self) -> None:
        """End the threads once their jobs have ended; waits for them."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        os.close(self.fd)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            self._done.append(run(*item))
            os.eventfd_write(self.fd, 1)
