"""Resource usage of processes and disks: the kernel's account, summed over successive processes of
one place, so that no count goes back at a replacement.

What costs the kernel time (a walk through a process's memory, a list of its descriptors) is looked
at once a minute; ten-second steps say how busy the loops were.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from appliance.base import proc

RARE_NS: Final = 60_000_000_000
SUPERVISOR: Final = "supervisor"
EXPORTER: Final = "exporter"
_KIB: Final = 1024


class Used(NamedTuple):
    """cpu_s: seconds. read, written: bytes that went to and from the disk."""

    cpu_s: float = 0.0
    read: int = 0
    written: int = 0

    def plus(self, other: "Used") -> "Used":
        """Both together."""
        return Used(self.cpu_s + other.cpu_s, self.read + other.read, self.written + other.written)

    def or_more(self, other: "Used") -> "Used":
        """Returns the larger value of each field: a process that has just died reports none."""
        return Used(
            max(self.cpu_s, other.cpu_s),
            max(self.read, other.read),
            max(self.written, other.written),
        )


class _Place:
    """pid: who has it. before: what its predecessors used; now: what this one has."""

    __slots__ = ("before", "memory", "now", "open_files", "pid")

    def __init__(self) -> None:
        self.pid = 0
        self.before = self.now = Used()
        self.memory = self.open_files = 0


class ProcessUsage:
    """Usage of each named process."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._rare_ns = 0

    def read_usage(self, pids: Iterable[tuple[str, int]], now_ns: int) -> None:
        """Read it again. pids: (name, process id, 0 for none) of every place."""
        rare = now_ns >= self._rare_ns
        if rare:
            self._rare_ns = now_ns + RARE_NS
        for name, pid in pids:
            place = self._places.setdefault(name, _Place())
            fresh = pid != place.pid
            if fresh:
                place.before = place.before.plus(place.now)
                place.pid, place.now = pid, Used()
            if pid:
                place.now = place.now.or_more(_used(pid))
            if fresh or rare:
                place.memory = proc.pss_kib(pid) * _KIB if pid else 0
                place.open_files = _open_files(pid) if pid else 0

    def of(self) -> dict[str, tuple[Used, int, int]]:
        """Name → (used, bytes of memory, open descriptors)."""
        return {
            name: (place.before.plus(place.now), place.memory, place.open_files)
            for name, place in self._places.items()
        }


def _used(pid: int) -> Used:
    read = written = 0
    with suppress(OSError, ValueError), open(f"/proc/{pid}/io") as file:
        for line in file:
            name, _, number = line.partition(":")
            if name == "read_bytes":
                read = int(number)
            elif name == "write_bytes":
                written = int(number)
    return Used(proc.cpu_s(pid), read, written)


def _open_files(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0
