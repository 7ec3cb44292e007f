"""Many files made durable by one call."""

import ctypes
import os


def sync_all(folder: str) -> None:
    """Everything on the file system of a folder: thousands of small files are thousands of commits
    else. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), folder)
    finally:
        os.close(fd)
