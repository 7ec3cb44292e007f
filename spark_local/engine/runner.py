"""The runner: one Spark driver for all jobs of a folder. It makes what is so what the wishes say.

Called by `penstock job serve`. The driver's JVM starts with the first job. When the JVM dies, the
process begins again as itself, and the jobs go on from their checkpoints.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from spark_local.board import ENDED, Board
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import session
from spark_local.engine.answering import Answering
from spark_local.engine.causes import trace, translate
from spark_local.engine.clients import CLIENTS
from spark_local.engine.jars import need_jars
from spark_local.engine.java import need_java
from spark_local.engine.jobthread import JobThread
from spark_local.folder import REMOVED, RUNNING, Folder, JobFolder, Wish
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S: Final = 0.5
END_LIMIT_S: Final = 75.0
TELL_AGAIN_S: Final = 3600.0


class Runner:
    """Runs the jobs of one folder."""

    def __init__(
        self,
        folder: Folder,
        kafka: ClientSettings,
        master: str,
        memory: str,
        settings_of: Callable[[Job], ClientSettings] | None = None,
    ) -> None:
        """kafka: where states of jobs are published, and what jobs without settings of their own
        use. settings_of: of one job; raises JobError."""
        self._folder = folder
        self._settings_of = settings_of or (lambda _: kafka)
        self._master = master
        self._memory = memory
        self._states = _Told(kafka)
        self._spark: SparkSession | None = None
        self._running: dict[str, tuple[JobThread, Wish]] = {}
        self._done: dict[str, int] = {}
        self._ending = threading.Event()
        self._told_at = time.monotonic()
        self._answering: Answering | None = None

    def run(self, ready: threading.Event | None = None) -> None:
        """Until SIGTERM or SIGINT; every job then ends after its batch. Raises JobError when it
        cannot work at all."""
        need_java()
        need_jars()
        with self._folder.locked():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._signalled)
            self.take_questions()
            try:
                while not self._ending.is_set():
                    self.apply_wishes()
                    if ready is not None:
                        ready.set()
                    self._ending.wait(LOOK_S)
                    if self._spark is not None and not _alive(self._spark):
                        self._begin_again()
            finally:
                self.end_jobs()

    def apply_wishes(self) -> None:
        """Compare wishes with what is so."""
        self._tell_again()
        if self._answering is not None:
            self._answering.answer_all()
        for place in self._folder.jobs():
            wish = place.read_wish()
            thread, acted = self._running.get(place.name, (None, None))
            if thread is not None and not thread.is_alive():
                del self._running[place.name]
                assert acted is not None
                self._done[place.name] = acted.number
                thread = None
            if thread is not None:
                if acted != wish:
                    thread.stop()
            elif self._done.get(place.name) != wish.number:
                self._act(place, wish)

    def take_questions(self) -> None:
        """From now on `apply_wishes` answers questions, too."""
        self._answering = Answering(self._folder, self._settings_of, self._session, self._master)

    def _session(self) -> "SparkSession":
        if self._spark is None:
            runner = self._folder.runner
            self._spark = session.start_session(self._master, runner, memory=self._memory)
        return self._spark

    def end_jobs(self) -> None:
        """Every job ends after its batch, then Spark."""
        for thread, _ in self._running.values():
            thread.stop()
        for thread, _ in self._running.values():
            thread.join(END_LIMIT_S)
        self._running.clear()
        if self._spark is not None:
            session.end_session(self._spark)
            self._spark = None
        CLIENTS.close()

    def _tell_again(self) -> None:
        """The topic of states forgets after a day; a job that rests is told again before."""
        if time.monotonic() - self._told_at > TELL_AGAIN_S:
            self._told_at = time.monotonic()
            for place in self._folder.jobs():
                if place.name not in self._running and (told := place.state()):
                    self._states.write_state(place.name, told)

    def _act(self, place: JobFolder, wish: Wish) -> None:
        if wish.state == REMOVED:
            self._folder.drop(place.name)
            self._states.write_state(place.name, None)
            return
        told = place.state()
        board = Board(place, self._states, wish.number)
        same = told.get("wish") == wish.number
        if wish.state != RUNNING or (same and told.get("state") == "finished"):
            self._done[place.name] = wish.number
            if not same or told.get("state") not in ENDED:
                board.set("stopped")
            return
        try:
            self._begin(place, wish, board)
        except Exception as problem:  # one job's trouble is its own
            self._done[place.name] = wish.number
            cause = translate(problem, place.name)
            board.broke(cause, trace(problem))
            board.set("failed", cause)

    def _begin(self, place: JobFolder, wish: Wish, board: Board) -> None:
        job = place.job()
        if job.master not in (None, self._master):
            remedy = f"penstock job serve --master {job.master} runs it"
            raise JobError(f"it wants {job.master}, and this runner has {self._master}", remedy)
        kafka = self._settings_of(job)
        board.describe(job, self._master)
        thread = JobThread(self._session(), job, place, kafka, board)
        self._running[place.name] = (thread, wish)
        thread.start_thread()

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._ending.set()

    def _begin_again(self) -> None:
        """The JVM is gone, and PySpark cannot start a second one in the same process."""
        cause = JobError("Spark's JVM died", "the runner starts another one", final=False)
        for name, (_, wish) in self._running.items():
            with suppress(OSError):  # a full disk is no reason not to begin again
                Board(self._folder.at(name), self._states, wish.number).set("failing", cause)
        CLIENTS.close()
        self._ending.wait(1.0)
        if not self._ending.is_set():
            sys.stderr.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class _Told:
    """States of jobs for everybody, in the topic of states."""

    def __init__(self, kafka: ClientSettings) -> None:
        self._kafka = kafka

    def write_state(self, job: str, state: dict[str, Any] | None) -> None:
        """None: the job is no more."""
        CLIENTS.write_state(self._kafka, job, state)


def _alive(spark: "SparkSession") -> bool:
    """True if the JVM of the driver lives."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return process is None or process.poll() is None
