"""Core files: the memory of a process that fails has passwords and records in it, and goes to a
folder, a crash reporter or another host. So none of a process's own memory is in one.

Children inherit it: processes of an appliance, runners of jobs and their JVM. `/proc/PID/
coredump_filter` of a running process takes it back, for who looks for a fault.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

_FILTER: Final = Path("/proc/self/coredump_filter")
_HEADERS_ALONE: Final = "0x10"
"""Headers of programs and libraries: which they were, and nothing of what they held."""


def leave_memory_out() -> None:
    """Takes memory out of this process's core file, and out of its children's. A system without
    that filter writes what it writes."""
    with suppress(OSError):
        _FILTER.write_text(_HEADERS_ALONE)
