"""The demo's jobs: copies of the job files beside the data, and the runner that keeps them running.

Everything is done as a person would do it: job files in a folder, jobs added to the runner's
folder, their states read from there. Only this file of the demo knows about jobs and Java.
"""

import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from console.model.asking.failure import Failure
from console.show.output import print_note
from penstock import tied
from penstock.local import OURSELVES, environment

FIRST: Final = ("totals", "delays")
"""Started at once: what they derive is seen first."""
THEN: Final = ("cancelled", "enriched", "weather")
BATCHES: Final = ("to_parquet", "from_parquet")
"""One after the other, when everything is written."""
_STOP_S: Final = 60.0


def unavailable() -> str | None:
    """Why the jobs cannot run here, with the remedy; None when they can. Fetches what is
    missing and can be fetched."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed; pip install '.[demo]' in a checkout does it"
    from spark_local.engine import java

    if reason := java.unavailable():
        return f"{reason}; {java.REMEDY}"
    return _connector()


def _connector() -> str | None:
    """Fetch the jars of Spark's Kafka connector unless they are here: why not, None when they are
    afterwards."""
    from spark_local.cause import JobError
    from spark_local.engine import jars

    if not jars.found():
        print_note("Fetching the jars of Spark's Kafka connector: once, some seconds.")
        try:
            jars.fetch()
        except JobError as problem:
            return str(problem)
    return None


class Jobs:
    """A runner as a child process, for the jobs of one folder."""

    def __init__(self, data: Path, bootstrap: str, *, outlives: bool = False) -> None:
        """The runner's folder lies in `data`, that of the appliance; the job files beside it.
        outlives: the runner goes on when this process has ended."""
        from spark_local.folder import Folder

        self.files = data.parent / f"{data.name}-jobs"
        self.folder = Folder(data / "jobs")
        self.log_file = self.files / "runner.log"
        self._bootstrap = bootstrap
        self._outlives = outlives
        self._process: subprocess.Popen[bytes] | None = None

    def start_runner(self) -> None:
        """Start the runner. It needs seconds until it runs the first job."""
        import spark_local

        assert spark_local.__file__
        examples = Path(spark_local.__file__).parent / "jobs"
        if self.files.exists():
            hint = "the demo needs an empty folder: choose another with --data"
            raise Failure(f"{self.files} exists already", hint)
        self.files.mkdir(parents=True)
        for file in (*examples.glob("*.toml"), *examples.glob("*.py")):
            shutil.copy2(file, self.files)
        self.folder.path.mkdir(exist_ok=True)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                env=environment() | ({} if self._outlives else tied.environment()),
            )  # fmt: skip

    def command(self) -> list[str]:
        """The command that `start` runs."""
        words = ["job", "serve", "--jobs", str(self.folder.path), "-b", self._bootstrap]
        return [*OURSELVES, *words]

    @property
    def pid(self) -> int:
        """The process id of the runner."""
        assert self._process is not None
        return self._process.pid

    def add(self, *names: str) -> None:
        """Hand jobs to the runner, which starts them."""
        from spark_local.jobfile import load

        for name in names:
            self.folder.add(load(self.files / f"{name}.toml"))

    def states(self) -> dict[str, dict[str, Any]]:
        """Job → what the runner last said of it. Raises Failure when the runner has died."""
        if self._process is not None and self._process.poll() is not None:
            said = self.log_file.read_text(errors="replace").strip()
            raise Failure(
                f"the runner of the jobs ended with {self._process.returncode}: {said[-1500:]}",
                "what it did before is above",
            )
        return {job.name: job.state() for job in self.folder.jobs()}

    def close(self) -> None:
        """End the runner in order; after a minute without."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
