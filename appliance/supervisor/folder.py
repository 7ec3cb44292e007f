"""The data folder belongs to one appliance at a time, and remembers whether the last one ended in
order.

`.lock` is held with flock. Children inherit it, so a folder stays locked until the last of them is
dead, even when the supervisor was killed: there are never two writers. `.kafka_cleanshutdown` is
Apache Kafka's marker (KIP-966 gave it its content): there only between an orderly end and the next
start.
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from appliance.base import proc
from appliance.base.dataclass import dataclass
from appliance.base.disk import write_file
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import ReservedDisk
from appliance.shell.log import ERROR, Log
from appliance.supervisor.layout import CannotStart

LOCK_NAME: Final = ".lock"
CLEAN_NAME: Final = ".kafka_cleanshutdown"
_PATIENCE_S: Final = 3.0  # for children of a killed supervisor to die
_POLL_S: Final = 0.02
_HOLDER: Final = 32  # bytes in the lock for the id of the process that holds it


class FolderInUse(CannotStart):
    """Another appliance, or what is left of it, works in this folder."""


class DataFolder:
    """The lock on one folder; kept open by the supervisor and its children."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str) -> None:
        """Lock `path`, which exists. Raises FolderInUse; OSError when the folder cannot be
        written."""
        self.path = path
        self._fd = os.open(
            os.path.join(path, LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            self._lock()
        except BaseException:
            os.close(self._fd)
            raise
        with suppress(OSError):  # in place: a full disk may not give back what it was given
            os.pwrite(self._fd, f"{os.getpid()}\n".encode().ljust(_HOLDER), 0)

    def _lock(self) -> None:
        give_up = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as refused:
                if refused.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
            holder = os.pread(self._fd, _HOLDER, 0).decode(errors="replace").strip()
            if time.monotonic() > give_up or _alive(holder):
                raise FolderInUse(
                    f"{self.path} is in use by the process {holder or 'unknown'}: "
                    "stop that one first, or choose another folder with --data"
                )
            time.sleep(_POLL_S)

    def take_clean_marker(self) -> bool:
        """True if the previous appliance stopped in order. Removes the marker durably."""
        try:
            os.unlink(os.path.join(self.path, CLEAN_NAME))
        except FileNotFoundError:
            return False
        self._sync()
        return True

    def write_clean_marker(self) -> None:
        """Everything is flushed and everyone has ended: the very last thing an appliance does.
        Raises StorageFailed; then there is no marker, and the next start checks."""
        path = os.path.join(self.path, CLEAN_NAME)
        disk = ReservedDisk(OsDisk(), [self.path])
        write_file(disk, path, json.dumps({"version": 0, "brokerEpoch": -1}).encode())

    def close(self) -> None:
        """Let go of the lock, as far as this process is concerned."""
        os.close(self._fd)

    def _sync(self) -> None:
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@dataclass(slots=True, frozen=True)
class Folders:
    """All log folders. first: the one of the metadata. others: those besides that could be locked.
    paths: those besides, as the settings name them."""

    first: DataFolder
    others: tuple[DataFolder, ...]
    paths: tuple[str, ...]

    def take_clean_markers(self) -> bool:
        """True if the previous appliance stopped in order in every folder. Removes the markers
        durably.
        """
        found = [one.take_clean_marker() for one in (self.first, *self.others)]
        return all(found)

    def write_clean_markers(self) -> None:
        """The last thing an appliance does; the first folder's marker comes last. Raises
        StorageFailed."""
        for one in (*self.others, self.first):
            one.write_clean_marker()


def lock_others(paths: Sequence[str], log: Log) -> list[DataFolder]:
    """Lock what can be locked; a folder that refuses is offline, which its partitions are then
    too. Raises FolderInUse."""
    locked: list[DataFolder] = []
    try:
        for path in paths:
            try:
                locked.append(DataFolder(path))
            except OSError as refused:
                log.event(ERROR, "log-dir-offline", folder=path, cause=str(refused))
    except BaseException:
        for one in locked:
            one.close()
        raise
    return locked


def _alive(pid: str) -> bool:
    """True if the process that wrote its id into the lock still runs."""
    return pid.isdecimal() and proc.runs(int(pid))
