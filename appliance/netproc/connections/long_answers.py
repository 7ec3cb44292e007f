"""The rest of a long answer is sent by a thread, so that the loop is free for the short requests
of others.

A process that copies answers all the time has used up its share of a processor whenever a short
request comes, and that waits until its readers have had theirs. Beside the thread the loop sleeps,
and the scheduler lets whoever has slept go first (docs/decisions/0142). While an answer is lent the
thread alone touches what is on its way out; the connection's descriptor stays open until it comes
back. Called by connections.
"""

import contextlib
import os
import select
import threading
from collections import deque
from typing import Final, Protocol

from appliance.base.clock import Clock
from appliance.netproc.connections.send_queue import COLD, FULL, LENT, SHARE, SendQueue
from appliance.netproc.transport.transport import Transport
from appliance.shell.loop import FileHandler

SIDE_BY_SIDE_NS: Final = 100_000_000
"""So long after another one sent something a connection is not alone: its long answers make way.
Alone, it would only wait for the thread to wake up."""
_EVENTS: Final = 256
_COLD_S: Final = 0.001
_END_S: Final = 5.0
_WATCHED: Final = select.EPOLLOUT | select.EPOLLET


class Lender(Protocol):
    """A connection, as the thread sees it."""

    transport: Transport
    sending: SendQueue

    def take_back(self, problem: Exception | None) -> None:
        """All is sent, or `problem` ended it. Called by the loop."""
        ...


class Watch(Protocol):
    """The loop, as far as it is needed here."""

    def register(self, fd: int, mask: int, handler: FileHandler) -> None: ...

    def unregister(self, fd: int) -> None: ...


class LongAnswers:
    """The thread begins with the first long answer and ends with the process."""

    def __init__(self, loop: Watch, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._lent: deque[Lender] = deque()
        self._done: deque[tuple[Lender, Exception | None]] = deque()
        self._epoll: select.epoll | None = None
        self._wake = self._bell = -1
        self._sender: threading.Thread | None = None
        self._ending = False
        # The thread's own:
        self._due: dict[int, Lender] = {}  # may send now
        self._cold: dict[int, Lender] = {}  # wait for the disk
        self._all: dict[int, Lender] = {}

    def consider(self, lender: Lender, outcome: int, alone_ns: int) -> int:
        """Take over what is on its way out, if that is long and others are there. Returns LENT,
        or `outcome`, that of the last call to send it. alone_ns: since nobody else sent a byte."""
        if outcome != SHARE and outcome != FULL:
            return outcome
        if alone_ns > SIDE_BY_SIDE_NS or not lender.transport.sends_files:
            return outcome
        return LENT if lender.sending.is_long() and self.lend(lender) else outcome

    def lend(self, lender: Lender) -> bool:
        """Let the thread send what is on its way out. False: the system has no thread or descriptor
        left, and the loop goes on sending it."""
        if self._epoll is None and not self._start_thread():
            return False
        assert not lender.sending.lent, "an answer is lent twice"
        lender.sending.lent = True
        self._lent.append(lender)
        os.eventfd_write(self._wake, 1)
        return True

    def ready(self, mask: int) -> None:
        """The loop says that something is sent."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._done:
            lender, problem = self._done.popleft()
            assert lender.sending.lent, "an answer comes back that nobody lent"
            lender.sending.lent = False
            lender.take_back(problem)

    def end_thread(self) -> None:
        """End it. What is lent then is not given back. One that waits for a disk that answers
        nothing more ends with the process."""
        if self._epoll is None or self._sender is None:
            return
        self._ending = True
        os.eventfd_write(self._wake, 1)
        self._sender.join(_END_S)
        if self._sender.is_alive():
            return
        self._loop.unregister(self._bell)
        self._epoll.close()
        os.close(self._wake)
        os.close(self._bell)
        self._forget()

    def _start_thread(self) -> bool:
        """False: not now; the next long answer tries again."""
        with contextlib.ExitStack() as undo:
            try:
                epoll = select.epoll(flags=select.EPOLL_CLOEXEC)
                undo.callback(epoll.close)
                wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                undo.callback(os.close, wake)
                bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                undo.callback(os.close, bell)
                epoll.register(wake, select.EPOLLIN | select.EPOLLET)
                self._loop.register(bell, select.EPOLLIN, self)
                undo.callback(self._loop.unregister, bell)
                self._epoll, self._wake, self._bell = epoll, wake, bell
                undo.callback(self._forget)
                thread = threading.Thread(target=self._run, name="long answers", daemon=True)
                thread.start()
                self._sender = thread
            except (OSError, RuntimeError):  # "can't start new thread"
                return False
            undo.pop_all()
        return True

    def _forget(self) -> None:
        self._epoll, self._wake, self._bell = None, -1, -1

    # The thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ending:
            self.send_turn()

    def send_turn(self) -> None:
        """Wait until somebody can be sent to, then send each a share. Called by the thread."""
        epoll, due = self._epoll, self._due
        assert epoll is not None, "a thread without work"
        timeout = 0.0 if due else _COLD_S if self._cold else -1.0
        events = epoll.poll(timeout, _EVENTS)
        for fd, _ in events:
            if fd == self._wake:
                self._take_lent(epoll)
            elif fd in self._all:
                due[fd] = self._all[fd]
        if self._cold and (not events or due):
            due.update(self._cold)
            self._cold.clear()
        now_ns = self._clock.monotonic_ns()
        for fd, lender in list(due.items()):
            try:
                outcome = lender.sending.send_answers(lender.transport, now_ns)
            except Exception as problem:
                self._give_back(epoll, fd, problem)
                continue
            if outcome == SHARE:
                continue
            if outcome == COLD:
                self._cold[fd] = due.pop(fd)
            elif outcome == FULL:
                del due[fd]  # its next edge
            else:
                self._give_back(epoll, fd, None)

    def _take_lent(self, epoll: select.epoll) -> None:
        while self._lent:
            lender = self._lent.popleft()
            fd = lender.transport.fd
            assert fd not in self._all, "two answers of one connection are lent"
            self._all[fd] = self._due[fd] = lender
            try:
                epoll.register(fd, _WATCHED)
            except OSError as problem:  # no memory for one more
                self._finish(fd, problem)

    def _give_back(self, epoll: select.epoll, fd: int, problem: Exception | None) -> None:
        epoll.unregister(fd)
        self._finish(fd, problem)

    def _finish(self, fd: int, problem: Exception | None) -> None:
        del self._due[fd]
        self._done.append((self._all.pop(fd), problem))
        os.eventfd_write(self._bell, 1)
