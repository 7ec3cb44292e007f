"""The jobs folder: what jobs there are, what each should be doing, and what it did.

    <folder>/<name>/job/        the job file and its Python file, as they were added
    <folder>/<name>/wish.json   what the operator wants: running or stopped, and a number that grows
    <folder>/<name>/state.json  what the runner last made of it, and which wish that was
    <folder>/<name>/checkpoint  Spark's; with schemas.json, dead.json, delivery.json and
                                topics.json all that `forget` deletes
    <folder>/<name>/job.log     what happened, one line each
    <folder>/<name>/error.json  the last failure, with its trace
    <folder>/.runner/           the runner's lock, temporary files and Spark's log

The command line writes wishes, the runner writes everything else. A file is replaced in one step,
so a reader sees the old one or the new one. Why files: docs/decisions.
"""

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spark_local.cause import JobError
from spark_local.job import Job
from spark_local.jobfile import load

RUNNING: Final = "running"
STOPPED: Final = "stopped"
REMOVED: Final = "removed"
_READ_ONLY: Final = "the console runs with --read-only"
_FORGOTTEN: Final = (
    "checkpoint", "schemas.json", "registry.json", "dead.json", "delivery.json", "topics.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wish:
    """The desired state of a job. `number` grows with every change."""

    state: str
    number: int


class JobFolder:
    """One job's part of the folder."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.name = path.name
        self.read_only = read_only

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def log_file(self) -> Path:
        return self.path / "job.log"

    def job(self) -> Job:
        """The job of its file. Raises JobFileError."""
        place = self.path / "job"
        return load(place / f"{self.name}.toml", Path((place / "origin").read_text().strip()))

    def read_wish(self) -> Wish:
        """Stopped, with number 0, when nobody has said anything."""
        found = read_json(self.path / "wish.json")
        return Wish(str(found.get("state", STOPPED)), int(found.get("number", 0)))

    def wish_for(self, state: str) -> Wish:
        """Say what the job should be doing; also when it is said again. Raises JobError."""
        self.check_writable()
        wish = Wish(state, self.read_wish().number + 1)
        content = {"state": wish.state, "number": wish.number}
        write_json(self.path / "wish.json", content, sync=True)
        return wish

    def state(self) -> dict[str, Any]:
        """The state that the runner last published, empty when it never did."""
        return _whole(self.path / "state.json")

    def write_state(self, state: dict[str, Any]) -> None:
        """For the runner: say how the job is."""
        write_json(self.path / "state.json", state)

    def check_writable(self) -> None:
        """Raises JobError where the folder is only looked at."""
        if self.read_only:
            raise JobError(f"job {self.name}: read-only, nothing can be changed", _READ_ONLY)

    def error(self) -> dict[str, Any]:
        """The last failure: at (ms), cause, remedy, trace; empty when there was none."""
        return _whole(self.path / "error.json")

    def keep_error(self, told: dict[str, Any]) -> None:
        """For the runner: what made it fail."""
        write_json(self.path / "error.json", told)

    def remembers(self) -> dict[str, int]:
        """The names and sizes (bytes) that `forget` would delete."""
        found = {}
        for name in _FORGOTTEN:
            place = self.path / name
            if place.exists():
                files = [place] if place.is_file() else place.rglob("*")
                found[name] = sum(f.stat().st_size for f in files if f.is_file())
        return found

    def delete_positions(self) -> None:
        """Delete the job's positions and state. Only while it does not run. Raises JobError."""
        self.check_writable()
        for name in _FORGOTTEN:
            place = self.path / name
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        if told := self.state():
            self.write_state(
                {key: told[key] for key in told if key not in ("progress", "restarts")}
            )


class Folder:
    """All jobs of one appliance. read_only: it is only looked at, and refuses what changes
    something."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path).absolute()
        self.read_only = read_only

    @property
    def runner(self) -> Path:
        return self.path / ".runner"

    def jobs(self) -> list[JobFolder]:
        """By name."""
        if not self.path.is_dir():
            return []
        found = [one for one in self.path.iterdir() if (one / "wish.json").exists()]
        return [JobFolder(one, read_only=self.read_only) for one in sorted(found)]

    def find_job(self, name: str) -> JobFolder:
        """Raises JobError when there is none of that name."""
        job = self.at(name)
        if not (job.path / "wish.json").exists():
            known = ", ".join(one.name for one in self.jobs()) or "none yet"
            problem = f"there is no job {name!r} in {self.path}"
            raise JobError(problem, f"penstock job add FILE makes one; known: {known}")
        return job

    def at(self, name: str) -> JobFolder:
        """The part of a job, whether it is there or not."""
        assert "/" not in name
        assert not name.startswith(".")
        return JobFolder(self.path / name, read_only=self.read_only)

    def add(self, job: Job, *, state: str = RUNNING) -> JobFolder:
        """Take in a job file, or its successor: the checkpoint of a job of that name is kept.
        Raises JobError."""
        place = self.at(job.name)
        place.check_writable()
        fresh, target = place.path / ".job", place.path / "job"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        for file in job.files:
            shutil.copy2(file, fresh)
        (fresh / job.path.name).rename(fresh / f"{job.name}.toml")
        # Relative paths of the copy mean those next to where it was added from.
        (fresh / "origin").write_text(f"{job.path.parent}\n")
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
        place.wish_for(state)
        return place

    def drop(self, name: str) -> None:
        """Delete everything of a job. Only while it does not run. Raises JobError."""
        place = self.at(name)
        place.check_writable()
        shutil.rmtree(place.path)

    def runner_pid(self) -> int | None:
        """Process id of the runner of this folder, None when there is none."""
        with suppress(OSError), open(self.runner / "lock", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                return int(text) if text.isdigit() else 0
        return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """For the runner: there is only one. Raises JobError."""
        self.runner.mkdir(parents=True, exist_ok=True)
        with open(self.runner / "lock", "a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                problem = f"a runner works in {self.path} already, as process {self.runner_pid()}"
                raise JobError(problem, "end that one first") from None
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            yield


def base_of(file: Path) -> Path:
    """The folder that relative paths of a job file mean: its own, or of a job's copy the one that
    it was added from."""
    origin = file.with_name("origin")
    if file.parent.name == "job" and origin.is_file():
        return Path(origin.read_text().strip())
    return file.absolute().parent


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file, empty when there is none. Raises JobError for a file that is cut."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError:
        raise cut(path.parent.name, path.name) from None
    assert isinstance(found, dict)
    return found


def cut(job: str, file: str) -> JobError:
    """The error for a file of a job that is not whole."""
    problem = f"{file} of the job is cut, as a power cut leaves it"
    return JobError(problem, f"penstock job reset {job} begins again, and derives all once more")


def _whole(path: Path) -> dict[str, Any]:
    """The object in a file that is written again soon, empty when it is cut."""
    try:
        return read_json(path)
    except JobError:
        return {}


def write_json(path: Path, content: dict[str, Any], *, sync: bool = False) -> None:
    """Replaces a file in one step, also when several threads do: the last one counts. sync: a
    power cut leaves the old file or the new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}")
    with part.open("w") as file:
        file.write(json.dumps(content))
        if sync:
            file.flush()
            os.fsync(file.fileno())
    part.rename(path)
