"""Asking systemd, by its own programs."""

import shutil
import subprocess
from typing import Final

from console.model.asking.failure import Failure

_LIMIT_S: Final = 600.0
"""A start replays the log that was not known to be flushed, and `systemctl start` waits for it."""


class Systemd:
    """The host's manager, or with for_user the one of whoever calls."""

    def __init__(self, for_user: bool) -> None:
        self._scope = ("--user",) if for_user else ()

    def ctl(self, *words: str, must: bool = True) -> str:
        """The output of `systemctl WORDS`. Raises Failure when it fails and must not."""
        return _run("systemctl", (*self._scope, *words), must)

    def sysusers(self, path: str) -> None:
        """Make the users that a file of sysusers.d names."""
        _run("systemd-sysusers", (path,), True)

    def last_error(self, unit: str) -> str:
        """The last line that the unit's newest start said as an error, "" when it said none, or
        nobody may read it."""
        invocation = self.properties(unit, ("InvocationID",))["InvocationID"]
        if not invocation or shutil.which("journalctl") is None:
            return ""
        words = (
            *self._scope, "--quiet", "--priority=err", "--lines=1", "--output=cat",
            f"_SYSTEMD_INVOCATION_ID={invocation}",
        )  # fmt: skip
        return _run("journalctl", words, False).strip()

    def properties(self, unit: str, names: tuple[str, ...]) -> dict[str, str]:
        """The properties of a unit, installed or not."""
        said = self.ctl("show", unit, f"--property={','.join(names)}")
        known = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        return {name: known.get(name, "") for name in names}


def _run(program: str, words: tuple[str, ...], must: bool) -> str:
    if shutil.which(program) is None:
        raise Failure(
            f"there is no {program} here", "services need systemd; elsewhere: penstock up"
        )
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=_LIMIT_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if must and done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise Failure(
            f"{program} {' '.join(words)} failed: {said[0] if said else done.returncode}",
            "penstock service logs tells what the service said",
        )
    return done.stdout
