"""`penstock topic table`."""

from pathlib import Path

import click

from console.flags.complete import topic_names
from console.flags.confirm import dry_run_option
from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.show.output import emit, print_note
from spark_local import topic_table
from spark_local.job import DELTA, ICEBERG
from spark_local.jobfile import parse


@click.command("table")
@click.argument("name", shell_complete=topic_names)
@click.argument("path")
@click.option("--table", metavar="NAMESPACE.NAME", help="Name of the table; kafka.NAME by default.")
@click.option(
    "--schema", metavar="COLUMNS", help='Columns of the values: "id BIGINT, at TIMESTAMP".'
)
@click.option("--value-format", "form", type=click.Choice(["json", "csv"]), default="json",
              help="Format of the values, with --schema.")  # fmt: skip
@click.option(
    "--key", metavar="COLUMN", help="Merge by this column of the schema, the record's key."
)
@click.option("--partition-by", "parts", multiple=True, metavar="COLUMN",
              help="Partition the table, days(at) for one; may be repeated.")  # fmt: skip
@click.option("--table-format", type=click.Choice([ICEBERG, DELTA]), default=ICEBERG,
              help="Format of the table.")  # fmt: skip
@click.option("--file", metavar="FILE", help="Where the job file is written; NAME-table.toml.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@dry_run_option
@formatted
def command(
    name: str,
    path: str,
    table: str | None,
    schema: str | None,
    form: str,
    key: str | None,
    parts: tuple[str, ...],
    table_format: str,
    file: str | None,
    force: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Write the job file that keeps a topic as a table of Apache Iceberg or Delta Lake below PATH,
    a folder or s3://bucket/prefix.

    Without --schema the table has key, value, headers, timestamp, partition and offset of each
    record. With --key there is one row for each key, and a record without a value deletes it.

    \b
    penstock topic table orders lake
    penstock topic table orders lake --schema "id BIGINT, at TIMESTAMP" --partition-by "days(at)"
    penstock topic table customers lake --schema "id BIGINT, name STRING" --key id
    """
    wanted = topic_table.Wanted(
        topic=name,
        path=path if path.startswith("s3://") else str(Path(path).absolute()),
        table=table or topic_table.table_name(name),
        schema=schema,
        key=key,
        partition_by=parts,
        format=form,
        table_format=table_format,
    )
    target = Path(file or f"{topic_table.job_name(name)}.toml")
    try:
        text = topic_table.job_text(wanted)
    except ValueError as wrong:
        problem, remedy = wrong.args
        raise Failure(f"--schema or --key: {problem}", remedy, name="USAGE") from None
    job = parse(text, target)
    if not dry_run:
        _write(target, text, force)
        flag = "delta" if table_format == DELTA else "tables"
        print_note(f"Next: penstock job setup --{flag}, then penstock job add {target}")
    done = "would be written" if dry_run else "written"
    emit([{"file": str(target), "status": done, "job": job.name, "table": wanted.table}], output)
    return OK


def _write(target: Path, text: str, force: bool) -> None:
    try:
        with target.open("w" if force else "x") as out:
            out.write(text)
    except FileExistsError:
        raise Failure(f"{target} is there", "--force replaces it", name="USAGE") from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise Failure(f"{target}: {reason}", "name another --file", name="OS_ERROR") from None
