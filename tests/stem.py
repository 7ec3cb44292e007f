"""The process that `forked.py` has appliances forked from: it imports what an appliance runs, then
forks for each message on its socket. Called as a script with the socket's number and with room for
a command."""

import ctypes
import json
import os
import socket
import sys
import time
from pathlib import Path

MOST = 1 << 20
FAR = 500
"""Descriptors from here on are in nobody's way while the others take their numbers."""


def preload():
    """What `penstock up` imports, in its order."""
    sys.modules["hypothesis"] = None  # as console.main does
    import appliance.supervisor.main  # noqa: F401
    import console.root
    from console.commands import up

    up._preload()
    assert console.root
    return up


def serve(link):
    """Forks; returns in each child, with what was asked and its descriptors."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(link, MOST, 16)
        if not message:
            sys.exit(0)
        ours, theirs = os.pipe()
        between = os.fork()
        if not between:
            if not (child := os.fork()):
                os.close(ours)
                os.close(theirs)
                link.close()
                return json.loads(message), descriptors
            os.write(theirs, str(child).encode())
            os._exit(0)
        os.close(theirs)
        os.waitpid(between, 0)  # from now on its child is our parent's
        for one in descriptors:
            os.close(one)
        link.send(os.read(ours, 64))
        os.close(ours)


def become(asked, descriptors):
    """The process that was asked for, as if it had been executed."""
    if asked["session"]:
        os.setsid()
    numbers = asked["as"]
    far = []
    for number, one in enumerate(descriptors):
        os.dup2(one, FAR + number, inheritable=False)
        far.append(FAR + number)
    os.closerange(3, FAR)
    for one, number in zip(far, numbers, strict=True):
        os.dup2(one, number)
        os.close(one)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    words = asked["words"]
    show(words)
    at = words.index("console")
    sys.orig_argv[:] = words
    sys.argv[:] = [str(Path(sys.modules["console"].__file__).with_name("__main__.py"))]
    sys.argv += words[at + 1 :]


def show(words):
    """The command, where the kernel finds what it tells of us."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    told = b"\0".join(word.encode() for word in words)
    room = end - begin
    ctypes.memmove(begin, told[: room - 1].ljust(room, b"\0"), room)


up = preload()
become(*serve(socket.socket(fileno=int(sys.argv[1]))))
up.BEGAN_S = time.monotonic()
from console import main  # noqa: E402

main()
