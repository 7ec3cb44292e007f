"""Reads of the metadata log that fail for a while: no descriptor or memory was left, or a disk
refused one.

They are tried again after a pause, while requests that need the metadata wait. A read that fails
for longer ends the process. Called by netprocs and I/O processes where they follow the log.
"""

from time import monotonic_ns
from typing import Final

from appliance.base.errors import StorageFailed
from appliance.shell.log import ERROR, NOTICE, Log

_PAUSE_NS: Final = 20_000_000
LIMIT_NS: Final = 10_000_000_000


class ReadRetries:
    """One file's failing reads. due_ns: when to try again, 0: now."""

    __slots__ = ("_log", "_since_ns", "due_ns")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._since_ns = 0  # of the first one that failed
        self.due_ns = 0

    def is_due(self) -> bool:
        """True if the file is to be read now."""
        return not self.due_ns or monotonic_ns() >= self.due_ns

    def on_failure(self, failure: StorageFailed) -> None:
        """Plans the next try. Raises `failure` after ten seconds of it."""
        now_ns = monotonic_ns()
        if not self._since_ns:
            self._since_ns = now_ns
            self._log.event(ERROR, "metadata-not-read", cause=failure, action="try-again")
        elif now_ns - self._since_ns >= LIMIT_NS:
            raise failure
        self.due_ns = now_ns + _PAUSE_NS

    def on_success(self) -> None:
        """Forgets the failures."""
        if self._since_ns:
            self._log.event(NOTICE, "metadata-read")
            self._since_ns = self.due_ns = 0
