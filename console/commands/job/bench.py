"""`penstock job bench`: how fast a job is on this machine, before it runs."""

import secrets
import tempfile
from pathlib import Path

import click

from console.commands.job.look import spark_for
from console.flags.connection import connected
from console.flags.jobs import in_folder, master_option, memory_option
from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.model.asking.link import Link
from console.model.groups import groups
from console.model.jobs.jobs import job_of
from console.model.topics import topics
from console.show.output import Row, emit, print_note
from spark_local.folder import Folder


@click.command("bench")
@click.argument("job", metavar="FILE|NAME")
@click.option(
    "-n", "--records", type=click.IntRange(2), default=200_000, metavar="RECORDS",
    help="Number of records to read from each source.  [default: 200000]",
)  # fmt: skip
@master_option
@memory_option
@formatted
@connected
@in_folder
def command(
    folder: Folder, link: Link, job: str, records: int, master: str, memory: str, output: str
) -> int:
    """Measure how many records a job reads in a second on this machine, and how long each stage of
    a micro-batch takes. Rows go to a topic, folder or table of its own, which is
    deleted at the end.

    \b
    penstock job bench delays.toml
    penstock job bench delays --records 1000000
    """
    from spark_local.engine import bench

    read = job_of(folder, job)
    name = f"{read.name}-bench-{secrets.token_hex(3)}"
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
        scratch = bench.scratch_job(read, name, Path(place))
        with spark_for(read, link, master, memory) as (spark, kafka):
            try:
                found = bench.measure_job(
                    spark, scratch, kafka, Path(place), records=records, tell=print_note
                )
            finally:
                _clean(link, name)
    rows: list[Row] = [
        {
            "stage": one.name,
            "ms": round(one.ms),
            "us_per_record": round(one.ms * 1000 / found.records, 2),
            "share": round(one.ms / found.ms, 3),
        }
        for one in found.stages
    ]
    emit(rows, output, name="stage")
    per_s, rows_per_s = (count * 1000 / found.ms for count in (found.records, found.rows))
    print_note(
        f"{per_s:,.0f} records/s in, {rows_per_s:,.0f} rows/s out, over {found.batches} batches of"
        f" {found.records // found.batches:,} records. The first batch took"
        f" {found.first_ms / 1000:.1f} s."
    )
    print_note(f"The slowest stage is {found.slowest.name}.")
    return OK


def _clean(link: Link, name: str) -> None:
    """Deletes what the bench made at the broker."""
    for failure in (*topics.delete(link, [name]).values(), *groups.delete(link, [name]).values()):
        _tell(failure, name)


def _tell(failure: Failure | None, name: str) -> None:
    absent = ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND")
    if failure is not None and failure.name not in absent:
        print_note(f"{name} stays: {failure.message}")
