"""Telling systemd how we are: datagrams to $NOTIFY_SOCKET (sd_notify protocol), nothing when it is
not set."""

import os
import socket
from collections import deque
from collections.abc import Mapping
from typing import Final

EXTENDED_S: Final = 120
"""For so long a start may go on from the moment at which it was last seen to get on."""
SUCCEEDS: Final = "PENSTOCK_SUCCEEDS"
"""Environment of a process that goes on as another appliance than the one which systemd started:
its own id."""
_OFTEN: Final = 3
"""A watchdog is fed so often in the time that it gives."""
_ALIVE: Final = "WATCHDOG=1"
_MOST_UNSENT: Final = 64


class Manager:
    """The service manager that started this process, if one did. feeds_ns: how often its watchdog
    is to be fed; 0: there is none.

    The kernel queues few datagrams for who does not read just now (net.unix.max_dgram_qlen), and
    READY=1 is said once: what finds no room is said again before what comes next, in its order.
    """

    def __init__(self, environ: Mapping[str, str], pid: int) -> None:
        """environ: NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID as systemd sets them, SUCCEEDS.
        pid: this process's."""
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = address if address[:1] in ("/", "@") else ""
        usec = environ.get("WATCHDOG_USEC", "")
        mine = environ.get("WATCHDOG_PID", str(pid)) == str(pid)
        self.feeds_ns = int(usec) * 1000 // _OFTEN if usec.isdecimal() and mine else 0
        self._succeeds = environ.get(SUCCEEDS) == str(pid)
        self._unsent: deque[str] = deque(maxlen=_MOST_UNSENT)
        self._status = ""
        self._fed_ns = 0
        self._extended_ns = 0

    @property
    def is_there(self) -> bool:
        """True if a service manager listens."""
        return self._address != ""

    def send_states(self, *states: str) -> None:
        """Such as READY=1 or STOPPING=1, in one datagram."""
        if not self._address:
            return
        text = "\n".join(states)
        if text != _ALIVE or _ALIVE not in self._unsent:  # as good as one more
            self._unsent.append(text)
        self._send()

    def _send(self) -> None:
        name = self._address
        address = "\0" + name[1:] if name[0] == "@" else name
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        try:
            with socket.socket(socket.AF_UNIX, kind) as door:
                while self._unsent:
                    door.sendto(self._unsent[0].encode(), address)
                    self._unsent.popleft()
        except BlockingIOError:
            pass  # it is behind
        except OSError:  # a service manager that does not listen must not stop us
            self._unsent.clear()

    def status(self, text: str) -> None:
        """A line for people, told when it is another one."""
        if text != self._status:
            self._status = text
            self.send_states(f"STATUS={text}")

    def lives(self, now_ns: int) -> None:
        """Feed the watchdog, when it is time."""
        if self._unsent:
            self._send()
        if self.feeds_ns and now_ns - self._fed_ns >= self.feeds_ns:
            self._fed_ns = now_ns
            self.send_states(_ALIVE)

    def gets_on(self, now_ns: int) -> None:
        """The start goes on and may take longer, if it is time to say so. Of a successor the
        watchdog is that of the service, which runs on."""
        if self._succeeds:
            self.lives(now_ns)
        if self._unsent:
            self._send()
        if now_ns - self._extended_ns >= EXTENDED_S * 1_000_000_000 // (2 * _OFTEN):
            self._extended_ns = now_ns
            self.send_states(f"EXTEND_TIMEOUT_USEC={EXTENDED_S * 1_000_000}")


def this_process() -> Manager:
    """The service manager that started this process."""
    return Manager(os.environ, os.getpid())
