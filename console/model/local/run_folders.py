"""Temporary folders of `penstock run`: made, and removed when their run has ended, even by SIGKILL.

A run holds a lock in its folder, which the kernel gives back however the run ends. The next run
removes folders that nobody holds and in which no appliance serves any more.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PREFIX: Final = "penstock-run-"
_LOCK: Final = "run.lock"
_SERVES: Final = "data/.lock"


class RunFolder(NamedTuple):
    """A folder and the descriptor that holds its lock."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Removes the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def make_folder() -> RunFolder:
    """A new one, after those of runs that were killed are removed. Raises OSError."""
    remove_left()
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    made = path / f"{_LOCK}.new"
    lock = os.open(made, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(made, path / _LOCK)  # before that nobody takes the folder for one that was left
    return RunFolder(path, lock)


def remove_left() -> None:
    """Removes the folders of this user whose runs were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or somebody else removes it
            if path.stat().st_uid == os.getuid() and _is_left(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_left(path: Path) -> bool:
    return not _is_held(path / _LOCK) and not (
        (path / _SERVES).exists() and _is_held(path / _SERVES)
    )


def _is_held(lock: Path) -> bool:
    """True if a process holds it. Raises OSError when it is not there."""
    fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
