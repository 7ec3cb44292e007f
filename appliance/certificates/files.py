"""The files that certificates are read from, and what makes a change of one noticed.

A stamp is taken before the file is read: what is written meanwhile gives another one at the next
look. Links are followed, so that one that points elsewhere (certbot, Kubernetes) is a change.
"""

import os
import stat
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from appliance.base.errors import ConfigError

MOST: Final = 1 << 20
"""Bytes of a store: a chain has a few thousand, all authorities of a system have 250 KB."""

_TICK_NS: Final = 50_000_000
"""More than the step in which kernels count the times of files."""
_AHEAD_NS: Final = 1_000_000_000
"""A time further ahead is of another clock, and stays."""


class Stamp(NamedTuple):
    """How a file was when it was read. mtime_ns: 0 for one that is not there; negative, and never
    the same again, for one that was written so lately that it may be again at the same time."""

    path: str
    mtime_ns: int
    ctime_ns: int  # moves when only who may read it has changed
    size: int
    inode: int


def stamp(path: str) -> Stamp:
    """How it is now."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return Stamp(path, 0, 0, 0, 0)
    now_ns = time.time_ns()
    young = -_AHEAD_NS < now_ns - found.st_mtime_ns < _TICK_NS
    written_ns = -now_ns if young else found.st_mtime_ns
    return Stamp(path, written_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def stamps(paths: Iterable[str]) -> tuple[Stamp, ...]:
    """Returns the stamps of several files."""
    return tuple(stamp(path) for path in paths)


def changed(stamps: Iterable[Stamp]) -> bool:
    """True if any of the files has changed."""
    return any(stamp(one.path) != one for one in stamps)


def read(path: str, key: str) -> bytes:
    """Reads the file. key: the setting that names it. Raises ConfigError."""
    try:
        # A pipe would keep us waiting for a writer.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as cause:
        raise ConfigError(f"{key}: {path} cannot be read: {_why(cause)}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ConfigError(f"{key}: {path} is no file; name the file itself")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MOST + 1)
    except OSError as cause:
        raise ConfigError(f"{key}: {path} cannot be read: {_why(cause)}") from None
    finally:
        os.close(fd)
    if len(data) > MOST:
        raise ConfigError(f"{key}: {path} is larger than {MOST} bytes, so it is no store")
    if not data:
        raise ConfigError(f"{key}: {path} is empty")
    return data


def _why(cause: OSError | ValueError) -> str:
    if isinstance(cause, PermissionError):
        return (
            "the user that runs the appliance may not; let its group read it (chgrp, chmod 640),"
            " and pass through its folder"
        )
    if isinstance(cause, FileNotFoundError):
        return "there is no such file"
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
