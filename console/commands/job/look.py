"""`penstock job preview` and `explain`: a job looked at by a Spark of its own, before it runs."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from console.flags.connection import connected
from console.flags.jobs import in_folder, master_option, memory_option
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.jobs.jobs import job_of, reached, settings_of
from console.show.output import Row, as_json, emit, print_note
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.folder import Folder, base_of
from spark_local.job import Job
from spark_local.questions import ask_runner

if TYPE_CHECKING:
    from spark_local.engine.look import Preview


@click.command("preview")
@click.argument("job", metavar="FILE|NAME")
@click.option("-n", "--rows", type=click.IntRange(1, 10_000), default=20, help="[default: 20]")
@click.option(
    "--last", type=click.IntRange(1), default=10_000, metavar="RECORDS",
    help="Number of records to read from each partition.  [default: 10000]",
)  # fmt: skip
@master_option
@memory_option
@formatted
@connected
@in_folder
def preview(
    folder: Folder,
    link: Link,
    job: str,
    rows: int,
    last: int,
    master: str,
    memory: str,
    output: str,
) -> int:
    """Derive rows from the last records of each source and show some of them. Nothing is written.
    Inferred columns are shown as a schema to copy.

    \b
    penstock job preview delays.toml
    """
    from spark_local.engine import look

    read = job_of(folder, job)
    found = None if _chosen("master", "memory") else _by_runner(folder, link, read, rows, last)
    if found is None:
        with spark_for(read, link, master, memory) as (spark, kafka):
            found = look.preview(spark, read, kafka, rows=rows, last=last)
    for one in read.inputs:
        if one.schema == "infer":
            print_note(f'{one.name}: schema = "{found.schemas[one.name]}"')
    shown: list[Row] = [{name: _cell(row[name]) for name in found.columns} for row in found.rows]
    print_note(", ".join(f"{name} {kind.upper()}" for name, kind in found.kinds.items()))
    for topic, (part, whole) in found.parts.items():
        print_note(
            f"Of topic {topic} the last {part:,} of {whole:,} records: counts and sums are of "
            "these alone; --last RECORDS reads more."
        )
    for name, (bad, of, reasons) in found.unreadable.items():
        print_note(
            f"{bad:,} of {of:,} records of {name} cannot be read, and go to {read.dead_letters}:"
        )
        for reason in reasons:
            print_note(f"  {reason}")
    emit(shown, output, name=found.columns[0])
    if not shown:
        print_note("It derives no row from these records.")
    return OK


def _chosen(*names: str) -> bool:
    """True if one of these options was typed: then a Spark of its own is meant."""
    source = click.get_current_context().get_parameter_source
    return any(source(name) is not ParameterSource.DEFAULT for name in names)


def _by_runner(folder: Folder, link: Link, job: Job, rows: int, last: int) -> "Preview | None":
    """The preview that the folder's runner makes, which has a Spark already; None without one, or
    where it reads from elsewhere."""
    from spark_local.engine.look import Preview

    bootstrap = settings_of(link, job).bootstrap
    answer = ask_runner(folder, {
        "file": str(job.path), "base": str(base_of(job.path)), "rows": rows, "last": last,
        "bootstrap": bootstrap,
    })  # fmt: skip
    if answer is None or "unable" in answer:
        return None
    if problem := answer.get("problem"):
        raise JobError(str(problem), str(answer.get("remedy") or ""))
    return Preview.of_json(answer)


def _cell(value: object) -> object:
    return value if isinstance(value, int | float | str | bool | None) else str(value)


@click.command("explain")
@click.argument("job", metavar="FILE|NAME")
@master_option
@memory_option
@formatted
@connected
@in_folder
def explain(folder: Folder, link: Link, job: str, master: str, memory: str, output: str) -> int:
    """Show Spark's plan of a job, its state between batches, and what consumers see of a batch that
    is written again after a crash.

    \b
    penstock job explain delays.toml
    """
    from spark_local.engine import look

    read = job_of(folder, job)
    with spark_for(read, link, master, memory) as (spark, kafka):
        found = look.explain(spark, read, kafka)
    if output in ("json", "jsonl"):
        print(as_json(found, indent=2 if output == "json" else None))
        return OK
    print("DERIVES   " + ", ".join(f"{n} {k.upper()}" for n, k in found["columns"].items()))
    for line in found["state"] or ["nothing"]:
        print(f"REMEMBERS {line}")
    print(f"REPEATED  {found['repeated']}\n\n{found['plan']}")
    return OK


@contextmanager
def spark_for(
    job: Job, link: Link, master: str, memory: str
) -> Iterator[tuple[Any, ClientSettings]]:
    """(a Spark session for this look, how its clients connect). Raises JobError."""
    from spark_local.engine import session
    from spark_local.engine.causes import translate

    kafka = reached(settings_of(link, job))
    with tempfile.TemporaryDirectory(prefix="penstock-look-") as place:
        spark = session.start_session(job.master or master, Path(place), memory=memory)
        try:
            yield spark, kafka.written(Path(place))
        except Exception as problem:
            raise translate(problem, job.name) from None
        finally:
            session.end_session(spark)
