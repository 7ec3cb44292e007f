"""Telling systemd how we are: datagrams to $NOTIFY_SOCKET (sd_notify protocol), nothing when it is
not set."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Send one state, such as READY=1 or STOPPING=1."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    if address[0] == "@":
        address = "\0" + address[1:]
    with (
        suppress(OSError),  # a service manager that does not listen must not stop us
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door,
    ):
        door.sendto(state.encode(), address)
