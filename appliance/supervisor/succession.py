"""Making way for a successor that takes over the listening sockets: SIGUSR2 (decision 87).

First the program on the disk, which an upgrade may have changed, says whether it would start with
these settings and this folder, while everybody is served. Where it would not, nothing has happened.
Else the appliance ends in order, up to the marker, and only then this process becomes the successor
by exec: the folder's lock is free by then, the process id stays, and so do the listening sockets,
in whose queues those wait who connect meanwhile, and the connections, whose clients wait for an
answer. Called by `supervisor/main.py`.
"""

import fcntl
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from appliance.base.dataclass import dataclass
from appliance.shell import handed_connection
from appliance.shell.handed_connection import HandedConnection
from appliance.shell.log import ERROR, INFO, WARNING, Log
from appliance.supervisor.activation import FIRST, Passed, make_environment
from appliance.supervisor.fleet import SECOND
from appliance.supervisor.notify import SUCCEEDS

SUCCEED: Final = signal.SIGUSR2
"""Asks a supervisor for it."""
REFUSED: Final = "restart-refused"
"""Event: cause. Everything goes on."""
BEGUN: Final = "restarting"
"""Event: the end begins; the next that is heard is of the successor."""
CHECK_LIMIT_S: Final = 60.0
_SAID_BYTES: Final = 4096
_ERROR: Final = "penstock: "
"""The beginning of an error of a command, which may have several lines."""
OWN_PORTS: Final = "PENSTOCK_OWN_PORTS"
"""Environment of a check: the ports of who makes way, which will be free for the successor."""
_GUESTS: Final = "PENSTOCK_GUESTS"
"""Environment of a successor: the descriptor of the file that tells of its connections."""
_UNKNOWN: Final = "No such option: --check"
"""Of a version from before there was one."""


@dataclass(slots=True, frozen=True)
class Successor:
    """command: starts it. check: says by its exit code whether that would work, and why not by its
    last lines on stderr. environment: what it is told beside, at its start."""

    command: tuple[str, ...]
    check: tuple[str, ...]
    environment: Callable[[], Mapping[str, str]] = dict


class Succession:
    """due: the appliance is to end now, and its successor to come."""

    def __init__(
        self,
        successor: Successor | None,
        epoll: select.epoll,
        log: Log,
        own_ports: Callable[[], Iterable[int]] = list,
    ) -> None:
        """No successor: it cannot be had. own_ports: at which this appliance listens."""
        self.due = False
        self._own_ports = own_ports
        self._successor = successor
        self._epoll = epoll
        self._log = log
        self._check: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._until_ns = 0

    def begin_check(self, now_ns: int, *, ready: bool) -> None:
        """Somebody asks for it: look whether it would start. ready: this one serves."""
        if self.due or self._check is not None:
            return
        if not ready:
            self._refuse("it has not begun to serve")
            return
        if self._successor is None:
            self._refuse("how it was started is not known: end it, and start it")
            return
        ports = ",".join(map(str, self._own_ports()))
        try:
            self._check = subprocess.Popen(
                self._successor.check, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, env=_own_environment() | {OWN_PORTS: ports},
            )  # fmt: skip
        except OSError as problem:
            self._refuse(f"{self._successor.check[0]}: {problem.strerror}")
            return
        self._until_ns = now_ns + int(CHECK_LIMIT_S * SECOND)
        self._pidfd = os.pidfd_open(self._check.pid)
        self._epoll.register(self._pidfd, select.EPOLLIN)

    def finish_check(self, now_ns: int) -> None:
        """Hear what was found, if it is."""
        check = self._check
        if check is None:
            return
        code = check.poll()
        if code is None and now_ns < self._until_ns:
            return
        said = "" if code is None else _last_words(check)
        self.close()
        if code == 0:
            self.due = True
            self._log.event(INFO, BEGUN)
        elif code is None:
            self._refuse(f"the program on the disk did not say within {CHECK_LIMIT_S:g} s")
        elif _UNKNOWN in said:
            self._refuse("the program on the disk cannot take over: end this one, and start that")
        else:
            self._refuse(f"the program on the disk would not start: {said or f'exit code {code}'}")

    def close(self) -> None:
        """Kills the trial start, if one runs."""
        if self._check is None:
            return
        self._check.kill()
        self._check.wait()
        assert self._check.stderr is not None
        self._check.stderr.close()
        self._check = None
        self._epoll.unregister(self._pidfd)
        os.close(self._pidfd)

    def _refuse(self, cause: str) -> None:
        self._log.event(WARNING, REFUSED, cause=cause)

    def become(
        self,
        listening: Sequence[Passed],
        guests: Sequence[HandedConnection],
        names: Sequence[str],
    ) -> None:
        """Everything has ended and is let go of: go on as the successor. names: of the listeners,
        by their number. Returns when there is none, which is said."""
        assert self._successor is not None and self.due
        command = self._successor.command
        environment = _own_environment() | make_environment(listening, os.getpid())
        environment |= {SUCCEEDS: str(os.getpid()), **self._successor.environment()}
        over = FIRST + len(listening)
        try:
            kept = [(_survives(one.sock.fileno(), over), one) for one in guests]
            if kept:
                environment[_GUESTS] = str(_survives(handed_connection.pack(kept, names), over))
            _exec(command, environment, [one.sock.fileno() for one in listening])
        except OSError as problem:
            cause = f"{command[0]}: {problem.strerror}; all is flushed, and no process serves"
            self._log.event(ERROR, "successor-not-started", cause=cause)


def guests_of(environ: MutableMapping[str, str], names: Sequence[str]) -> list[HandedConnection]:
    """The connections that the previous appliance handed over. names: of the listeners, by their
    number.
    """
    file = environ.pop(_GUESTS, "")
    return handed_connection.unpack(int(file), names) if file else []


def _survives(fd: int, lowest: int) -> int:
    """The same file at a descriptor that an exec leaves open, from that number on."""
    if fd < lowest:
        return fcntl.fcntl(fd, fcntl.F_DUPFD, lowest)
    os.set_inheritable(fd, True)
    return fd


def _last_words(check: subprocess.Popen[bytes]) -> str:
    assert check.stderr is not None
    os.set_blocking(check.stderr.fileno(), False)
    lines = (check.stderr.read() or b"")[-_SAID_BYTES:].decode(errors="replace").splitlines()
    errors = [number for number, line in enumerate(lines) if line.startswith(_ERROR)]
    said = lines[errors[-1] :] if errors else lines[-2:]
    return "; ".join(line.strip() for line in said if line.strip())


def _own_environment() -> dict[str, str]:
    """Without what was passed to this process by its number, which stays the same."""
    return {key: value for key, value in os.environ.items() if not key.startswith("LISTEN_")}


def _exec(command: Sequence[str], environment: Mapping[str, str], sockets: list[int]) -> NoReturn:
    """Raises OSError."""
    over = FIRST + len(sockets)
    kept = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, over) for fd in sockets]
    for number, fd in enumerate(kept, FIRST):  # all others close themselves
        os.dup2(fd, number)
    signal.signal(SUCCEED, signal.SIG_IGN)  # until it listens to that, it is no end
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # whoever read it may have gone
            stream.flush()
    os.execve(command[0], list(command), environment)
