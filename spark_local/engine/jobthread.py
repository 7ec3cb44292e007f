"""One job from its start to its end: attempts, the waits between them, and when to give up.

A thread of its own for each job, so that none waits for another.
"""

import threading
import time
import traceback
from typing import TYPE_CHECKING, Final

from spark_local.board import Board, now_ms
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import session
from spark_local.engine.attempt import Attempt
from spark_local.engine.causes import trace, translate
from spark_local.engine.registered import NewSchemas
from spark_local.folder import JobFolder
from spark_local.job import Job, Restart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAUSE_S: Final = 1.0


class Patience:
    """Counts failures: how long to wait after one, or that it is enough. Pure: time comes in."""

    def __init__(self, policy: Restart) -> None:
        self._policy = policy
        self.failures = 0

    def failed(self, ran_ms: int, *, counted: bool) -> int | None:
        """Milliseconds to wait after an attempt that lasted `ran_ms`, None to give up. counted:
        whether it is one of those that have a limit."""
        if ran_ms >= self._policy.healthy_ms:
            self.failures = 0
        self.failures += 1
        if counted and self.failures > self._policy.attempts:
            return None
        doubled = self._policy.first_ms << min(self.failures - 1, 30)
        return min(doubled, self._policy.longest_ms)


class JobThread:
    """Runs `job` until it ends by itself, fails for good, or is stopped."""

    def __init__(
        self, root: "SparkSession", job: Job, place: JobFolder, kafka: ClientSettings, board: Board
    ) -> None:
        self._thread = threading.Thread(target=self._run, name=job.name, daemon=True)
        self._root = root
        self._job = job
        self._place = place
        self._kafka = kafka
        self._board = board
        self._stopped = threading.Event()
        self._attempt: Attempt | None = None
        self.cause: JobError | None = None

    def start_thread(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, limit_s: float) -> None:
        """Wait until it has ended, `limit_s` at most."""
        self._thread.join(limit_s)

    def stop(self) -> None:
        """Ask it to end; `join` waits for it."""
        self._stopped.set()
        if self._attempt is not None:
            self._attempt.stop()

    def _run(self) -> None:
        patience = Patience(self._job.restart)
        goes_on = True
        while goes_on and not self._stopped.is_set():
            try:
                goes_on = self._try(patience)
            except Exception:  # its state cannot be written, for example: the thread goes on
                traceback.print_exc()
                self._stopped.wait(_PAUSE_S)
        if self._stopped.is_set():
            self._board.set("stopped")

    def _try(self, patience: Patience) -> bool:
        """One attempt: whether there is to be another one."""
        self._board.attempt(patience.failures + 1)
        began = time.monotonic()
        try:
            self._attempt = Attempt(self._root, self._job, self._place, self._kafka, self._board)
            if self._stopped.is_set():
                return False
            self._attempt.run()
        except NewSchemas as told:  # it is as well as before, and reads on
            self._board.log(str(told))
            return True
        except Exception as problem:  # a job's failure is told, and ends no other job
            if self._stopped.is_set():
                return False
            return self._again(problem, patience, time.monotonic() - began)
        if not self._stopped.is_set():
            self._board.set("finished")
        return False

    def _cause(self, problem: Exception) -> JobError:
        if session.died(self._root):  # what failed is a call to it, which says nothing more
            return JobError("Spark's JVM died", "the runner starts another one", final=False)
        self._board.log("".join(traceback.format_exception_only(problem))[:4000])
        cause = translate(problem, self._job.name)
        self._board.broke(cause, trace(problem))
        return cause

    def _again(self, problem: Exception, patience: Patience, ran_s: float) -> bool:
        """Wait for the next attempt: whether there is to be one."""
        self.cause = cause = self._cause(problem)
        delay = None if cause.final else patience.failed(int(ran_s * 1000), counted=not cause.waits)
        if delay is None:
            self._board.set("failed", cause)
            return False
        state = "waiting" if cause.waits else "failing"
        self._board.set(state, cause, next_attempt=now_ms() + delay)
        self._stopped.wait(delay / 1000)
        return True
