"""A process beside the fleet: it has no ring and no place in the process table, and nobody waits
for it. It is forked, watched and started again as the others are, later and later when it goes on
dying, and its death concerns nobody. It serves until the very end, when it is killed: there is
nothing to flush."""

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from appliance.shell.log import ERROR, WARNING, Log
from appliance.supervisor.child import fork_context, leave_the_parent, reaped, stop
from appliance.supervisor.restart import RestartPolicy

_REST_NS: Final = 10_000_000_000
"""Who died too often is tried again after that."""


class Aside:
    """name: for the log. entry: what the process runs, its exit code. pidfd: -1 while there is no
    process."""

    def __init__(
        self, name: str, entry: Callable[[], int], policy: RestartPolicy, log: Log
    ) -> None:
        self._name = name
        self._entry = entry
        self._policy = policy
        self._log = log
        self._process: Any = None
        self._start_at = 0
        self.pidfd = -1

    def step(self, now_ns: int) -> int | None:
        """Start it when it is time. When (ns) to come again, None: nothing is planned."""
        if self._process is not None:
            return None
        if now_ns < self._start_at:
            return self._start_at
        process = fork_context.Process(
            target=_run, args=(self._entry, os.getpid()), name=self._name
        )
        try:
            process.start()
        except OSError as refused:
            self._log.event(ERROR, "fork-refused", child=self._name, cause=str(refused))
            self._plan(now_ns, "fork refused")
            return self._start_at
        self._process = process
        self.pidfd = os.pidfd_open(process.pid)
        return None

    def died(self, now_ns: int) -> None:
        """Its pidfd says that it is dead."""
        self._plan(now_ns, self._reap())

    def kill_process(self) -> None:
        """At once; returns when it is dead."""
        if self._process is not None:
            stop(self.pidfd)
            self._reap()

    def _reap(self) -> str:
        how, _ = reaped(self._process)
        self._process = None
        os.close(self.pidfd)
        self.pidfd = -1
        return how

    def _plan(self, now_ns: int, cause: str) -> None:
        start_at = self._policy.died(now_ns)
        self._start_at = now_ns + _REST_NS if start_at is None else start_at
        wait_ms = (self._start_at - now_ns) // 1_000_000
        self._log.event(WARNING, "child-died", child=self._name, cause=cause, restart_in_ms=wait_ms)


def _run(entry: Callable[[], int], parent: int) -> None:
    leave_the_parent(parent, name="penstock-export", oom_score=500)
    try:
        code = entry()
    except BaseException:
        with suppress(OSError):
            os.write(2, traceback.format_exc().encode())
        code = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
