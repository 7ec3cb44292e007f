"""`penstock job status`. It needs neither Spark nor Java: the runner has written it all down."""

from typing import Any, Final

import click

from appliance.cli.exits import NEGATIVE, OK
from appliance.cli.job.common import ENDED, in_folder
from appliance.cli.link import Link, connected, reach
from appliance.cli.output import Row, emit, formatted, plain, say
from spark_local.cause import JobError
from spark_local.folder import RUNNING, Folder

_PROGRESS: Final = (
    "rows_in", "rows_out", "rows_per_s", "processed_per_s", "batch", "batch_ms", "phases_ms",
    "lag_records", "lag_s", "watermark", "state_rows", "state_bytes", "late_rows",
    "dead_letters", "tombstones",
)  # fmt: skip
_NARROW: Final = (
    "job", "state", "rows_in", "rows_out", "rows_per_s", "lag_records", "lag_s", "late_rows",
    "dead_letters", "cause",
)  # fmt: skip


@click.command("status")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--check", is_flag=True, help="Exit code 4 unless every job that should run does so.")
@formatted
@connected
@in_folder
def command(folder: Folder, link: Link, names: tuple[str, ...], check: bool, output: str) -> int:
    """Show how jobs are. On another host, or without the jobs folder, it asks the appliance.

    \b
    penstock job status
    penstock job status delays
    penstock job status --check && echo all is well
    """
    told = _here(folder) if folder.path.is_dir() else _from_topic(link)
    if missing := [name for name in names if name not in told]:
        known = ", ".join(told) or "none yet"
        raise JobError(f"there is no job {missing[0]!r}", f"known: {known}")
    rows = [_row(name, told[name]) for name in names or sorted(told)]
    if not rows:
        where = folder.path if folder.path.is_dir() else link.bootstrap
        say(f"There is no job in {where}; penstock job add FILE makes one.")
    if len(names) == 1 and output == "table":
        _one(rows[0])
    else:
        useful = [name for name in _NARROW if name != "cause" or any(r["cause"] for r in rows)]
        emit(rows, output, narrow=useful, name="job")
    for row in rows if output == "table" and len(names) != 1 else ():
        if row["note"] or row["remedy"]:
            say(f"{row['job']}: {row['note'] or row['remedy']}")
    sick = any(row["wish"] == RUNNING and row["state"] not in _WELL for row in rows)
    return NEGATIVE if check and sick else OK


_WELL: Final = ("running", "starting", "finished")


def seen(folder: Folder, told: dict[str, Any]) -> dict[str, Any]:
    """What a runner said, as it is now: a runner that is gone says nothing any more."""
    found = {"state": None} | told
    if found["state"] not in (None, *ENDED) and folder.runner_pid() is None:
        found |= {"state": "down", "cause": "no runner works"}
        found |= {"remedy": "penstock job serve starts one"}
    return found


def _here(folder: Folder) -> dict[str, dict[str, Any]]:
    return {
        place.name: seen(folder, place.state()) | {"wish": place.wish().state}
        for place in folder.jobs()
    }


def _from_topic(link: Link) -> dict[str, dict[str, Any]]:
    from spark_local import states

    reach(link.bootstrap)
    found = states.read(link.bootstrap)
    return {name: told | {"wish": RUNNING} for name, told in found.items()}


def _row(name: str, told: dict[str, Any]) -> Row:
    progress = told.get("progress") or {}
    row: Row = {"job": name, "wish": told.get("wish"), "state": told.get("state")}
    row |= {key: told.get(key) for key in ("kind", "reads", "writes", "delivery", "master")}
    row |= {key: progress.get(key) for key in _PROGRESS}
    keys = ("since", "updated", "attempt", "next_attempt", "cause", "remedy", "note")
    return row | {key: told.get(key) for key in keys}


def _one(row: Row) -> None:
    """One job: a line for each thing that is known, the cause first."""
    first = [key for key in ("job", "state", "cause", "remedy", "note") if row[key]]
    rest = [key for key in row if key not in (*first, "since", "updated", "next_attempt")]
    for key in (*first, *(key for key in rest if row[key] is not None)):
        print(f"{key.replace('_', ' ').upper():16}{plain(row[key])}")
