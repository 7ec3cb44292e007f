"""The start of an I/O process: its logs are opened on a thread, which takes as long as they are
large.

The thread has core and logs for itself until it ends, so that the loop beats and lets go of dead
peers. Invariant: nothing is asked of the core before everything is open (`main.py` holds it).
"""

from typing import Final

from appliance.base.clock import OsClock
from appliance.ioproc.lifecycle.partition_manager import PartitionManager
from appliance.ioproc.metadata_replay import CoordinatorFollowing
from appliance.shell.flusher import Flusher
from appliance.shell.log import INFO, Log

_SAY_NS: Final = 1_000_000_000


class Starting:
    """One start. begun: whether logs are being opened, or are open."""

    __slots__ = ("_began_ns", "_clock", "_events", "_following", "_home", "_said_ns", "_thread",
                 "begun")  # fmt: skip

    def __init__(
        self,
        home: PartitionManager,
        following: CoordinatorFollowing,
        thread: Flusher,
        events: Log,
        clock: OsClock,
    ) -> None:
        self._home = home
        self._following = following
        self._thread = thread
        self._events = events
        self._clock = clock
        self.begun = False
        self._began_ns = self._said_ns = clock.monotonic_ns()

    def open_slice(self, now_ns: int) -> bool:
        """True once everything is open. Raises what prevented it."""
        if not self.begun:
            self.begun = True
            self._began_ns = self._said_ns = now_ns  # control may have had to wait for others
            self._thread.submit((), self._open_everything)
        done = self._thread.take_ended()
        if not done:
            self._say_progress(now_ns)
            return False
        if done[0].failure is not None:
            raise done[0].failure
        took_ms = (self._clock.monotonic_ns() - self._began_ns) // 1_000_000
        if self._home.total:
            self._events.event(INFO, "logs-open", partitions=self._home.total, ms=took_ms)
        return True

    def _open_everything(self) -> None:
        self._following.replay_committed()
        self._home.open_all(self._clock.monotonic_ns(), self._clock.wall_ms())

    def _say_progress(self, now_ns: int) -> None:
        if now_ns - self._said_ns >= _SAY_NS:
            self._said_ns = now_ns
            self._events.event(
                INFO, "opening-logs", opened=self._home.opened, partitions=self._home.total
            )
