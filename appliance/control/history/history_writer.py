"""Control keeps the history of the appliance: it looks once a second, and a thread writes.

A look takes well under a ms where little happens (`history/sampler.py`), and nobody is asked. What
writes may wait for the disk, so it is the thread that opens, reads and writes the file. Invariant:
one job is under way at a time; what comes meanwhile waits, at most a minute of it; whatever fails
costs samples and nothing else. Called by control once a turn.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from appliance.base import proc
from appliance.base.clock import Clock
from appliance.base.disk import Disk
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.ids import TopicId
from appliance.history.recorder import Recorder
from appliance.history.sampler import Outside, SampledTables, Sampler
from appliance.history.samples import HistorySample
from appliance.shell.flusher import Done, Threads
from appliance.shell.log import WARNING, Log
from appliance.shell.seat import Seat

_EVERY_NS: Final = 1_000_000_000
_REST_NS: Final = 60_000_000_000
"""A disk that fails is left alone for so long; one that is full is not: what is overwritten takes
no room."""
_MOST_WAITING: Final = 60


class Keeper:
    """name_of: a topic's name by its id, "" when it is no more. folder: where the file lies.
    threads: `Flusher` of one thread."""

    def __init__(
        self,
        seat: Seat,
        disk: Disk,
        clock: Clock,
        name_of: Callable[[TopicId], str],
        threads: Threads,
        log: Log,
    ) -> None:
        tables = SampledTables(
            seat.processes, seat.partitions, seat.counters, seat.clients, seat.lags
        )
        outside = Outside(name_of, proc.cpu_s, proc.pss_kib, partial(_disks, disk, seat.log_dirs))
        self._disk = disk
        self._folder = seat.data_dir
        self._clock = clock
        self._threads = threads
        self._log = log
        now_ns = clock.monotonic_ns()
        self._sampler = Sampler(tables, outside, clock.wall_ms(), now_ns // 1_000_000)
        self._recorder: Recorder | None = None  # the thread's own
        self._waiting: list[HistorySample] = []
        self._next_ns = now_ns + _EVERY_NS
        self._rest_until_ns = 0
        self._failing = False

    def keep_due(self, now_ns: int) -> None:
        """Look when it is time, and give the thread what there is to write."""
        for done in self._threads.take_ended():
            self._wrote(done, now_ns)
        if now_ns >= self._next_ns:
            self._next_ns = max(self._next_ns + _EVERY_NS, now_ns)
            self._look(now_ns, last=False)
        if self._waiting and now_ns >= self._rest_until_ns and not self._threads.outstanding():
            self._submit()

    def close(self) -> None:
        """The orderly end: what there is of this minute is written, too."""
        self._look(self._clock.monotonic_ns(), last=True)
        self._wait()
        self._submit()
        self._wait()

    def _wait(self) -> None:
        while self._threads.outstanding():
            self._threads.wait()
            self._threads.take_ended()

    def _look(self, now_ns: int, *, last: bool) -> None:
        wall_ms = self._clock.wall_ms()
        self._waiting += self._sampler.take_samples(wall_ms, now_ns // 1_000_000, last=last)
        del self._waiting[:-_MOST_WAITING]

    def _submit(self) -> None:
        steps, self._waiting = self._waiting, []
        self._threads.submit((), partial(self._write, steps))

    def _write(self, steps: Sequence[HistorySample]) -> None:
        """On the thread."""
        try:
            if self._recorder is None:
                self._recorder = Recorder(self._disk, self._folder)
            for step in steps:
                self._recorder.write_sample(step)
        except DiskFull:
            raise
        except StorageFailed:
            if self._recorder is not None:
                self._recorder.close()
                self._recorder = None
            raise

    def _wrote(self, done: Done, now_ns: int) -> None:
        failure = done.failure
        if failure is not None and not isinstance(failure, StorageFailed):
            raise failure
        if failure is not None:
            if not self._failing:
                self._log.event(WARNING, "history-not-kept", cause=str(failure))
            if not isinstance(failure, DiskFull):
                self._rest_until_ns = now_ns + _REST_NS
        self._failing = failure is not None


def _disks(disk: Disk, folders: Sequence[str]) -> list[tuple[int, int]]:
    found = []
    for folder in folders:
        try:
            space = disk.space(folder)
            found.append((space.total, space.free))
        except StorageFailed:
            found.append((0, 0))
    return found
