"""Formats the doctor's findings for a person and as rows."""

from collections.abc import Sequence

from console.called import typed
from console.model.doctor.finding import Finding
from console.show.output import Row, plain


def rows(found: Sequence[Finding]) -> list[Row]:
    """A row for each, the same columns always."""
    return [
        {
            "level": one.level,
            "check": one.check,
            "subject": one.subject,
            "found": one.found,
            "wanted": one.wanted,
            "why": one.why,
            "remedy": one.remedy,
            "command": one.typed or None,
            "needs_root": one.needs_root,
        }
        for one in found
    ]


def lines(found: Sequence[Finding], uid: int) -> list[str]:
    """As they are read: what is, what it should be, why, what to do."""
    said = []
    for one in found:
        said.append(f"{one.level}: {one.subject}: {one.found} (should be: {one.wanted})")
        said.append(f"    {one.why}")
        said.append(typed(f"    remedy: {one.remedy}"))
        if one.command:
            root = "sudo " if one.needs_root and uid != 0 else ""
            said.append(f"    $ {root}{one.typed}")
    return [plain(line) for line in said]


def summary(found: Sequence[Finding]) -> str:
    """How many of each, worst first: `1 critical, 2 warnings, 1 note`."""
    counts: dict[str, int] = {}
    for one in found:
        counts[one.level] = counts.get(one.level, 0) + 1
    parts = [
        f"{count} {level}{'' if count == 1 or level == 'critical' else 's'}"
        for level, count in counts.items()
    ]
    return ", ".join(parts) or "nothing is wrong"
