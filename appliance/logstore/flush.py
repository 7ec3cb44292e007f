"""A sync that runs beside the log: which files and folders must reach the disk, in which order.

Invariant: a job touches nothing of the log, only files that stay open until the log is told how it ended. When `run`
returned, everything below `end_offset` survives a power cut.
"""

from appliance.base.disk import Disk, File, write_file


class FlushJob:
    """The syncs that make everything below `end_offset` durable.

    files: every .log file with bytes that are not synced, oldest first. paths: index files of full segments. folders: those with new names, inner ones first.
    derived: small files to write whole before that (leader epochs, producer snapshot).
    """

    __slots__ = (
        "_disk",
        "appended",
        "derived",
        "end_offset",
        "files",
        "folders",
        "paths",
        "rolled",
        "stale",
    )

    def __init__(self, disk: Disk, end_offset: int, appended: int, files: list[File]) -> None:
        self._disk = disk
        self.end_offset = end_offset
        self.appended = appended
        self.files = files
        self.paths: tuple[str, ...] = ()
        self.folders: tuple[str, ...] = ()
        self.derived: tuple[tuple[str, bytes, bool], ...] = ()
        self.stale: tuple[str, ...] = ()
        self.rolled = 0

    def run(self) -> None:
        """Do it; on any thread. Raises StorageFailed, which is final for the log: pass it to `Log.fail`."""
        for path, data, sync in self.derived:
            write_file(self._disk, path, data, sync=sync)
        for file in self.files:
            file.sync()
        for path in self.paths:
            opened = self._disk.open(path)
            try:
                opened.sync()
            finally:
                opened.close()
        for folder in self.folders:
            self._disk.sync_dir(folder)
        for path in self.stale:
            if self._disk.exists(path):
                self._disk.unlink(path)
