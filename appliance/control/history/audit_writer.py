"""Control writes the audit file, from the rings of all processes, within a second.

Invariant: one job is under way at a time, on a thread. Entries stay in their rings until the file
that has them is synced, so a disk that fails, or a control that dies, costs nothing that the rings
have room for; then a line may be there twice. Called by control once a turn.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Final

from appliance.base.clock import Clock
from appliance.base.disk import Disk, File
from appliance.base.errors import StorageFailed
from appliance.config.bounds import AUDIT_FILES, setting_of
from appliance.history.audit_log import FILE, line_of, name_of
from appliance.ring.security_table import SecurityTable, Unread
from appliance.shell.flusher import Threads
from appliance.shell.log import WARNING, Log

MAX_BYTES: Final = "penstock.audit.file.max.bytes"
FILES: Final = "penstock.audit.files"
_EVERY_NS: Final = 500_000_000
_REST_NS: Final = 10_000_000_000
_PRIVATE: Final = 0o600


class AuditFile:
    """The file that is written, and the older ones. Every method may raise StorageFailed."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        max_bytes: int,
        files: int,
        reach: Callable[[str, str], None],
    ) -> None:
        """max_bytes: of one file. files: how many there may be. reach: told when the oldest one is
        deleted, and why."""
        self._reach = reach
        self._disk = disk
        self._folder = folder
        self._max_bytes = max_bytes
        self._files = files
        self._file, self._end = self._opened()

    def append(self, lines: list[bytes]) -> None:
        """Returns when the lines are on the disk. A file that is long enough is put aside first."""
        for line in lines:
            if self._end and self._end + len(line) > self._max_bytes:
                self._file.sync()
                self._roll()
            self._file.pwritev([line], self._end)
            self._end += len(line)
        self._file.sync()

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _opened(self) -> tuple[File, int]:
        path = self._path(0)
        if not self._disk.exists(path):
            return self._created(), 0
        file = self._disk.open_file(path, write=True)
        end = file.size()
        if end and file.pread(1, end - 1) != b"\n":  # a line that was torn by a crash
            file.pwritev([b"\n"], end)
            end += 1
        return file, end

    def _created(self) -> File:
        file = self._disk.create(self._path(0))
        if file.fileno() >= 0:
            os.fchmod(file.fileno(), _PRIVATE)
        self._disk.sync_dir(self._folder)
        return file

    def _roll(self) -> None:
        self._file.close()
        disk = self._disk
        beginning = f"{FILE}."
        for name in disk.listdir(self._folder):
            behind = name.removeprefix(beginning)
            if name.startswith(beginning) and behind.isdigit() and int(behind) >= self._files - 1:
                disk.unlink(f"{self._folder}/{name}")
                self._reach(AUDIT_FILES, f"{name} was deleted: {setting_of(AUDIT_FILES)}")
        for number in range(self._files - 2, -1, -1):
            if disk.exists(self._path(number)):
                disk.rename(self._path(number), self._path(number + 1))
        if disk.exists(self._path(0)):
            disk.unlink(self._path(0))
        self._file, self._end = self._created(), 0

    def _path(self, number: int) -> str:
        return f"{self._folder}/{name_of(number)}"


class Auditor:
    """open_file: the audit file, opened on the thread."""

    def __init__(
        self,
        table: SecurityTable,
        open_file: Callable[[], AuditFile],
        clock: Clock,
        threads: Threads,
        log: Log,
    ) -> None:
        self._unread = Unread(table)
        self._table = table
        self._open_file = open_file
        self._clock = clock
        self._threads = threads
        self._log = log
        self._file: AuditFile | None = None  # the thread's own
        self._next_ns = 0
        self._failing = False

    def run_turn(self, now_ns: int) -> None:
        """Give new entries to the thread, twice a second."""
        for done in self._threads.take_ended():
            self._wrote(done.failure, now_ns)
        if now_ns >= self._next_ns and not self._threads.outstanding():
            self._next_ns = now_ns + _EVERY_NS
            self._submit()

    def close(self) -> None:
        """Write the rest of the rings: the orderly end."""
        for last in (False, True):
            while self._threads.outstanding():
                self._threads.wait()
                for done in self._threads.take_ended():
                    self._wrote(done.failure, 0)
            if not last:
                self._submit()

    def _submit(self) -> None:
        found = self._unread.take_all()
        if found:
            now_ms = self._clock.wall_ms()
            lines = [line_of(process, one, now_ms) for process, one in found]
            self._threads.submit((), partial(self._write, lines))

    def _write(self, lines: list[bytes]) -> None:
        """On the thread."""
        try:
            if self._file is None:
                self._file = self._open_file()
            self._file.append(lines)
        except StorageFailed:
            if self._file is not None:
                self._file.close()
                self._file = None
            raise

    def _wrote(self, failure: Exception | None, now_ns: int) -> None:
        if failure is None:
            self._unread.mark_taken()
        else:
            if not isinstance(failure, StorageFailed):
                raise failure
            self._unread = Unread(self._table)  # the same entries, once more
            self._next_ns = now_ns + _REST_NS
            if not self._failing:
                self._log.event(WARNING, "audit-not-written", cause=str(failure))
        self._failing = failure is not None
