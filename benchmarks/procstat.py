"""CPU time, memory and wake-ups of a process and all its descendants, from /proc (Linux only).

Called by the load generator, the idle measurement and the tests that watch memory and pids.
"""

import os
from pathlib import Path
from typing import NamedTuple

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on (the name may hold spaces); None: it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def tree(root: int) -> list[int]:
    """root and its living descendants, ascending; zombies left out."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))) and fields[0] not in "ZX":
            parents[int(name)] = int(fields[1])
    found = {root} & parents.keys()
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return sorted(found)


def cpu_seconds(root: int) -> float:
    """User and system time used so far by the tree, seconds (resolution: one clock tick, mostly 10
    ms).

    The time of children that ended and were waited for is in it too.
    """
    total = 0
    for pid in tree(root):
        if fields := _stat(pid):
            total += sum(int(fields[i]) for i in (11, 12, 13, 14))
    return total * TICK_S


class Memory(NamedTuple):
    """Bytes: proportional set size (shared pages divided by their users) and resident set size."""

    pss: int
    rss: int


def memory(root: int) -> Memory:
    """Memory of the tree. RSS counts a shared page once per process, PSS once in all."""
    sums = {"Pss:": 0, "Rss:": 0}
    for pid in tree(root):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, rest = line.partition(" ")
            if name in sums:
                sums[name] += int(rest.split()[0]) * 1024
    return Memory(sums["Pss:"], sums["Rss:"])


def wakeups(root: int) -> int:
    """Voluntary context switches so far, all threads of the tree: each ended a sleep."""
    total = 0
    for pid in tree(root):
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            try:
                text = status.read_text()
            except OSError:
                continue
            for line in text.splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
    return total
