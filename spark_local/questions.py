"""Questions to the runner of a jobs folder, and its answers: files in `.runner/asked`, of the user
who may write there. Imports nothing of Spark's.

ID.json is asked, ID.taken is being answered, ID.answer has the answer. Whoever asked removes all of
them, so a question that is gone needs no answer.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from spark_local.cause import JobError
from spark_local.folder import Folder, read_json, write_json

_PACE_S: Final = 0.05


def ask_runner(folder: Folder, question: dict[str, Any]) -> dict[str, Any] | None:
    """The runner's answer; None where there is no runner, or none that can be asked. Waits while
    the runner lives."""
    place, name = _place(folder), f"{os.getpid()}-{time.monotonic_ns()}"
    if folder.read_only or not folder.runner_pid():
        return None
    files = [place / f"{name}.{kind}" for kind in ("json", "taken", "answer")]
    try:
        write_json(files[0], question)
    except OSError:  # a runner of somebody else's, or one that takes no questions
        return None
    try:
        while not files[2].exists():
            if not folder.runner_pid():
                return None
            time.sleep(_PACE_S)
        return read_json(files[2])
    finally:
        for file in files:
            file.unlink(missing_ok=True)


class Questions:
    """The runner's side."""

    def __init__(self, folder: Folder) -> None:
        self._place = _place(folder)

    def clear_questions(self) -> None:
        """Before the first: those of a former runner get no answer."""
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir(parents=True)

    def take_questions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(id, question) of each that is new."""
        for file in sorted(self._place.glob("*.json")):
            taken = file.with_suffix(".taken")
            try:
                file.rename(taken)
                yield file.stem, read_json(taken)
            except (OSError, JobError):  # taken back
                continue

    def answer_question(self, name: str, content: dict[str, Any]) -> None:
        """Answers one, unless nobody waits for it any more."""
        if (self._place / f"{name}.taken").exists():
            write_json(self._place / f"{name}.answer", content)


def _place(folder: Folder) -> Path:
    return folder.runner / "asked"
