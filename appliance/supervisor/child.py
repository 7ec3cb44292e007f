"""One child process: forking it, what it does before its own code runs, and its end.

A child dies with the supervisor (PR_SET_PDEATHSIG), leaves signals of the terminal and the service
manager to it, and says in its last words what exception ended it. An exception in any of its
threads ends it as one in its loop does, because nobody else does the work of that thread.
"""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, cast

from appliance.base.errors import CannotServe, StorageFailed
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, Peer
from appliance.shell.garbage_collection import put_off_full_passes
from appliance.shell.handed_connection import LEAVE, PART
from appliance.shell.seat import Seat
from appliance.shell.threads import on_thread_death
from appliance.supervisor.memory import SharedMemory
from appliance.supervisor.restart import RestartPolicy


def _multiprocess() -> Any:
    """The package, imported as where dill is not installed: nothing is pickled for a fork, and its
    30 modules would stay in every process."""
    modules = cast("dict[str, object]", sys.modules)
    had = "dill" in modules
    modules.setdefault("dill", None)
    try:
        return import_module("multiprocess")
    finally:
        if not had:
            del modules["dill"]


Entry = Callable[[Seat], int]

NEVER: Final = 0
"""Not started yet."""
RUNNING: Final = 1
DISCARDING: Final = 2
"""Dead; its peers have not all let go of its rings."""
WAITING: Final = 3
"""Dead and discarded; a successor starts when its time has come."""
ISOLATED: Final = 4
"""Died too often; not started again."""
ENDED: Final = 5
"""Ended while draining."""

HOPELESS: Final = 78
"""Exit code (EX_CONFIG of sysexits.h) of a child that would find the same when started again."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_NAME_BYTES: Final = 15  # the kernel cuts off what is longer
_SHORT: Final = {CONTROL: "ctl", IOPROC: "io", NETPROC: "net"}
fork_context: Final[Any] = _multiprocess().get_context("fork")
_libc: Any = ctypes.CDLL(None, use_errno=True)


class Child:
    """A place and the process in it, as the supervisor sees them."""

    __slots__ = (
        "_process",
        "beat",
        "beat_at",
        "deadline",
        "discard_epoch",
        "entry",
        "exit_code",
        "moved_at",
        "peer",
        "phase",
        "pid",
        "pidfd",
        "policy",
        "start_at",
    )

    def __init__(self, peer: Peer, entry: Entry, policy: RestartPolicy) -> None:
        self.peer = peer
        self.entry = entry
        self.policy = policy
        self.phase = NEVER
        self.pid = 0
        self.pidfd = -1
        self.exit_code = 0
        self.start_at = 0
        self.discard_epoch = 0
        self.deadline = 0
        self.beat = 0
        self.beat_at = 0
        self.moved_at = 0
        self._process: Any = None

    def fork(self, seat: Seat, memory: SharedMemory, settle: Callable[[Seat], None]) -> None:
        """Start the process, which calls `settle` first. Raises OSError when the system refuses."""
        process = fork_context.Process(
            target=_run, args=(self.entry, seat, memory, settle, os.getpid()), name=str(self.peer)
        )
        process.start()
        self._process = process
        self.pid = process.pid
        self.pidfd = os.pidfd_open(process.pid)
        self.phase = RUNNING

    def reap(self) -> str:
        """Collect the dead process: how it ended, in words. `exit_code` is negative for a
        signal."""
        how, self.exit_code = reaped(self._process)
        self._process = None
        os.close(self.pidfd)
        self.pidfd = -1
        self.pid = 0
        return how

    def send_signal(self, number: signal.Signals) -> None:
        """A signal, if it lives."""
        if self.pidfd >= 0:
            signal.pidfd_send_signal(self.pidfd, number)

    def kill(self) -> None:
        """SIGKILL, which a stopped process obeys too; its pidfd tells when it is dead."""
        if self.pidfd >= 0:
            stop(self.pidfd)


def reaped(process: Any) -> tuple[str, int]:
    """Collect a dead process: how it ended, in words, and its exit code."""
    process.join()
    code: int = process.exitcode
    process.close()
    return (f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"), code


def stop(pidfd: int) -> None:
    """SIGKILL."""
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def shown_as(peer: Peer) -> str:
    """How the process in a place is called in ps, top and systemctl status: penstock-net-0."""
    if peer.kind == CONTROL:
        return f"penstock-{_SHORT[CONTROL]}"
    name = f"penstock-{_SHORT[peer.kind]}-{peer.index}"
    return name if len(name) <= _NAME_BYTES else f"pstk-{_SHORT[peer.kind]}-{peer.index}"


def leave_the_parent(parent: int, *, name: str, oom_score: int) -> None:
    """First step of a child: it dies with its parent and leaves signals to it. name: in ps, at most
    15 bytes. oom_score: higher than others' for the child to kill first when memory runs out.
    """
    assert len(name.encode()) <= _NAME_BYTES, name
    _libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, LEAVE, PART):
        signal.signal(ignored, signal.SIG_IGN)
    if oom_score:
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(oom_score))


def _run(
    entry: Entry, seat: Seat, memory: SharedMemory, settle: Callable[[Seat], None], parent: int
) -> None:
    # A netproc goes first when memory runs out: it holds nothing that has to be recovered.
    leave_the_parent(parent, name=shown_as(seat.me), oom_score=300 if seat.kind == NETPROC else 0)
    on_thread_death(lambda name, bug: os._exit(_tell_death(seat, memory, bug, f"thread {name}: ")))
    put_off_full_passes()
    try:
        settle(seat)
        code = entry(seat)
    except CannotServe as found:
        memory.say_last_words(seat.me, str(found))
        code = HOPELESS
    except BaseException as bug:
        code = _tell_death(seat, memory, bug)
    with suppress(OSError, ValueError):  # what nobody reads must not change the exit code
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)  # no exit handlers of the supervisor, whose memory this still is


def _tell_death(seat: Seat, memory: SharedMemory, bug: BaseException, where: str = "") -> int:
    """The exit code of a child that an exception ends."""
    cause = f"{where}{type(bug).__name__}: {bug}".replace("\n", " ")
    memory.say_last_words(seat.me, cause)
    if not isinstance(
        bug, StorageFailed
    ):  # which says all there is to say: a file, and what ails it
        text = "".join(traceback.format_exception(bug))
        with suppress(OSError):
            os.write(2, text.encode())  # one write: others may be dying too
    return 1
