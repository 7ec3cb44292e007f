"""Facts about a process of this host, from /proc. Called by shells and observers."""

import os
from contextlib import suppress
from typing import Final

_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM, _START = 11, 12, 19  # of /proc/<pid>/stat behind the name


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, 0.0 when there is none."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) * _TICK_S
    return 0.0


def runs(pid: int) -> bool:
    """True if the process exists; a zombie has ended."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"
    return False


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since the host booted; -1 when there is none."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[_START])
    return -1


def pss_kib(pid: int) -> int:
    """KiB of memory that a process has for itself, and its part of what it shares (PSS); 0 when
    there is none. The kernel walks through its pages for that: half a ms."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
