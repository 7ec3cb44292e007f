"""Records into a file: what a search finds, whole, as it is read again.

A file of that name is there when all of it is: until then what is written lies beside it, in
NAME.part, and stays there when the export is cancelled or fails.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from console.model.access.private_files import opener
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.records.fetching import fetch
from console.model.records.filters import Filter
from console.model.records.found import whole
from console.model.records.reading import Record
from console.model.records.scan import Progress, Scan
from console.model.records.seeking import Key, Span

Show = Callable[[Record], bytes]
_PIECE: Final = 1 << 18


class Export:
    """One export. path: where to; `~` is the home folder. progress: the last that is known.
    written: bytes. is_over: it has ended; problem: why it failed, None when it did not; cancelled:
    somebody ended it. Raises Failure (USAGE) when there is such a file and `over` does not say to
    write over it."""

    def __init__(
        self,
        link: Link,
        spans: Mapping[Key, Span],
        keep: Filter,
        show: Show,
        path: str,
        *,
        over: bool = False,
        head: bytes = b"",
    ) -> None:
        if not path.strip():
            raise usage("name a file", "for example orders.jsonl")
        self.path = Path(path.strip()).expanduser()
        self.part = self.path.with_name(self.path.name + ".part")
        if self.path.is_dir():
            raise usage(f"{self.path} is a folder", "name a file in it")
        for there in (self.path, self.part):
            if there.exists() and not over:
                raise usage(f"{there} is there already", "name another file, or write over it")
        self.progress = Progress()
        self.written = 0
        self.is_over = False
        self.problem: Failure | None = None
        self._over = over
        self._link = link
        self._scan: Scan[Record] = Scan(spans, keep, whole)
        self._show = show
        self._head = head
        self._cancel = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True if it was cancelled before it was complete."""
        return self.is_over and self.problem is None and not self._scan.is_done

    def cancel(self) -> None:
        """End it; what was written stays in the part."""
        self._cancel.set()

    def start_export(self) -> None:
        """In a thread of its own."""
        threading.Thread(target=self.run, name=f"export {self.path.name}", daemon=True).start()

    def run(self) -> None:
        """In this thread."""
        try:
            with open(self.part, "wb", opener=opener) as file:
                self._write(file, self._head)
                fetch(self._link, self._scan, self._cancel, lambda some: self._take(file, some))
                file.flush()
                os.fsync(file.fileno())
            if self._scan.is_done:
                self._name_it()
        except OSError as problem:
            self.problem = Failure(
                f"{problem.filename or self.part}: {problem.strerror or problem}",
                f"what was written until then is in {self.part}",
            )
        except Failure as failure:
            self.problem = failure
        except Exception as fault:  # whatever it is, the screen must say it
            self.problem = Failure(f"exporting: {type(fault).__name__}: {fault}", name="FAULT")
        self.progress = self._scan.progress(time.monotonic())
        self.is_over = True

    def _take(self, file: BinaryIO, some: list[Record]) -> None:
        piece = bytearray()
        for record in some:
            piece += self._show(record)
            if len(piece) >= _PIECE:
                self._write(file, piece)
                piece = bytearray()
        self._write(file, piece)
        self.progress = self._scan.progress(time.monotonic())

    def _write(self, file: BinaryIO, piece: bytes | bytearray) -> None:
        file.write(piece)
        self.written += len(piece)

    def _name_it(self) -> None:
        if self._over:
            os.replace(self.part, self.path)
            return
        try:
            os.link(
                self.part, self.path
            )  # unlike a rename it never writes over what has come since
        except FileExistsError:
            raise usage(f"{self.path} is there now", f"the export is in {self.part}") from None
        os.unlink(self.part)
