"""The demo without jobs: everything in through one stock client, out through another, compared."""

import sys
import time
from pathlib import Path
from types import TracebackType

from console.commands.demo.data import TABLES, Content
from console.commands.demo.load import Advance, load
from console.commands.demo.read_back import read_back
from console.model.asking.failure import NEGATIVE, OK
from console.model.asking.link import Link
from console.show.output import Row, emit, print_note
from console.streams import painter


def run(link: Link, source: Path, output: str) -> int:
    """Exit code: NEGATIVE when what came back is not what was sent."""
    with _Progress() as progress:
        began = time.monotonic()
        sent = load(link, source, progress.bar("written by confluent-kafka"))
        _rate("written", sent, time.monotonic() - began)
        began = time.monotonic()
        found = read_back(link, progress.bar("read by kafka-python"))
        _rate("read", found, time.monotonic() - began)
    rows: list[Row] = [
        {
            "topic": topic,
            "written": sent[topic].count,
            "read": found[topic].count,
            "bytes": sent[topic].bytes,
            "hash": found[topic].hash,
            "same": sent[topic] == found[topic],
        }
        for topic in sent
    ]
    emit(rows, output, name="topic")
    if all(row["same"] for row in rows):
        print_note("Every record came back as it was sent.")
        return OK
    print_note("What came back is not what was sent.")
    return NEGATIVE


def _rate(word: str, contents: dict[str, Content], seconds: float) -> None:
    count = sum(one.count for one in contents.values())
    size = sum(one.bytes for one in contents.values()) / 1e6
    print_note(
        f"{count:,} records, {size:,.0f} MB {word} in {seconds:.1f} s: "
        f"{count / seconds:,.0f} records/s, {size / seconds:,.1f} MB/s"
    )


class _Progress:
    """Bars on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("records"), TimeRemainingColumn(),
            console=Console(file=painter()), disable=not sys.stderr.isatty(),
        )  # fmt: skip

    def bar(self, what: str) -> Advance:
        """A bar over all topics together, which names the one at hand."""
        whole = sum(table.count for table in TABLES)
        task = self._progress.add_task(what, total=whole)

        def advance(topic: str, more: int) -> None:
            self._progress.update(task, advance=more, description=f"{topic:<8} {what}")

        return advance

    def __enter__(self) -> "_Progress":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
