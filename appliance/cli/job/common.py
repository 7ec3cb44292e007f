"""What the commands of jobs share: the jobs folder, failures, waiting for the runner."""

import errno
import functools
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from appliance.cli.exits import UNREACHABLE, Failure, usage
from appliance.cli.output import Row, say
from spark_local.cause import JobError
from spark_local.folder import Folder, JobFolder, Wish
from spark_local.job import Job
from spark_local.mistakes import JobFileError

DEFAULT_FOLDER: Final = "penstock-data/jobs"
ENDED: Final = ("stopped", "finished", "failed")
SETTLED: Final = (*ENDED, "running", "waiting", "restarting")
_LOOK_S: Final = 0.1
_UNWRITABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOSPC)

timeout_option = click.option(
    "--timeout", type=click.FloatRange(0.1, 3600), default=120.0, metavar="SECONDS",
    help="How long the runner may take.  [default: 120]",
)  # fmt: skip
wait_option = click.option("--no-wait", is_flag=True, help="Do not wait for the runner.")
all_option = click.option("--all", "-a", "everyone", is_flag=True, help="All jobs.")
master_option = click.option(
    "--master", default="local[*]", metavar="MASTER",
    help="Where Spark works: local[2], spark://host:7077.  [default: local[*]]",
)  # fmt: skip
memory_option = click.option(
    "--memory", default="1g", metavar="SIZE", help="Memory of Spark's driver.  [default: 1g]"
)


def in_folder(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --jobs; the first argument is the Folder then. What jobs say becomes a Failure."""

    @click.option(
        "--jobs", metavar="DIR",
        help=f"The jobs folder.  [default: $PENSTOCK_JOBS or ./{DEFAULT_FOLDER}]",
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(*args: object, jobs: str | None, **kwargs: object) -> object:
        folder = Folder(jobs or os.environ.get("PENSTOCK_JOBS") or DEFAULT_FOLDER)
        try:
            return command(folder, *args, **kwargs)
        except JobFileError as wrong:
            raise usage(str(wrong), "docs/jobs.md says what a job file may say") from None
        except JobError as problem:
            raise Failure(problem.problem, problem.remedy, name="JOB") from None
        except OSError as problem:
            if problem.errno not in _UNWRITABLE:
                raise
            raise _unusable(folder, problem) from None

    return wrapped


def _unusable(folder: Folder, problem: OSError) -> Failure:
    return Failure(
        f"{problem.filename or folder.path}: {problem.strerror or problem}",
        f"{folder.path} must be a folder that this user may write to; choose another with --jobs",
        name="JOB",
    )


def chosen(folder: Folder, names: tuple[str, ...], everyone: bool) -> list[JobFolder]:
    """The jobs that a command line names. Raises Failure, JobError."""
    if everyone == bool(names):
        raise usage("name jobs, or say --all", "penstock job list shows the jobs that there are")
    return folder.jobs() if everyone else [folder.get(name) for name in dict.fromkeys(names)]


def settle(
    folder: Folder,
    wishes: Iterable[tuple[JobFolder, Wish]],
    timeout_s: float,
    *,
    until: tuple[str, ...] = SETTLED,
    wait: bool = True,
) -> list[Row]:
    """A row for each job, when the runner has done what was wished. Raises Failure when it does not
    in time. Without a runner nothing is waited for, and the person is told."""
    pairs = list(wishes)
    if folder.runner_pid() is None:
        say("No runner works here: penstock job serve starts one, and with it these jobs.")
        wait = False
    end = time.monotonic() + timeout_s
    for place, wish in pairs if wait else ():
        while not _done(place, wish, until):
            if time.monotonic() > end:
                raise Failure(
                    f"the runner did not get to job {place.name} in time",
                    "penstock job status shows how it is; --timeout SECONDS waits longer",
                    code=UNREACHABLE,
                    name="TIMED_OUT",
                )
            if folder.runner_pid() is None:
                raise Failure("the runner ended", "penstock job serve starts one", name="JOB")
            time.sleep(_LOOK_S)
    return [_row(place, wish, waited=wait) for place, wish in pairs]


def _done(place: JobFolder, wish: Wish, until: tuple[str, ...]) -> bool:
    told = place.state()
    return int(told.get("wish", -1)) >= wish.number and told.get("state") in until


def _row(place: JobFolder, wish: Wish, *, waited: bool) -> Row:
    told = place.state() if waited else {}
    return {
        "job": place.name,
        "wish": wish.state,
        "state": told.get("state"),
        "cause": told.get("cause"),
        "remedy": told.get("remedy"),
    }


def a_job(folder: Folder, text: str) -> Job:
    """The job of a file, or of the folder, by its name."""
    from spark_local.jobfile import load

    if text.endswith(".toml") or Path(text).exists():
        return load(text)
    return folder.get(text).job()
