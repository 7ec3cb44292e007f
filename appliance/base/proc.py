"""What the kernel says of a process of this host, from /proc. Called by shells and observers."""

import os
from contextlib import suppress
from typing import Final

_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_KIB: Final = os.sysconf("SC_PAGE_SIZE") // 1024
_USER, _SYSTEM = 11, 12  # of /proc/<pid>/stat behind the name
_RESIDENT, _SHARED = 1, 2  # of /proc/<pid>/statm


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, 0.0 when there is none."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) * _TICK_S
    return 0.0


def own_kib(pid: int) -> int:
    """KiB of memory that a process has for itself: resident, and neither of a file nor shared; 0
    when there is none. Cheap, where the exact share of what it shares (PSS) takes the kernel ms."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/statm") as file:
        fields = file.read().split()
        return max(int(fields[_RESIDENT]) - int(fields[_SHARED]), 0) * _PAGE_KIB
    return 0
