"""All findings, worst first."""

from console.model.doctor import bounds, network, processes, storage, system
from console.model.doctor.facts import Facts
from console.model.doctor.finding import CRITICAL, LEVELS, WARNING, Finding

CLEAN, WARNED, LOSES = 0, 1, 2
"""Exit codes of `penstock doctor`."""


def findings(facts: Facts) -> list[Finding]:
    """The findings of all judges, worst first; those of the same level in their order."""
    found = [
        one for room in (storage, network, bounds, processes, system) for one in room.judge(facts)
    ]  # fmt: skip
    return sorted(found, key=lambda one: LEVELS.index(one.level))


def code(found: list[Finding]) -> int:
    """The exit code for these findings."""
    levels = {one.level for one in found}
    return LOSES if CRITICAL in levels else WARNED if WARNING in levels else CLEAN
