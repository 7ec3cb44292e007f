"""Opens and removes the owner's socket (`base/owner.py`): mode 0600, in the data folder.

The path of a Unix-domain socket has at most 107 bytes, so it is bound through a descriptor of the
folder, whatever the folder's own path. It replaces one that a killed appliance has left.
"""

import os
import socket
from contextlib import suppress
from typing import Final

from appliance.base.owner import FILE

_NEW: Final = f"{FILE}.new"
_MASK: Final = 0o177


def open_socket(folder: str, backlog: int) -> socket.socket:
    """Returns the listening socket, non-blocking. Raises OSError."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    mask = os.umask(_MASK)
    try:
        with suppress(FileNotFoundError):
            os.unlink(_NEW, dir_fd=within)
        one.bind(f"/proc/self/fd/{within}/{_NEW}")
        one.listen(backlog)
        os.rename(_NEW, FILE, src_dir_fd=within, dst_dir_fd=within)
    except BaseException:
        one.close()
        raise
    finally:
        os.umask(mask)
        os.close(within)
    return one


def remove(folder: str) -> None:
    """Remove the socket at an orderly end."""
    with suppress(OSError):
        os.unlink(f"{folder}/{FILE}")
