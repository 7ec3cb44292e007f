"""A finding: what is, what it should be, why that matters, and what is done about it."""

import shlex
from dataclasses import dataclass
from typing import Final

CRITICAL: Final = "critical"  # service or data will be lost
WARNING: Final = "warning"
NOTE: Final = "note"  # worth knowing; no exit code comes of it
LEVELS: Final = (CRITICAL, WARNING, NOTE)


@dataclass(slots=True, frozen=True, kw_only=True)
class Finding:
    """check: its name, for scripts. subject: which folder, process, address or setting. remedy: in
    words. command: what applies it, as arguments; () where there is none. safe: it may be run on a
    user's yes. needs_root: by root alone."""

    level: str
    check: str
    subject: str
    found: str
    wanted: str
    why: str
    remedy: str
    command: tuple[str, ...] = ()
    safe: bool = False
    needs_root: bool = False

    def __post_init__(self) -> None:
        assert self.level in LEVELS
        assert self.command or not (self.safe or self.needs_root)

    @property
    def typed(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.command)

    def may_be_applied(self, uid: int) -> bool:
        """True if this user may have the remedy applied."""
        return self.safe and (uid == 0 or not self.needs_root)


def in_unit(count: int) -> str:
    """Bytes, with the unit that suits: 12 MiB, 3.4 GiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
