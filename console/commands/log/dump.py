"""`penstock log dump`: every kind of file of a data folder, read with the appliance's own readers.

It opens files read-only and needs no running appliance; a running one is not disturbed.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from console.flags.output import formatted
from console.model.asking.failure import NEGATIVE, OK, Failure
from console.model.storage.log_files import dump_file, files_of, missing_before
from console.show.output import Row, emit, plain, print_note, table

PARTS: Final = ("batches", "entries", "producers")
_LESS_TOLD: Final = (
    "records",
    "format",
    "leader_epoch",
    "timestamp_type",
    "base_timestamp",
    "producer_epoch",
    "transactional",
    "crc",
)
"""Columns that only the wide form has."""


@click.command("dump")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option("-r", "--records", is_flag=True, help="Show the records of each batch.")
@formatted
def command(files: tuple[str, ...], records: bool, output: str) -> int:
    """Dump segments, indexes, time indexes, producer snapshots, the metadata log, its snapshots and
    checkpoint files; for a folder, all files in it. Exit code 4 when one is damaged.

    \b
    penstock log dump penstock-data/orders-0/00000000000000000000.log --records
    penstock log dump penstock-data/__cluster_metadata-0/*.log -o json
    penstock log dump penstock-data/orders-0
    """
    found: list[Row] = []
    remarks: list[str] = []
    damaged = False
    before: Row | None = None
    for one in _dumped(files, records):
        # A folder may have more than there is memory for, so what can be printed is let go.
        if output in ("table", "wide"):
            _print(one, () if output == "wide" else _LESS_TOLD)
        else:
            found.append(one)
        if gap := missing_before(one, before):
            remarks.append(gap)
        if one["problem"]:
            damaged = True
            remarks.append(f"{one['file']}: {one['problem']}")
        before = one if one["kind"] == "segment" else before
    if output in ("json", "name"):
        emit(found, output, name="file")
    elif output not in ("table", "wide"):
        rows = [{"file": one["file"]} | row for one in found for row in _rows(one)]
        emit(rows, output)
    for text in remarks:
        print_note(text)
    return NEGATIVE if damaged else OK


def _dumped(files: tuple[str, ...], records: bool) -> Iterator[Row]:
    """Every file, or Failure for one that cannot be read."""
    file = ""
    try:
        for file in files_of(files):
            yield dump_file(file, records)
    except OSError as problem:
        file = problem.filename or file
        raise Failure(f"{file} cannot be read: {problem.strerror}", name="NO_FILE") from None
    if not file:
        print_note(f"{', '.join(files)}: there is no file of an appliance in it")


def _rows(found: Row) -> list[Row]:
    for part in PARTS:
        if part in found:
            return list(found[part])
    return []


def _print(found: Row, hidden: Sequence[str]) -> None:
    print(f"{plain(found['file'])}: {found['kind']}, {found['bytes']} bytes")
    rows = _rows(found)
    if not any("records" in row for row in rows):
        if rows:
            table([key for key in rows[0] if key not in hidden], rows)
        print()
        return
    for row in rows:
        inner = row.get("records", ())  # none of a damaged batch
        table([key for key in row if key not in (*hidden, "records")], [row])
        for record in inner:
            shown = {key: value for key, value in record.items() if value is not None}
            print("    " + " ".join(f"{key}={plain(value)}" for key, value in shown.items()))
    print()
