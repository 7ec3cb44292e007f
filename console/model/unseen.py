"""Restarting an appliance whose memory this program cannot read, because it is of another version:
what an upgrade meets as a rule. Its processes show how far it is, until its successor, which is
this version, can be read.
"""

import time
from contextlib import suppress
from typing import Final

from appliance.base import proc
from appliance.observer.door import NotThere, Observer
from console.model.failure import UNREACHABLE, Failure

_EVERY_S: Final = 0.02
_CHECK: Final = b"--check"
BEGINS_S: Final = 10.0
"""From the check on: so long an appliance that agreed may take to let its first process go."""


class Way:
    """What becomes of the appliance of process `pid` after it was asked to make way. agreed_ms:
    when its end had begun, in ms of the wall clock; 0 before."""

    def __init__(self, data_dir: str, pid: int) -> None:
        self._data_dir, self._pid = data_dir, pid
        self._before = set(_children(pid))
        self._checked_s = 0.0  # when the check was last seen, 0: not yet
        self.agreed_ms = 0

    def look(self) -> bool:
        """Whether a successor can be read. Raises Failure: it was refused."""
        with suppress(NotThere, FileNotFoundError):
            started_ms = Observer(self._data_dir).head.started_ms
            self.agreed_ms = self.agreed_ms or started_ms - 1
            return True
        children = _children(self._pid)
        if not self.agreed_ms and not self._before <= set(children):
            self.agreed_ms = _now_ms()
        elif any(_CHECK in _words(one) for one in children):
            self._checked_s = time.monotonic()
        elif not self.agreed_ms and 0 < self._checked_s < time.monotonic() - BEGINS_S:
            raise Failure(
                "the program that is installed would not start; the log of the appliance says why",
                "nothing has changed: it serves as before",
                where=self._data_dir, name="RESTART_REFUSED",
            )  # fmt: skip
        return False


def follow(data_dir: str, way: Way, pid: int, until_s: float) -> int:
    """Wait until a successor can be read: when the end had begun, in ms of the wall clock. Raises
    Failure: nothing came of it."""
    while time.monotonic() < until_s:
        if way.look():
            return way.agreed_ms
        if not proc.runs(pid):
            break
        time.sleep(_EVERY_S)
    else:
        raise Failure(
            "the appliance has not made way in time", "penstock status says how it is",
            where=data_dir, code=UNREACHABLE, name="TIMED_OUT",
        )  # fmt: skip
    return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _children(pid: int) -> list[int]:
    with suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(one) for one in file.read().split()]
    return []


def _words(pid: int) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""
