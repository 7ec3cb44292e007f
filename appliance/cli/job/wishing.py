"""What `start`, `stop` and `restart` share: they say what is wished of jobs, and wait for it."""

from collections.abc import Callable

import click

from appliance.cli.exits import FAILED, OK
from appliance.cli.job.add import narrow
from appliance.cli.job.common import (
    ENDED,
    SETTLED,
    all_option,
    chosen,
    in_folder,
    settle,
    timeout_option,
    wait_option,
)
from appliance.cli.output import emit, formatted
from spark_local.folder import Folder, JobFolder, Wish


def wishing(
    name: str, *, to_end: bool = False
) -> Callable[[Callable[[JobFolder], Wish]], click.Command]:
    """A command of the jobs that are named. What it decorates writes the wish down for one of them,
    or finds it there; its docstring is the command's help. to_end: they are waited for until they
    have ended, and none of them has to run."""

    def made(wish: Callable[[JobFolder], Wish]) -> click.Command:
        @click.command(name, help=wish.__doc__)
        @click.argument("names", nargs=-1, metavar="[NAME]...")
        @all_option
        @wait_option
        @timeout_option
        @formatted
        @in_folder
        def command(
            folder: Folder,
            names: tuple[str, ...],
            everyone: bool,
            no_wait: bool,
            timeout: float,
            output: str,
        ) -> int:
            pairs = [(place, wish(place)) for place in chosen(folder, names, everyone)]
            until = ENDED if to_end else SETTLED
            rows = settle(folder, pairs, timeout, until=until, wait=not no_wait)
            emit(rows, output, narrow=narrow(rows), name="job")
            failed = any(row["state"] == "failed" for row in rows)
            return FAILED if failed and not to_end else OK

        assert isinstance(command, click.Command)
        return command

    return made
