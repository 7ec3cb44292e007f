"""What the processes of a node keep: descriptors, dead children, names in /dev/shm, memory. What a
fault made them take they give back."""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

MORE_FILES = 40
"""Descriptors that a node may have more than before: connections of clients come and go, and logs
have more segments. Behind a story it is five more or less of 180, and of 80 MiB two or three."""
MORE_BYTES = 64 << 20
LIMIT_S = 60


class Kept(NamedTuple):
    """files: descriptors. bytes: proportional set size. dead: children nobody has waited for.
    shared: files of /dev/shm that still have a name."""

    files: int
    bytes: int
    dead: tuple[int, ...]
    shared: tuple[str, ...]

    def wrong(self, before):
        """What this node may not keep, given what it kept `before`; nothing when all is well."""
        if self.dead:
            return f"nobody has waited for its children {self.dead}"
        if self.shared:
            return f"its memory has names: {self.shared}"
        if self.files > before.files + MORE_FILES:
            return f"it has {self.files} descriptors, and had {before.files}"
        if self.bytes > before.bytes + MORE_BYTES:
            return f"it has {self.bytes >> 20} MiB, and had {before.bytes >> 20}"
        return ""


def kept(node):
    """By a node that runs."""
    links = [link for pid in node.pids() for link in _links(pid)]
    shared = {one for one in links if one.startswith("/dev/shm/") and not one.endswith("(deleted)")}
    return Kept(len(links), node.memory(), _dead(set(node.pids())), tuple(sorted(shared)))


def _links(pid):
    """Where the descriptors of a process lead; nothing when it is gone."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found += [os.readlink(f"/proc/{pid}/fd/{name}")]
    return found


def _dead(parents):
    """Children of these that have ended and are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) in parents:
            found.append(int(path.parent.name))
    return tuple(found)
