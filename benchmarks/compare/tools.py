"""Load generators as child processes: started, waited for, and none left behind after a failure.

Called by the loads; the run calls `reap` when a row broke.
"""

import contextlib
import subprocess
from collections.abc import Sequence

from benchmarks.peer import WrongAnswer

LIMIT_S = 300.0
_running: set[subprocess.Popen[str]] = set()


def begin(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start a tool; its output is kept for `finish`."""
    process = subprocess.Popen(
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    _running.add(process)
    return process


def finish(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> str:
    """What it printed. Raises WrongAnswer when it failed or took too long."""
    try:
        said = process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[0]
        raise WrongAnswer(f"not done after {limit_s:g} s: {said[-300:]}") from None
    finally:
        _running.discard(process)
    if process.returncode:
        raise WrongAnswer(f"exit code {process.returncode}: {said[-300:]}")
    return said


def reap() -> None:
    """Kill what still runs: the others of a row whose first one failed."""
    for process in list(_running):
        process.kill()
        with contextlib.suppress(OSError, ValueError):
            process.communicate()
        _running.discard(process)
