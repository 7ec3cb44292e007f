"""--jobs and what else the commands of jobs share."""

import functools
import os
from collections.abc import Callable
from typing import Any, Final

import click

from console.flags.units import Seconds
from console.model.asking.failure import usage
from console.model.jobs.jobs import failing
from spark_local.folder import Folder, JobFolder

DEFAULT_FOLDER: Final = "penstock-data/jobs"

timeout_option = click.option(
    "--timeout", type=Seconds(0.1, 3600), default=120.0, metavar="TIME",
    help="Time limit for the runner.  [default: 120s]",
)  # fmt: skip
wait_option = click.option(
    "--no-wait", is_flag=True, help="Do not wait until the runner has done it."
)
all_option = click.option("--all", "-a", "everyone", is_flag=True, help="All jobs.")
master_option = click.option(
    "--master", default="local[*]", metavar="MASTER",
    help="Spark master: local[2], spark://host:7077.  [default: local[*]]",
)  # fmt: skip
memory_option = click.option(
    "--memory", default="1g", metavar="SIZE", help="Memory of the Spark driver.  [default: 1g]"
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
        with failing(folder):
            return command(folder, *args, **kwargs)

    return wrapped


def named(folder: Folder, names: tuple[str, ...], everyone: bool) -> list[JobFolder]:
    """The jobs that a command line names. Raises Failure, JobError."""
    if everyone == bool(names):
        raise usage("name jobs, or say --all", "penstock job list shows the existing jobs")
    return folder.jobs() if everyone else [folder.find_job(name) for name in dict.fromkeys(names)]
