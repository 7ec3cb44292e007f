"""`penstock job setup`."""

from pathlib import Path

import click

from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.show.output import emit, print_note
from spark_local.cause import JobError


@click.command("setup")
@click.option(
    "--jar", "jars", multiple=True, metavar="FILE",
    help="Add this jar, for example a JDBC driver; may be repeated.",
)  # fmt: skip
@click.option(
    "--tables", is_flag=True, help="Also Apache Iceberg, which [sink.table] needs (47 MB)."
)
@click.option("--delta", is_flag=True, help="Also Delta Lake, for tables of that format (8 MB).")
@click.option("--s3", "store", is_flag=True, help="Also what tables in buckets need (64 MB).")
@click.option("--schemas", is_flag=True, help="Also Avro by a schema registry (0.2 MB).")
@formatted
def command(
    jars: tuple[str, ...], tables: bool, delta: bool, store: bool, schemas: bool, output: str
) -> int:
    """Download the jars of Spark's Kafka connector for the installed PySpark into your cache
    folder. Jobs then start without network access.

    Without access to Maven Central, set PENSTOCK_MAVEN_REPOSITORY to the address of a mirror, or
    PENSTOCK_IVY_SETTINGS to a settings file of Ivy. Mirrors of ~/.m2/settings.xml are used.
    """
    from spark_local.engine import jars as kept

    try:
        if not kept.found():
            print_note("Fetching the jars of Spark's Kafka connector; this takes a minute.")
        kept.fetch()
        if tables:
            kept.fetch_tables()
        if delta:
            kept.fetch_delta()
        if store:
            kept.fetch_store()
        if schemas:
            kept.fetch_schemas()
        for jar in jars:
            kept.add(Path(jar))
        rows = [
            {"name": jar.name, "bytes": jar.stat().st_size, "folder": str(jar.parent)}
            for jar in kept.need_jars()
        ]
    except JobError as problem:
        raise Failure(problem.problem, problem.remedy, name="SETUP") from None
    emit(rows, output)
    return OK
