"""Previews the rows of a job without running it: `penstock job preview` as a child process, so that
the caller needs no Spark of its own. Writes nothing.
"""

import json
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.failure import Failure
from penstock import tied
from penstock.local import OURSELVES, environment
from spark_local.client_settings import escaped

ROWS: Final = 200
_JVM: Final = ("WARNING", "Picked up", "Setting default log level", "To adjust logging", "Using")
"""How lines begin that the JVM writes to stderr on its own behalf."""


@dataclass(slots=True, frozen=True)
class Preview:
    """rows: what would be derived of the last records of its sources, ROWS at most. said: what the
    command says of them: columns with their kinds, inferred schemas, what was not read."""

    rows: list[dict[str, Any]]
    said: list[str]


class Previews:
    """The previews that run. `close` ends them."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def preview_job(self, job: str, folder: str, properties: Mapping[str, str]) -> Preview:
        """job: a file, or a name in the jobs folder. properties: librdkafka's, of the broker. Takes
        as long as Spark takes to begin. Raises Failure: what is missing, or what is wrong with the
        job."""
        with tempfile.NamedTemporaryFile("w", prefix="penstock-preview-", encoding="ascii") as file:
            file.writelines(f"{key}={escaped(text)}\n" for key, text in properties.items())
            file.flush()
            words = ["job", "preview", "-n", str(ROWS), "-o", "json", "--command-config", file.name]
            words += ["--jobs", folder] if folder else []
            return self._run([*words, "--", job])

    def _run(self, words: list[str]) -> Preview:
        with self._lock:
            if self._closed:
                raise Failure("the console is closing", name="CANCELLED")
            process = subprocess.Popen(
                [*OURSELVES, *words], stdin=subprocess.DEVNULL, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment() | tied.environment(),
            )  # fmt: skip
            self._running.add(process)
        try:
            out, err = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
        return read(out, err, process.returncode)

    def close(self) -> None:
        """End those that run, in order: Spark takes its temporary files along."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.terminate()


def read(out: str, err: str, code: int) -> Preview:
    """The command's output as a Preview. Raises Failure."""
    lines = [line for line in err.splitlines() if line.strip() and not line.startswith(_JVM)]
    try:
        told = json.loads(out) if out.strip() else []
    except ValueError:
        told = None
    if isinstance(told, dict) and isinstance(error := told.get("error"), dict):
        raise Failure(str(error.get("message")), str(error.get("hint") or ""), name="JOB")
    if code or not isinstance(told, list):
        last = lines[-1] if lines else f"it ended with {code}"
        raise Failure(f"the preview failed: {last}", name="JOB")
    return Preview([row for row in told if isinstance(row, dict)], lines)
