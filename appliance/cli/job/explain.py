"""`penstock job explain`."""

import json
import tempfile
from pathlib import Path

import click

from appliance.cli.exits import OK
from appliance.cli.job.common import a_job, in_folder, master_option, memory_option
from appliance.cli.link import Link, connected, reach
from appliance.cli.output import formatted
from spark_local.engine.causes import translate
from spark_local.folder import Folder


@click.command("explain")
@click.argument("job", metavar="FILE|NAME")
@master_option
@memory_option
@formatted
@connected
@in_folder
def command(folder: Folder, link: Link, job: str, master: str, memory: str, output: str) -> int:
    """Show Spark's plan of a job, what it remembers between batches, and how a batch that is
    written again after a crash looks to readers.

    \b
    penstock job explain delays.toml
    """
    from spark_local.engine import look, session

    read = a_job(folder, job)
    bootstrap = read.bootstrap or link.bootstrap
    reach(bootstrap)
    with tempfile.TemporaryDirectory(prefix="penstock-explain-") as place:
        spark = session.start(read.master or master, Path(place), memory=memory)
        try:
            found = look.explain(spark, read, bootstrap)
        except Exception as problem:
            raise translate(problem, read.name) from None
        finally:
            session.end(spark)
    if output in ("json", "jsonl"):
        print(json.dumps(found, indent=2 if output == "json" else None, ensure_ascii=False))
        return OK
    print("DERIVES   " + ", ".join(f"{n} {k.upper()}" for n, k in found["columns"].items()))
    for line in found["state"] or ["nothing"]:
        print(f"REMEMBERS {line}")
    print(f"REPEATED  {found['repeated']}\n\n{found['plan']}")
    return OK
