"""Logs that are opened on threads ahead of who takes them, at a start behind an end without order.

Each opening then waits five or six times for the disk, one log after the other; side by side their
syncs share the commits of the file system's journal. Called by `partition_opener.py`.
"""

from collections.abc import Callable
from typing import Final

from appliance.ioproc.lifecycle.opened_partition import OpenedPartition
from appliance.shell.flusher import Flusher

SIDE_BY_SIDE: Final = 16
"""One commit of the file system's journal serves so many; more of them wait for the interpreter."""

Key = tuple[bytes, int]
"""Topic id, partition."""
Job = Callable[[], OpenedPartition | None]


class OpeningAhead:
    """Invariant: a log that was begun is taken once, or let go at the end. All methods are called
    by one thread; jobs touch nothing but the files of their partition."""

    __slots__ = ("_begun", "_ended", "_opened", "_threads")

    def __init__(self, threads: int = SIDE_BY_SIDE) -> None:
        self._threads = Flusher(threads)
        self._begun: set[Key] = set()
        self._ended: dict[Key, Exception | None] = {}
        self._opened: dict[Key, OpenedPartition | None] = {}

    def begin_opening(self, key: Key, job: Job) -> None:
        """Open this one on a thread."""

        def run() -> None:
            self._opened[key] = job()

        self._begun.add(key)
        self._threads.submit(key, run)

    def take_opened(self, key: Key) -> OpenedPartition | None:
        """Waits for one that was begun. Returns None where it was not, or is not to be opened
        ahead. Raises what its job raised."""
        if key not in self._begun:
            return None
        self._begun.remove(key)
        while key not in self._ended:
            self._threads.wait()
            for done in self._threads.take_ended():
                topic_id, index = done.tag
                self._ended[topic_id, index] = done.failure
        failure = self._ended.pop(key)
        if failure is not None:
            raise failure
        return self._opened.pop(key)

    def end_threads(self) -> None:
        """End the threads, and let go of what nobody took."""
        self._threads.close()
        for one in self._opened.values():
            if one is not None:
                one.log.let_go()
        self._opened.clear()
