"""The threads of control."""

from collections.abc import Callable
from typing import Protocol

from appliance.shell.flusher import Done, Tag


class InterruptibleThreads(Protocol):
    """Runs jobs that block: `Flusher`, or a test that decides when they end. take: those that
    ended since. hush: somebody looks."""

    def submit(self, tag: Tag, job: Callable[[], None]) -> None:
        """Run `job` somewhere else."""
        ...

    def take_ended(self) -> list[Done]: ...

    def hush(self) -> None: ...
