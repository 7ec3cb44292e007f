"""`penstock job start`, `stop` and `restart`: they say what jobs are to do, and wait for it."""

from collections.abc import Callable

import click

from console.flags.jobs import all_option, in_folder, named, timeout_option, wait_option
from console.flags.output import formatted
from console.model.asking.failure import FAILED, OK
from console.model.jobs import jobs
from console.model.jobs.jobs import ENDED, SETTLED, await_states, has_runner
from console.show.output import emit, print_note, rows_of, telling
from spark_local.folder import Folder, JobFolder, Wish

NO_RUNNER = "No runner is running: penstock job serve starts one, and with it these jobs."


def _wishing(
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
            pairs = [(place, wish(place)) for place in named(folder, names, everyone)]
            if not has_runner(folder):
                print_note(NO_RUNNER)
            until = ENDED if to_end else SETTLED
            rows = rows_of(await_states(folder, pairs, timeout, until=until, wait=not no_wait))
            emit(rows, output, narrow=telling(rows), name="job")
            failed = any(row["state"] == "failed" for row in rows)
            return FAILED if failed and not to_end else OK

        assert isinstance(command, click.Command)
        return command

    return made


@_wishing("start")
def start_jobs(place: JobFolder) -> Wish:
    """Start jobs. A running job is left alone; a failed or ended job continues after its last
    batch.

    \b
    penstock job start delays
    penstock job start --all
    """
    return jobs.start_job(place)


@_wishing("stop", to_end=True)
def stop(place: JobFolder) -> Wish:
    """Stop jobs after their current batch, so that a later start writes nothing twice.

    \b
    penstock job stop delays
    """
    return jobs.stop(place)


@_wishing("restart")
def restart(place: JobFolder) -> Wish:
    """Stop jobs after their current batch, and start them again.

    \b
    penstock job restart delays
    """
    return jobs.restart(place)
