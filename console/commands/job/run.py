"""`penstock job run`: one job in this process, without the runner."""

import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.flags.connection import connected
from console.flags.jobs import in_folder, memory_option
from console.flags.output import formatted
from console.flags.private import private
from console.model.asking.failure import FAILED, OK, Failure
from console.model.asking.link import Link
from console.model.jobs.jobs import job_of, reached, settings_of
from console.show.output import Row, emit, print_note
from spark_local.board import Board
from spark_local.cause import JobError
from spark_local.folder import RUNNING, Folder

if TYPE_CHECKING:
    from spark_local.engine.jobthread import JobThread


@click.command("run")
@click.argument("job", metavar="FILE|NAME")
@click.option("--once", is_flag=True, help="Stop after all existing records.")
@click.option("--master", metavar="MASTER", help="Spark master, instead of the job's own.")
@memory_option
@formatted
@connected
@in_folder
@private
def command(
    folder: Folder,
    link: Link,
    job: str,
    once: bool,
    master: str | None,
    memory: str,
    output: str,
) -> int:
    """Run one job in this terminal from its last progress: until Ctrl-C, or with --once until it
    has read all existing records.

    \b
    penstock job run delays.toml --once
    penstock job run delays.toml --once --master spark://host:7077
    """
    from spark_local.engine import session
    from spark_local.engine.jobthread import JobThread

    read = job_of(folder, job)
    read = replace(read, trigger_ms=None) if once else read
    place = folder.at(read.name)
    wished = place.read_wish()
    if wished.state == RUNNING and folder.runner_pid() is not None:
        remedy = f"penstock job stop {read.name} ends it there"
        raise JobError(f"the runner runs {read.name} already", remedy)
    kafka = reached(settings_of(link, read))
    chosen = master or read.master or "local[*]"
    place.path.mkdir(parents=True, exist_ok=True)
    board = Board(place, None, wished.number)
    board.describe(read, chosen)
    with tempfile.TemporaryDirectory(prefix="penstock-run-") as scratch:
        spark = session.start_session(chosen, Path(scratch), memory=memory)
        thread = JobThread(spark, read, place, kafka, board)
        _until_end(thread, board)
        session.end_session(spark)
    progress = board.content.get("progress") or {}
    row: Row = {"job": read.name, "state": board.state}
    row |= {key: progress.get(key) for key in ("rows_in", "rows_out", "late_rows", "dead_letters")}
    if board.state == "failed":
        cause = thread.cause
        assert cause is not None
        raise Failure(cause.problem, cause.remedy, name="JOB_FAILED", code=FAILED)
    emit([row], output, name="job")
    return OK


def _until_end(thread: "JobThread", board: Board) -> None:
    """Let it run; Ctrl-C and SIGTERM end it after its batch."""
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    thread.start_thread()
    said, asked = "", False
    while thread.is_alive():
        ending.wait(0.2)
        if ending.is_set() and not asked:
            asked = True
            thread.stop()
        if asked:
            thread.join(0.2)
        now = f"{board.state}{': ' + board.content['cause'] if board.content['cause'] else ''}"
        if now != said:
            print_note(now)
            said = now
