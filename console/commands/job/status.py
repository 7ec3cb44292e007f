"""`penstock job status`. It needs neither Spark nor Java: the runner has written it all down."""

from typing import Final

import click

from console.commands.job.wish import NO_RUNNER
from console.flags.connection import connected
from console.flags.jobs import in_folder
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import NEGATIVE, OK
from console.model.asking.link import Link
from console.model.jobs.jobs import NOT_YET, has_runner, statuses
from console.show.output import Row, emit, plain, print_note, rows_of, telling
from spark_local.board import now_ms
from spark_local.folder import RUNNING, Folder

NOT_RUN: Final = "never ran"
_NARROW: Final = (
    "job", "state", "rows_in", "rows_out", "rows_per_s", "lag_records", "lag_s", "late_rows",
    "dead_letters", "lost_records", "restarts", "cause",
)  # fmt: skip
_RARE: Final = ("lost_records", "restarts", "cause")
"""Columns of the table only where some job has something in them."""


@click.command("status")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--check", is_flag=True, help="Exit code 4 unless every started job runs.")
@formatted
@connected
@in_folder
@watched
def command(folder: Folder, link: Link, names: tuple[str, ...], check: bool, output: str) -> int:
    """Show the state of jobs. On another host, or without the jobs folder, the appliance is asked.

    \b
    penstock job status
    penstock job status delays
    penstock job status --check && echo all is well
    """
    found = statuses(folder, link, names)
    rows = rows_of(found)
    if not rows:
        where = folder.path if folder.path.is_dir() else link.bootstrap
        print_note(f"There is no job in {where}; penstock job add FILE makes one.")
    awaited = any(one.note == NOT_YET and one.wanted == RUNNING for one in found)
    if awaited and not has_runner(folder):
        print_note(NO_RUNNER)
    if output == "table":
        for row in rows:
            row |= {"state": NOT_RUN, "note": None} if row["note"] == NOT_YET else {}
    if len(names) == 1 and output == "table":
        _one(rows[0])
    else:
        began = any(row["updated"] is not None for row in rows)
        useful = [name for name in _NARROW if name not in _RARE or any(r[name] for r in rows)]
        useful = useful if began else telling(rows)
        emit(rows, output, narrow=useful, name="job")
    for row in rows if output == "table" and len(names) != 1 else ():
        if row["note"] or row["remedy"]:
            print_note(f"{row['job']}: {row['note'] or row['remedy']}")
    return NEGATIVE if check and any(one.sick for one in found) else OK


def _one(row: Row) -> None:
    """One job: a line for each thing that is known, the cause first."""
    first = [key for key in ("job", "state", "cause", "remedy", "note") if row[key]]
    rest = [key for key in row if key not in (*first, "since", "updated", "next_attempt")]
    for key in (*first, *(key for key in rest if row[key] is not None)):
        print(f"{key.replace('_', ' ').upper():16}{plain(row[key])}")
        if key == "state" and isinstance(next_ms := row["next_attempt"], int):
            print(f"{'NEXT ATTEMPT':16}in {max(0, next_ms - now_ms()) / 1000:.0f} s")
