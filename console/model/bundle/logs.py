"""The last lines of logs: files that somebody names, and the journal where systemd runs the
appliance."""

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from console.model.asking.failure import Failure

MOST_BYTES: Final = 2 << 20
_LINES: Final = 5000
_JOURNAL_S: Final = 8.0
_UNIT: Final = re.compile(r"[\w@.:-]+\.service")
_DEFAULT_UNIT: Final = "penstock.service"


def tail(path: str) -> str:
    """The last whole lines of a file. Raises OSError."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MOST_BYTES))
        data = file.read(MOST_BYTES)
    if size > MOST_BYTES:
        data = data.partition(b"\n")[2]  # half a line may have half a secret
    return data.decode(errors="replace")


def journal(pid: int) -> str:
    """The systemd journal of the appliance's unit. Raises OSError, Failure."""
    command = ["journalctl", "--unit", _unit(pid), "--lines", str(_LINES)]
    options = ["--no-pager", "--quiet", "--no-hostname", "--output", "short-iso"]
    try:
        done = subprocess.run(
            command + options, capture_output=True, timeout=_JOURNAL_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError:
        raise Failure("there is no journalctl on this host") from None
    except subprocess.TimeoutExpired:
        raise Failure("journalctl did not answer in time") from None
    if done.returncode:
        raise Failure(done.stderr.decode(errors="replace").strip() or "journalctl refused")
    return done.stdout[-MOST_BYTES:].decode(errors="replace")


def _unit(pid: int) -> str:
    """The service that a process belongs to."""
    with suppress(OSError):
        for part in Path(f"/proc/{pid}/cgroup").read_text().replace("\n", "/").split("/"):
            if _UNIT.fullmatch(part) and part.startswith("penstock"):
                return part
    return _DEFAULT_UNIT
