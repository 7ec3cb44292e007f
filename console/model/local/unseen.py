"""Restarting an appliance whose memory this program cannot read, because it is of another version:
what an upgrade meets as a rule, and a step back by the newer command. Its processes and listeners
show how far it is, until its successor can be read, or answers.
"""

import os
import time
from contextlib import suppress
from typing import Final

from appliance.base import proc
from appliance.exporter.knock import unanswered
from appliance.exporter.post import PLAINTEXT, Address
from appliance.observer.door import NotThere, Observer, of_another_version, segment
from console.model.asking.failure import UNREACHABLE, Failure
from console.model.doctor.reading import listening

_EVERY_S: Final = 0.02
_CHECK: Final = b"--check"
BEGINS_S: Final = 10.0
"""From the check on: so long an appliance that agreed may take to let its first process go."""
_SETTLES_S: Final = 0.3
"""Tables that are made just now cannot be read for a moment, whatever their version."""
_KNOCK_S: Final = 0.2


class Way:
    """The progress of the appliance of process `pid` after it was asked to hand over. agreed_ms:
    when its end had begun, in ms of the wall clock; 0 before.
    """

    def __init__(self, data_dir: str, pid: int) -> None:
        self._data_dir, self._pid = data_dir, pid
        self._before = set(_children(pid))
        self._unread = Unread(data_dir, pid)
        self._checked_s = 0.0  # when the check was last seen, 0: not yet
        self.agreed_ms = 0

    def find_successor(self) -> bool:
        """True if there is a successor. Raises Failure: it was refused."""
        with suppress(NotThere, FileNotFoundError):
            started_ms = Observer(self._data_dir).head.started_ms
            self.agreed_ms = self.agreed_ms or started_ms - 1
            return True
        if self.agreed_ms and self._unread.is_there():
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


class Unread:
    """A successor of the appliance that is there now, in the same process, whose tables this
    program cannot read."""

    def __init__(self, data_dir: str, pid: int) -> None:
        self._data_dir, self._pid = data_dir, pid
        self._former = self._memory()
        self._since_s = 0.0

    def is_there(self) -> bool:
        """True once it has its own tables, which this version cannot read."""
        with suppress(NotThere, FileNotFoundError):
            found = self._memory()
            if found and found != self._former and of_another_version(self._data_dir):
                self._since_s = self._since_s or time.monotonic()
                return time.monotonic() - self._since_s >= _SETTLES_S
        self._since_s = 0.0
        return False

    def serves(self) -> bool:
        """True if it answers at one of its listeners: connections wait until it serves."""
        return self.is_there() and not unanswered(_listeners(self._pid), _KNOCK_S)

    def _memory(self) -> tuple[int, int]:
        """Which memory the tables lie in."""
        with suppress(NotThere, OSError):
            found = os.stat(segment(self._data_dir))
            return found.st_dev, found.st_ino
        return 0, 0


def follow(data_dir: str, way: Way, pid: int, until_s: float) -> int:
    """Wait until there is a successor: when the end had begun, in ms of the wall clock. Raises
    Failure: nothing came of it."""
    while time.monotonic() < until_s:
        if way.find_successor():
            return way.agreed_ms
        if not proc.runs(pid):
            break
        time.sleep(_EVERY_S)
    else:
        raise Failure(
            "the appliance has not made way in time", "penstock status shows its state",
            where=data_dir, code=UNREACHABLE, name="TIMED_OUT",
        )  # fmt: skip
    return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _children(pid: int) -> list[int]:
    return [int(one) for one in _text(f"/proc/{pid}/task/{pid}/children").split()]


def _listeners(pid: int) -> list[Address]:
    """Each socket at which the process listens, as connects who means this host. Which speak TLS is
    not known, so each is there with it and without."""
    held = set()
    with suppress(OSError):
        for fd in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                held.add(os.readlink(fd.path))
    places = {
        (host, port)
        for file in ("tcp", "tcp6")
        for host, port, inode in listening(_text(f"/proc/{pid}/net/{file}"))
        if f"socket:[{inode}]" in held
    }
    return [Address(*one, protocol=said) for said in (PLAINTEXT, "SSL") for one in sorted(places)]


def _text(path: str) -> str:
    with suppress(OSError), open(path) as file:
        return file.read()
    return ""


def _words(pid: int) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""
