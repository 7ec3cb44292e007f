"""The machine's own disk behind the doors of `disk`. Called by shells; everybody else gets a Disk.

Invariant: no OSError leaves this file, only StorageFailed; DiskFull where nothing but room was
missing. A partial write is continued; a failed one is never tried again.
"""

import ctypes
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from appliance.base.disk import PAGE, Readable, Space, Writable
from appliance.base.errors import DiskFull, StorageFailed

IOV_MAX: Final = 1024
_RANGE_WRITE: Final = 2  # SYNC_FILE_RANGE_WRITE: start, wait for nothing

_sync_file_range = ctypes.CDLL(None, use_errno=True).sync_file_range  # Python has no name for it
_sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
_FILE_MODE: Final = 0o640
_FOLDER_MODE: Final = 0o750


_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_REMEDIES: Final = {
    errno.EMFILE: "raise the limit of open files (ulimit -n; LimitNOFILE= of a unit)",
    errno.ENFILE: "raise the host's limit of open files (sysctl fs.file-max)",
}


def _why(cause: OSError) -> str:
    remedy = _REMEDIES.get(cause.errno or 0)
    text = cause.strerror or str(cause)
    return f"{text}: {remedy}" if remedy else text


def _failed(path: str, cause: OSError) -> StorageFailed:
    return StorageFailed(path, cause.errno or errno.EIO, _why(cause))


def _refused(path: str, cause: OSError) -> StorageFailed:
    """For calls that take room, and after which nothing is in doubt when there is none."""
    kind = DiskFull if cause.errno in _NO_ROOM else StorageFailed
    return kind(path, cause.errno or errno.EIO, _why(cause))


def _close(fd: int) -> None:
    """Closes without a word: the data was synced before, and the descriptor is gone either way."""
    with suppress(OSError):
        os.close(fd)


class OsFile:
    """A descriptor and the path that it was opened by."""

    __slots__ = ("_fd", "_medium", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._medium = -1  # the same file, for writes past the page cache

    def pwritev(self, buffers: Sequence[Readable], position: int) -> None:
        try:
            if len(buffers) == 1:
                wrote = os.pwrite(self._fd, buffers[0], position)
                wanted = len(buffers[0])
            elif len(buffers) <= IOV_MAX:
                wrote = os.pwritev(self._fd, buffers, position)
                wanted = sum(map(len, buffers))
            else:
                wrote = wanted = 0
                for first in range(0, len(buffers), IOV_MAX):
                    part = buffers[first : first + IOV_MAX]
                    self.pwritev(part, position)
                    position += sum(map(len, part))
            if wrote != wanted:
                self._write_rest(buffers, position, wrote)
        except OSError as cause:
            raise _refused(self.path, cause) from cause

    def _write_rest(self, buffers: Sequence[Readable], position: int, wrote: int) -> None:
        """Go on after a partial write; the next one says why if there is a reason."""
        skip = wrote
        position += wrote
        for buffer in buffers:
            if skip >= len(buffer):
                skip -= len(buffer)
                continue
            with memoryview(buffer) as view:
                at = skip
                skip = 0
                while at < len(view):
                    step = os.pwrite(self._fd, view[at:], position)
                    if step == 0:
                        raise OSError(errno.EIO, "the file takes no more bytes")
                    at += step
                    position += step

    def pread(self, length: int, position: int) -> bytes:
        try:
            data = os.pread(self._fd, length, position)
            while 0 < len(data) < length:
                more = os.pread(self._fd, length - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as cause:
            raise _failed(self.path, cause) from cause
        return data

    def preadinto(self, buffer: Writable, position: int) -> int:
        total = 0
        try:
            with memoryview(buffer) as view:
                while total < len(view):
                    got = os.preadv(self._fd, [view[total:]], position + total)
                    if not got:
                        break
                    total += got
        except OSError as cause:
            raise _failed(self.path, cause) from cause
        return total

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as cause:
            raise _failed(self.path, cause) from cause

    def allocate(self, size: int) -> None:
        try:
            os.posix_fallocate(self._fd, 0, size)
        except OSError as cause:
            raise _refused(self.path, cause) from cause

    def sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as cause:
            raise _failed(self.path, cause) from cause

    def pread_medium(self, length: int, position: int) -> bytes:
        assert position % PAGE == 0
        if not length:
            return b""  # of no pages no memory can be had
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT)
        except OSError as cause:
            if cause.errno != errno.EINVAL:
                raise _failed(self.path, cause) from cause
            return self._pread_dropped(length, position)
        try:
            with mmap.mmap(-1, -(-length // PAGE) * PAGE) as buffer:  # for its alignment
                got = os.preadv(fd, [buffer], position)
                return buffer[: min(got, length)]
        except OSError as cause:
            raise _failed(self.path, cause) from cause
        finally:
            _close(fd)

    def _pread_dropped(self, length: int, position: int) -> bytes:
        """Where no file can be read past the page cache; in memory file systems nothing is
        lost."""
        self.sync()
        self.drop_cached(length, position)
        return self.pread(length, position)

    def pwrite_medium(self, data: Readable, position: int) -> None:
        assert position % PAGE == 0 == len(data) % PAGE
        try:
            if self._medium < 0:
                self._medium = self._open_medium()
            with mmap.mmap(-1, len(data)) as buffer:  # for its alignment
                buffer[:] = data
                wrote = os.pwrite(self._medium, buffer, position)
            if wrote != len(data):
                raise OSError(errno.EIO, f"{wrote} of {len(data)} bytes were written")
        except OSError as cause:
            raise _failed(self.path, cause) from cause

    def _open_medium(self) -> int:
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_DSYNC
        try:
            return os.open(self.path, flags | os.O_DIRECT)
        except OSError as cause:
            if cause.errno != errno.EINVAL:
                raise
        return os.open(self.path, flags)

    def drop_cached(self, length: int, position: int) -> None:
        length = -(-length // PAGE) * PAGE  # a page that is named in part stays
        try:
            os.posix_fadvise(self._fd, position, length, os.POSIX_FADV_DONTNEED)
        except OSError as cause:
            raise _failed(self.path, cause) from cause

    def start_writeback(self, position: int, length: int) -> None:
        if _sync_file_range(self._fd, position, length, _RANGE_WRITE):
            code = ctypes.get_errno()
            raise StorageFailed(self.path, code, os.strerror(code))

    def size(self) -> int:
        try:
            return os.fstat(self._fd).st_size
        except OSError as cause:
            raise _failed(self.path, cause) from cause

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        fds = self._fd, self._medium
        self._fd = self._medium = -1
        for fd in fds:
            if fd >= 0:
                _close(fd)


class OsDisk:
    """Paths as the operating system knows them."""

    __slots__ = ()

    def create(self, path: str) -> OsFile:
        return self._open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open_file(self, path: str, *, write: bool = False) -> OsFile:
        return self._open(path, os.O_RDWR if write else os.O_RDONLY)

    def _open(self, path: str, flags: int) -> OsFile:
        try:
            return OsFile(path, os.open(path, flags | os.O_CLOEXEC, _FILE_MODE))
        except OSError as cause:
            raise _refused(path, cause) from cause

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def size(self, path: str) -> int:
        return self._stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return self._stat(path).st_mtime_ns // 1_000_000

    def _stat(self, path: str) -> os.stat_result:
        try:
            return os.stat(path)
        except OSError as cause:
            raise _failed(path, cause) from cause

    def listdir(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except OSError as cause:
            raise _failed(path, cause) from cause

    def mkdir(self, path: str) -> None:
        try:
            os.mkdir(path, _FOLDER_MODE)
        except OSError as cause:
            raise _refused(path, cause) from cause

    def rmdir(self, path: str) -> None:
        try:
            os.rmdir(path)
        except OSError as cause:
            raise _failed(path, cause) from cause

    def rename(self, old: str, new: str) -> None:
        try:
            os.replace(old, new)
        except OSError as cause:
            raise _refused(old, cause) from cause

    def unlink(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError as cause:
            raise _failed(path, cause) from cause

    def sync_dir(self, path: str) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                _close(fd)
        except OSError as cause:
            raise _failed(path, cause) from cause

    def space(self, path: str) -> Space:
        try:
            found = os.statvfs(path)
        except OSError as cause:
            raise _failed(path, cause) from cause
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        except OSError as cause:
            raise _refused(path, cause) from cause
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
            except OSError as cause:
                raise _failed(path, cause) from cause
            yield
        finally:
            _close(fd)  # gives the lock back
