"""A child that ends when this process ends, however that ends: a variable of its environment names
this process, and every `penstock` command watches the process that is named to it.

A variable, because it reaches a child behind a shell too. The number of a process comes with its
start, so that nobody who gets the same number later is taken for it.
"""

import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "PENSTOCK_ENDS_WITH"
"""PID:START of the process, START in clock ticks since the host booted; proc_pid_stat(5)."""
_START: Final = 19  # counted from the state, behind the name


def environment() -> dict[str, str]:
    """The variable for a child that ends with this process."""
    return {VARIABLE: process_name(os.getpid())}


def process_name(pid: int) -> str:
    """PID:START of a living process. Raises OSError when there is none."""
    told = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return f"{pid}:{told.rpartition(')')[2].split()[_START]}"
