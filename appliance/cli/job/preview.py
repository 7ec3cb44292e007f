"""`penstock job preview`."""

import tempfile
from pathlib import Path

import click

from appliance.cli.exits import OK
from appliance.cli.job.common import a_job, in_folder, master_option, memory_option
from appliance.cli.link import Link, connected, reach
from appliance.cli.output import Row, emit, formatted, say
from spark_local.engine.causes import translate
from spark_local.folder import Folder


@click.command("preview")
@click.argument("job", metavar="FILE|NAME")
@click.option("-n", "--rows", type=click.IntRange(1, 10_000), default=20, help="[default: 20]")
@click.option(
    "--last", type=click.IntRange(1), default=10_000, metavar="RECORDS",
    help="Of how many records of each partition.  [default: 10000]",
)  # fmt: skip
@master_option
@memory_option
@formatted
@connected
@in_folder
def command(
    folder: Folder,
    link: Link,
    job: str,
    rows: int,
    last: int,
    master: str,
    memory: str,
    output: str,
) -> int:
    """Derive from the last records of each source and show some of it. Nothing is written and
    nothing is remembered. Inferred columns are shown as a schema to copy.

    \b
    penstock job preview delays.toml
    """
    from spark_local.engine import look, session

    read = a_job(folder, job)
    bootstrap = read.bootstrap or link.bootstrap
    reach(bootstrap)
    with tempfile.TemporaryDirectory(prefix="penstock-preview-") as place:
        spark = session.start(read.master or master, Path(place), memory=memory)
        try:
            found = look.preview(spark, read, bootstrap, rows=rows, last=last)
        except Exception as problem:
            raise translate(problem, read.name) from None
        finally:
            session.end(spark)
    for one in read.inputs:
        if one.schema == "infer":
            say(f'{one.name}: schema = "{found.schemas[one.name]}"')
    shown: list[Row] = [{name: _cell(row[name]) for name in found.columns} for row in found.rows]
    say(", ".join(f"{name} {kind.upper()}" for name, kind in found.kinds.items()))
    for topic, (part, whole) in found.parts.items():
        say(
            f"Of topic {topic} the last {part:,} of {whole:,} records: counts and sums are of "
            "these alone; --last RECORDS reads more."
        )
    emit(shown, output, name=found.columns[0])
    if not shown:
        say("It derives no row from these records.")
    return OK


def _cell(value: object) -> object:
    return value if isinstance(value, int | float | str | bool | None) else str(value)
