"""Syncs that run beside the log: which files and folders must reach the disk, in which order.

Invariant: a job touches nothing of the log, only files that stay open until the log is told how
it ended. When `run` returned, everything below `end_offset` survives a power cut.
"""

from appliance.base.disk import Disk, File, write_file
from appliance.base.errors import DiskFull
from appliance.logstore.files import TXN_INDEX
from appliance.logstore.renewal import restore
from appliance.logstore.segment import Segment


class FlushJob:
    """The syncs that make everything below `end_offset` durable.

    files: every .log file with bytes that are not synced, oldest first. paths: index files of full
    segments and the epochs. metadata: path and bytes of a small file to write anew. folders: those
    with new names, inner ones first. snapshot: producer states to write. stale: snapshots that are
    needed no more then.
    """

    __slots__ = (
        "_disk",
        "appended",
        "end_offset",
        "files",
        "folders",
        "metadata",
        "paths",
        "rolled",
        "snapshot",
        "stale",
    )

    def __init__(self, disk: Disk, end_offset: int, appended: int, file: File) -> None:
        self._disk = disk
        self.end_offset = end_offset
        self.appended = appended
        self.rolled = 0
        self.files: list[File] = [file]
        self.paths: tuple[str, ...] = ()
        self.metadata: tuple[str, bytes] | None = None
        self.folders: tuple[str, ...] = ()
        self.snapshot: tuple[str, bytes] | None = None
        self.stale: tuple[str, ...] = ()

    def run(self) -> None:
        """Do it; on any thread. Raises StorageFailed, final for the log: pass it to
        `PartitionLog.fail`."""
        for file in self.files:
            file.sync()
        for path in self.paths:
            opened = self._disk.open_file(path)
            try:
                opened.sync()
            finally:
                opened.close()
        if self.metadata is not None:
            self._write_metadata(*self.metadata)
        for folder in self.folders:
            self._disk.sync_dir(folder)
        if self.snapshot is not None:  # a roll may write the same one at the same time
            path, data = self.snapshot
            try:
                write_file(self._disk, path, data, mark=".flush")
            except DiskFull:
                return  # an older one and the batches behind it say the same
        for path in self.stale:
            if self._disk.exists(path):
                self._disk.unlink(path)

    def _write_metadata(self, path: str, data: bytes) -> None:
        """Where it finds no room, the page cache is held against the medium instead."""
        try:
            write_file(self._disk, path, data, mark=".flush")
        except DiskFull:
            restore(self._disk, path)


class Unsynced:
    """State that a power cut would lose: full segments, new names, and the number of bytes.

    appended: bytes written to full segments since the log was opened. metadata: path and bytes of
    partition.metadata where an earlier sync of it may have failed.
    """

    __slots__ = ("appended", "derived", "folders", "job", "metadata", "rolled", "synced")

    def __init__(self) -> None:
        self.rolled: list[Segment] = []
        self.folders: list[str] = []
        self.derived: list[str] = []
        self.metadata: tuple[str, bytes] | None = None
        self.job: FlushJob | None = None
        self.appended = 0
        self.synced = 0

    @property
    def pending(self) -> bool:
        """True if more than the end of the active segment needs a sync."""
        return bool(self.rolled or self.folders or self.derived or self.job)

    def rolled_over(self, segment: Segment) -> None:
        """A segment is full; its file stays open until it is synced."""
        self.rolled.append(segment)
        self.appended += segment.size

    def folders_changed(self, paths: tuple[str, ...]) -> None:
        """These folders have new names in them."""
        for path in paths:
            if path not in self.folders:
                self.folders.append(path)

    def derived_changed(self, path: str) -> None:
        """This small file was replaced."""
        if path not in self.derived:
            self.derived.append(path)

    def derived_gone(self, path: str) -> None:
        """This small file is no more."""
        if path in self.derived:
            self.derived.remove(path)

    def shortened(self, left: list[Segment], gone: list[Segment], active_size: int) -> None:
        """The log was cut: `gone` are dropped or cut, and the one that is active now is synced.
        left: full segments that stay."""
        assert self.job is None, "a sync is under way"
        names = {path for segment in gone for path in segment.index_paths()}
        names |= {segment.stem + TXN_INDEX for segment in gone}
        self.derived = [path for path in self.derived if path not in names]
        self.rolled = [segment for segment in self.rolled if segment in left]
        self.appended = sum(segment.size for segment in self.rolled)
        self.synced = active_size

    def begin_flush(
        self, disk: Disk, end_offset: int, active: Segment, active_size: int
    ) -> FlushJob:
        """A job for all of it and the active segment; there is one at a time."""
        assert self.job is None, "the last job has not ended"
        assert active.file is not None
        job = self.job = FlushJob(disk, end_offset, self.appended + active_size, active.file)
        if self.rolled:
            files = [segment.file for segment in self.rolled if segment.file is not None]
            assert len(files) == len(self.rolled)
            job.files = [*files, active.file]
            job.rolled = len(files)
            job.paths = tuple(path for s in self.rolled for path in s.index_paths())
        if self.derived:
            job.paths += tuple(self.derived)
            self.derived.clear()
        job.metadata, self.metadata = self.metadata, None
        if self.folders:
            job.folders = tuple(self.folders)
            self.folders.clear()
        return job

    def end_flush(self, job: FlushJob) -> list[Segment]:
        """The job has run; segments that nobody syncs any more."""
        assert job is self.job, "this job was not begun"
        self.job = None
        self.synced = job.appended
        done = self.rolled[: job.rolled]
        del self.rolled[: job.rolled]
        return done
