"""Reads of the metadata log that fail for a while: no descriptor or memory was left, a disk refused
one, or what it gave is damaged.

They are tried again after a pause, while requests that need the metadata wait. A read that fails
for longer ends the process. Called by netprocs and I/O processes where they follow the log.
"""

from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from appliance.base.errors import StorageFailed
from appliance.metadata.changes import Change
from appliance.metadata.follower import MetadataUnreadable
from appliance.shell.log import ERROR, NOTICE, Log

_PAUSE_NS: Final = 20_000_000
LIMIT_NS: Final = 10_000_000_000


class ReadRetries:
    """The failing reads of one file."""

    __slots__ = ("_due_ns", "_log", "_since_ns")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._since_ns = 0  # of the first one that failed
        self._due_ns = 0  # of the next try, 0: now

    def attempt(
        self, read: Callable[[int], list[Change] | None], committed: int
    ) -> list[Change] | None:
        """Returns what `read` gives for this committed offset, None while it fails or rests. Raises
        its exception after ten seconds of failures."""
        if self._due_ns and monotonic_ns() < self._due_ns:
            return None
        try:
            changes = read(committed)
        except (StorageFailed, MetadataUnreadable) as failure:
            self._plan_retry(failure)
            return None
        if self._since_ns:
            self._log.event(NOTICE, "metadata-read")
            self._since_ns = self._due_ns = 0
        return changes

    def _plan_retry(self, failure: StorageFailed | MetadataUnreadable) -> None:
        now_ns = monotonic_ns()
        if not self._since_ns:
            self._since_ns = now_ns
            self._log.event(ERROR, "metadata-not-read", cause=failure, action="try-again")
        elif now_ns - self._since_ns >= LIMIT_NS:
            raise failure
        self._due_ns = now_ns + _PAUSE_NS
