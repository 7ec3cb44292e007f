"""The appliance's processes: open files, swap, processors, the limits of their unit."""

from collections.abc import Iterator
from typing import Final

from console.model.doctor.facts import Facts, Process, Unit
from console.model.doctor.finding import CRITICAL, NOTE, WARNING, Finding, in_unit

_MIB: Final = 1 << 20
_BESIDE: Final = 1024
"""Descriptors for connections and for the process itself."""
_EACH: Final = 4
"""Descriptors a partition may take in one process: its newest segment, its indexes, one that is
read."""
_OPENS_SEGMENTS: Final = ("netproc", "ioproc")
_LEAST_UNIT: Final = 512 * _MIB


def judge(facts: Facts) -> Iterator[Finding]:
    """Findings about the running processes, or about the limits of one started here."""
    needed = _BESIDE + _EACH * facts.partitions
    for one in facts.processes:
        yield from _open_files(one, needed if one.name.startswith(_OPENS_SEGMENTS) else 0)
        yield from _swapped(one)
    if not facts.runs and 0 < facts.files_limit < needed:
        yield Finding(
            level=WARNING, check="open-files", subject="this shell",
            found=f"at most {facts.files_limit:,} open files",
            wanted=f"{needed:,} for {facts.partitions:,} partitions",
            why="when none is left, connections are refused and folders go offline",
            remedy="raise the hard limit: /etc/security/limits.conf, LimitNOFILE= in a unit",
        )  # fmt: skip
    if facts.host is not None and facts.runs:
        yield from _processors(facts, facts.host.cpus)
    if facts.unit is not None:
        yield from _unit(facts.unit)


def _open_files(one: Process, needed: int) -> Iterator[Finding]:
    limit = one.files_limit
    if not limit or (limit >= needed and one.files_open * 10 < limit * 8):
        return
    wanted = max(needed, 2 * one.files_open)
    yield Finding(
        level=CRITICAL if one.files_open * 10 >= limit * 9 else WARNING,
        check="open-files", subject=f"{one.name} ({one.pid})",
        found=f"{one.files_open:,} of at most {limit:,} open files", wanted=f"{wanted:,}",
        why="when none is left, connections are refused and folders go offline",
        remedy="raise it now, and for the next start: LimitNOFILE= of its unit, or limits.conf",
        command=("prlimit", "--pid", str(one.pid), f"--nofile={wanted}:{wanted}"),
        safe=True, needs_root=True,
    )  # fmt: skip


def _swapped(one: Process) -> Iterator[Finding]:
    if one.swapped < 4 * _MIB:
        return
    yield Finding(
        level=WARNING, check="swapped", subject=f"{one.name} ({one.pid})",
        found=f"{in_unit(one.swapped)} of it are in swap", wanted="none",
        why="a request that needs them waits for the disk, and every other one behind it",
        remedy="give the host more memory, or lower vm.swappiness; MemorySwapMax=0 in its unit",
    )  # fmt: skip


def _processors(facts: Facts, cpus: int) -> Iterator[Finding]:
    work = [one.name for one in facts.processes if one.name.startswith(_OPENS_SEGMENTS)]
    have = min(cpus, facts.unit.cpus or cpus) if facts.unit is not None else cpus
    if len(work) <= 2 or len(work) <= have:
        return
    yield Finding(
        level=NOTE, check="processors", subject=f"{len(work)} network and I/O processes",
        found=f"{have:g} processors", wanted=f"{len(work)} processors, or fewer processes",
        why="they take turns instead of working beside each other",
        remedy="lower penstock.net.processes and penstock.io.processes, and start it again",
    )  # fmt: skip


def _unit(unit: Unit) -> Iterator[Finding]:
    if unit.tasks is not None and unit.tasks_now * 10 >= unit.tasks * 8:
        yield _limit(unit, CRITICAL, "TasksMax", f"{unit.tasks_now} of {unit.tasks} tasks", "4096",
                     "a process that died cannot be started again")  # fmt: skip
    if unit.memory is not None and unit.memory < _LEAST_UNIT:
        yield _limit(unit, WARNING, "MemoryMax", in_unit(unit.memory), "1G",
                     "the page cache counts, so records are read from the disk, and who is"
                     " above it is killed")  # fmt: skip
    if unit.cpus is not None and unit.cpus < 1:
        yield _limit(unit, WARNING, "CPUQuota", f"{unit.cpus:.0%} of a processor", "200%",
                     "all processes are paused for the rest of each period")  # fmt: skip


def _limit(unit: Unit, level: str, name: str, found: str, wanted: str, why: str) -> Finding:
    return Finding(
        level=level, check="unit-limits", subject=f"{unit.name} {name}", found=found,
        wanted=wanted, why=why, remedy="set it in the unit",
        command=("systemctl", "set-property", unit.name, f"{name}={wanted}"),
        safe=True, needs_root=True,
    )  # fmt: skip
