"""The epoll loop of a child: one turn after the other, asleep when there is nothing to do.

A turn is: see who died, hand over what came through the rings, let the shell do its own work
(timers, parked requests) and publish everything, then wait for files and doorbell. So many messages
cost one publication, and what a file's handler pushes is published after the next poll of the
rings, together with the answers to it.

Where looking again and again has lately found something, the loop does that for the spinning time
before it sleeps; an idle process sleeps 200 ms at a time and spins never.
"""

import os
import select
import time
from collections.abc import Callable
from typing import Final, Protocol

from appliance.ring.messages import Message
from appliance.ring.process_table import Peer
from appliance.shell.garbage_collection import FullPasses
from appliance.shell.links import Links
from appliance.shell.patience import LONGEST_SLEEP_S
from appliance.shell.seat import Seat

STOP: Final = -1
"""What `Shell.turn` answers when the process is to end."""

LONGEST_WAIT_MS: Final = int(LONGEST_SLEEP_S * 1000)
"""Backstop for a doorbell that never rang, and the slowest heartbeat."""

_EVENTS: Final = 256
_MOST_NS: Final = 20_000_000
"""Files are handled for so long in one turn; the rest of them come first in the next one. A file
that was closed meanwhile is not there any more, and one that got its number finds nothing."""
_TURNS: Final = 64
"""So many turns lie between two looks at what is to be done even while it is busy."""
_IDLE_NS: Final = 100_000_000
"""Who slept for so long and was not woken has nothing to do."""
_WORTH: Final = 4  # so many more short sleeps than long ones, and spinning is tried
_MOST_WORTH: Final = 16
_IN_VAIN: Final = 4
"""A spin that found nothing weighs as much as so many that did: tried and tried again where waits
are always a little longer, spinning takes a fifth of the waits. A single long wait, as behind a
sync, ends nothing."""
_SHORT: Final = 4
"""A sleep of up to so many spinning times counts as short: when both sides of a ring sleep, each
waits for the other's wake-up too, and would not if they spun."""


class FileHandler(Protocol):
    """Callback for a file that is ready."""

    def ready(self, mask: int) -> None:
        """`mask`: the epoll bits that are set."""
        ...


class Shell(Protocol):
    """The work of a child process in each turn."""

    def peers_changed(self, peers: list[Peer]) -> None:
        """These peers died or were replaced (`links.is_up` tells). What was asked of them is lost,
        but for what they had answered, which was handed over before;
        what they asked must be let go, bytes of their arenas included, before this returns."""
        ...

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Messages from one peer, in order."""
        ...

    def run_once(self, now_ns: int) -> int:
        """Timers and whatever else is due; then `links.flush`, once, where something may have been
        pushed since the last one: as early as what comes behind it pushes nothing. Answers for how
        many ms at most the loop may wait, or STOP."""
        ...


Failed = Callable[[FileHandler, Exception], None]
"""Is told of a file whose handler raised an exception; may raise it again."""


class Loop:
    """Epoll, links and spinning of one process. on_failure: without it an exception of a file's
    handler ends the process."""

    __slots__ = (
        "_epoll",
        "_full_passes",
        "_handlers",
        "_late",
        "_links",
        "_rereading",
        "_spin_ns",
        "_worth",
        "on_failure",
        "turns",
        "waits",
        "woke_ns",
    )

    def __init__(self, seat: Seat, links: Links) -> None:
        self._links = links
        self._rereading = seat.rereading
        self._epoll = select.epoll(flags=select.EPOLL_CLOEXEC)
        self._handlers: dict[int, FileHandler] = {}
        self._spin_ns = seat.spin_us * 1000
        self._worth = 0
        self._full_passes = FullPasses()
        self._late: list[tuple[int, int]] = []  # files for which the last turn had no time
        self.on_failure: Failed | None = None
        self.turns = 0
        self.woke_ns = 0  # when files were last seen ready, monotonic
        self.waits = 0
        # Edge-triggered: each ring of the bell is one event, nobody has to read the counter away.
        self._epoll.register(seat.doorbell, select.EPOLLIN | select.EPOLLET)

    def register(self, fd: int, mask: int, handler: FileHandler) -> None:
        """Call `handler.ready` when one of `mask` (EPOLLIN, EPOLLOUT, …) is there on `fd`."""
        self._epoll.register(fd, mask)
        self._handlers[fd] = handler

    def modify(self, fd: int, mask: int) -> None:
        """Another mask for a registered file."""
        self._epoll.modify(fd, mask)

    def unregister(self, fd: int) -> None:
        """Forget a file; call it before closing the file."""
        del self._handlers[fd]
        self._epoll.unregister(fd)

    def run(self, shell: Shell) -> None:
        """Turn until `shell.turn` answers STOP."""
        links = self._links
        took_ns = 0
        while True:
            began = time.monotonic_ns()
            self.turns += 1
            if self.turns % _TURNS == 0:
                self._full_passes.collect_busy(began)
            if links.beat(took_ns):
                self._renew_peers(shell)
            for peer, messages in links.poll():
                shell.handle(peer, messages)
            wait_ms = shell.run_once(time.monotonic_ns())
            if wait_ms < 0:
                return
            worked = time.monotonic_ns() - began
            events = self._wait(wait_ms)
            began = self.woke_ns = time.monotonic_ns()
            for at, (fd, mask) in enumerate(events, 1):
                handler = self._handlers.get(fd)  # none: the doorbell, or closed in this turn
                if handler is not None:
                    try:
                        handler.ready(mask)
                    except Exception as bug:
                        if self.on_failure is None:
                            raise
                        self.on_failure(handler, bug)
                    if time.monotonic_ns() - began > _MOST_NS:
                        self._late = events[at:]
                        break
            took_ns = worked + time.monotonic_ns() - began

    def _renew_peers(self, shell: Shell) -> None:
        """Somebody died, or was replaced, or settings changed."""
        links = self._links
        changed = links.changed_peers()
        for peer, messages in links.take_last_said():
            shell.handle(peer, messages)
        if changed:
            shell.peers_changed(changed)
        self._rereading.apply_settings()
        links.confirm()

    def close(self) -> None:
        """Give the epoll back."""
        self._epoll.close()

    def _wait(self, wait_ms: int) -> list[tuple[int, int]]:
        if self._late:
            late, self._late = self._late, []
            return list(dict(late + self._epoll.poll(0, _EVENTS)).items())  # each file once
        if wait_ms == 0 or self._links.pending():
            return self._epoll.poll(0, _EVENTS)
        began = time.monotonic_ns()
        spun = self._worth >= _WORTH and self._spin_ns > 0
        if spun:
            events = self._spin(began + self._spin_ns)
            if events is not None:
                self._worth = min(self._worth + 1, _MOST_WORTH)
                return events
            self._worth -= _IN_VAIN
        if not self._links.prepare_sleep():
            return self._epoll.poll(0, _EVENTS)
        self.waits += 1
        events = self._epoll.poll(min(wait_ms, LONGEST_WAIT_MS) / 1000, _EVENTS)
        self._links.awake()
        slept_ns = time.monotonic_ns() - began
        if not events and slept_ns >= _IDLE_NS:
            self._full_passes.collect_idle(began + slept_ns)
        if slept_ns >= _SHORT * self._spin_ns:
            self._worth = max(self._worth - 2, 0)
        elif not spun:
            self._worth += 1
        return events

    def _spin(self, until_ns: int) -> list[tuple[int, int]] | None:
        """Look for events until then: them, or None when there were none."""
        poll = self._epoll.poll
        pending = self._links.pending
        while True:
            if pending():
                return poll(0, _EVENTS)
            events = poll(0, _EVENTS)
            if events:
                return events
            if time.monotonic_ns() >= until_ns:
                return None
            os.sched_yield()
