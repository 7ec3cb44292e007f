"""The process that `forked.py` has appliances forked from.

It imports what an appliance runs, then forks for each connection. Called as a script with the
folder of the packages, the numbers of the listening socket and of a pipe for readiness, and room
for a command. It ends with its parent.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

MOST_BYTES = 1 << 20
FAR = 500
"""Descriptors from here on are in nobody's way while the others take their numbers."""


def preload(root):
    """What `penstock up` imports, in its order."""
    if not root.endswith("-packages"):
        sys.path.insert(0, root)
    sys.modules["hypothesis"] = None  # as console.main does
    import appliance.supervisor.main  # noqa: F401
    import console.root
    import console.streams
    from console.commands import up

    up.preload()
    assert console.root and console.streams
    return up


def serve(listener, parent):
    """Forks; returns in each child, with what was asked and its descriptors."""
    ends = select.poll()
    ends.register(listener, select.POLLIN)
    ends.register(parent, select.POLLIN)
    while True:
        if any(fd == parent for fd, _ in ends.poll()):
            sys.exit(0)
        link, _ = listener.accept()
        message, descriptors, _, _ = socket.recv_fds(link, MOST_BYTES, 16)
        if message:
            ours, theirs = os.pipe()
            between = os.fork()
            if not between:
                if not (child := os.fork()):
                    return json.loads(message), descriptors
                os.write(theirs, str(child).encode())
                os._exit(0)
            os.close(theirs)
            os.waitpid(between, 0)  # from now on its child is our parent's
            link.send(os.read(ours, 64))
            os.close(ours)
        for one in descriptors:
            os.close(one)
        link.close()


def become(asked, descriptors):
    """The process that was asked for, as if it had been executed."""
    if asked["session"]:
        os.setsid()
    far = []
    for number, one in enumerate(descriptors):
        os.dup2(one, FAR + number, inheritable=False)
        far.append(FAR + number)
    os.closerange(3, FAR)
    for one, number in zip(far, asked["as"], strict=True):
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


root, listening, ready = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
up = preload(root)
LISTENER = socket.socket(fileno=listening)
PARENT = os.pidfd_open(os.getppid())
os.write(ready, b"!")
os.close(ready)
interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for what it forked
asked = serve(LISTENER, PARENT)
LISTENER.detach()  # the numbers are the appliance's from now on
signal.signal(signal.SIGINT, interrupts)
become(*asked)
up.BEGAN_S = time.monotonic()
from console import main  # noqa: E402

main()
