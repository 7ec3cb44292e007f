"""Previews that the runner makes for others, in its own JVM: a session of its own for each, on a
thread of its own, in a pool of its own.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.client_settings import ClientSettings
from spark_local.engine import look
from spark_local.engine.causes import translate
from spark_local.folder import Folder
from spark_local.job import Job
from spark_local.jobfile import load
from spark_local.mistakes import JobFileError
from spark_local.questions import Questions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POOL: Final = "previews"
UNABLE: Final[dict[str, Any]] = {"unable": True}
"""The answer for a job that this runner cannot look at: the asker does it itself."""


class Answering:
    """`answer_all` belongs to the runner's thread."""

    def __init__(
        self,
        folder: Folder,
        settings_of: Callable[[Job], ClientSettings],
        session: Callable[[], "SparkSession"],
        master: str,
    ) -> None:
        """session: the runner's, which begins with the first who asks for it."""
        self._questions = Questions(folder)
        self._folder = folder
        self._settings_of = settings_of
        self._session = session
        self._master = master
        self._questions.clear_questions()

    def answer_all(self) -> None:
        """Begins to answer what is asked."""
        for name, question in self._questions.take_questions():
            job = self._job(question)
            if job is None:
                self._questions.answer_question(name, UNABLE)
                continue
            words = (name, job, self._session(), question)
            threading.Thread(target=self._answer, args=words, daemon=True).start()

    def _job(self, question: dict[str, Any]) -> Job | None:
        """The job of a question; None where this runner does not run it."""
        try:
            job = load(question["file"], Path(question["base"]))
        except JobFileError:  # whoever asks could read it; a runner of another user may not
            return None
        return job if job.master in (None, self._master) else None

    def _answer(self, name: str, job: Job, spark: "SparkSession", question: dict[str, Any]) -> None:
        try:
            spark.sparkContext.setLocalProperty("spark.scheduler.pool", _POOL)
            place = self._folder.runner / "asked" / f"{name}.settings"
            place.mkdir(mode=0o700)
            try:
                kafka = self._settings_of(job)
                if kafka.bootstrap != question["bootstrap"]:
                    answer = UNABLE
                else:
                    rows, last = int(question["rows"]), int(question["last"])
                    kafka = kafka.written(place)
                    answer = look.preview(spark, job, kafka, rows=rows, last=last).as_json()
            finally:
                for file in place.iterdir():
                    file.unlink()
                place.rmdir()
        except Exception as problem:  # the asker's, not the runner's
            cause = translate(problem, job.name)
            answer = {"problem": cause.problem, "remedy": cause.remedy}
        self._questions.answer_question(name, answer)
