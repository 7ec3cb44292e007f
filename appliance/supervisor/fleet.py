"""The children: who lives, who died, whose rings must be let go, who starts again, who is stopped
for good.

A death goes through fixed steps: the row goes down and the epoch moves; every living peer closes
its ends of the dead one's rings and confirms the epoch; the rings are cleared; a successor takes
the place with a new generation. A peer that does not confirm in time is killed, so that nobody ever
writes into a ring that has been cleared.

Called by `supervisor/main.py` at each of its turns.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from appliance.ring.process_table import (
    CONTROL,
    IOPROC,
    KIND_NAMES,
    NETPROC,
    READY,
    UNBOUND,
    Peer,
    linked,
)
from appliance.shell.handed_connection import LEAVE
from appliance.shell.links import fence
from appliance.shell.log import ERROR, INFO, WARNING, Log
from appliance.shell.patience import LOOK_S, PAUSED_S, STILL_S
from appliance.shell.seat import ANEW, UNBEGUN, Seat
from appliance.supervisor.child import (
    DISCARDING,
    ENDED,
    HOPELESS,
    ISOLATED,
    RUNNING,
    WAITING,
    Child,
    Entry,
)
from appliance.supervisor.layout import Layout
from appliance.supervisor.memory import SharedMemory
from appliance.supervisor.restart import RestartPolicy

SECOND: Final = 1_000_000_000
DRAIN_ORDER: Final = (NETPROC, IOPROC, CONTROL)
"""Who ends in which stage of the orderly end, from the first one on."""


class Fleet:
    """All children. served: clients were served once, so that the start has succeeded. fatal: why
    the appliance cannot go on. drained: all have ended as asked."""

    def __init__(
        self,
        layout: Layout,
        memory: SharedMemory,
        log: Log,
        entries: Mapping[int, Entry],
        make_seat: Callable[[Peer, int], Seat],
        settle: Callable[[Seat], None],
        doorbells: Mapping[Peer, int],
    ) -> None:
        self._layout = layout
        self._memory = memory
        self._table = memory.processes
        self._log = log
        self._make_seat = make_seat
        self._settle = settle
        self._doorbells = doorbells
        window_ns = int(layout.crash_window_seconds * SECOND)
        self.children = {
            peer: Child(
                peer,
                entries[peer.kind],
                RestartPolicy(limit=layout.crash_limit, window_ns=window_ns),
            )
            for peer in memory.peers
        }
        self.fatal = ""
        self.served = False
        self.drained = False
        self._stage = 0
        self._stage_deadline = 0
        self._leave_by = 0
        self._last_watch = 0

    # Starting -------------------------------------------------------------------------------------

    def start_all(self, now: int) -> None:
        """Fork every child; they find one another alive at their first look."""
        self._start(list(self.children.values()), now)

    def _start(self, children: list[Child], now: int) -> None:
        for child in children:
            self._table.occupy(child.peer)
        # Before the forks: whoever sees a successor ready must be able to see that it came.
        self.tell_all()
        for child in children:
            child.beat, child.beat_at, child.moved_at = 0, now, now
            seat = self._make_seat(child.peer, self._table.generation(child.peer))
            try:
                child.fork(seat, self._memory, self._settle)
            except OSError as refused:
                self._log.event(ERROR, "fork-refused", child=str(child.peer), cause=str(refused))
                self._begin_discard(child, now)
                self._plan_restart(child, now, f"fork refused: {refused}")
            else:
                self._table.set_pid(child.peer, child.pid)
                if seat.generation > 1:
                    self._log.event(INFO, "child-restarted", child=str(child.peer), pid=child.pid)

    def tell_all(self) -> int:
        """Something has changed: the epoch that says so."""
        epoch = self._table.move_epoch()
        for doorbell in self._doorbells.values():
            os.eventfd_write(doorbell, 1)
        return epoch

    def announce_cluster_ready(self) -> None:
        """Control and every ioproc are ready: netprocs may accept."""
        self._table.set_cluster_ready(True)
        self.tell_all()

    def all_confirmed(self, epoch: int) -> bool:
        """True if every running child has acted upon this epoch; a replacement starts with it."""
        return all(
            self._table.confirmed(child.peer) >= epoch
            for child in self.children.values()
            if child.phase == RUNNING and self._table.confirmed(child.peer) != UNBOUND
        )

    def ready(self, *kinds: int) -> bool:
        """True if every child of these kinds, isolated ones aside, runs and is READY."""
        return all(
            self._table.state(child.peer) == READY
            for child in self._of(*kinds)
            if child.phase != ISOLATED
        )

    # Dying ----------------------------------------------------------------------------------------

    def died(self, child: Child, now: int) -> None:
        """The pidfd of a child says that it is dead."""
        how = child.reap()
        words = self._memory.take_last_words(child.peer)
        cause = f"{how}: {words}" if words else how
        if self._stage:
            child.phase = ENDED
            self._table.vacate(child.peer)
            self.tell_all()
            if child.exit_code not in (0, UNBEGUN):
                self._log.event(WARNING, "child-died", child=str(child.peer), cause=cause)
            return
        self._begin_discard(child, now)
        if child.exit_code == ANEW:
            child.start_at = now
        elif child.exit_code == HOPELESS:
            child.start_at = -1
            self.fatal = f"{child.peer}: {words}"
        else:
            self._plan_restart(child, now, cause)

    def _begin_discard(self, child: Child, now: int) -> None:
        self._table.vacate(child.peer)
        child.discard_epoch = self.tell_all()
        child.deadline = now + int(self._layout.confirm_seconds * SECOND)
        child.phase = DISCARDING

    def _plan_restart(self, child: Child, now: int, cause: str) -> None:
        start_at = child.policy.died(now)
        if start_at is not None:
            child.start_at = start_at
            delay_ms = (start_at - now) // 1_000_000
            self._log.event(
                WARNING, "child-died", child=str(child.peer), cause=cause, restart_in_ms=delay_ms
            )
            return
        seconds = f"{self._layout.crash_window_seconds:g}"
        why = f"{child.peer} died {child.policy.recent} times within {seconds} s, last: {cause}"
        others = [c for c in self._of(child.peer.kind) if c is not child and c.start_at >= 0]
        if self._may_rest(child, others):
            child.start_at = now + int(self._layout.crash_window_seconds * SECOND)
            self._log.event(
                ERROR, "child-rests", child=str(child.peer), cause=why, restart_in_s=seconds
            )
            return
        child.start_at = -1
        self._log.event(ERROR, "child-isolated", child=str(child.peer), cause=why)
        if not others:
            self.fatal = f"{why}; no other {KIND_NAMES[child.peer.kind]} is left"

    def _may_rest(self, child: Child, others: list[Child]) -> bool:
        """A child that keeps dying is tried again after a rest, once clients were served: the last
        netproc, too, because its cause may pass, and control of a cluster's node, because that node
        finds itself isolated and sends clients elsewhere. Before that the last netproc is as well:
        what it dies of was no setting (who cannot serve says so), and the logs are served to other
        nodes and written down as they are. A start that cannot succeed ends with its cause instead,
        unless the others serve without that child."""
        if self.served or (child.peer.kind == NETPROC and not others):
            return True
        if child.peer.kind == IOPROC:
            return self._table.cluster_ready and bool(others)
        return child.peer.kind == CONTROL and self._table.cluster_ready and not self._table.member

    def _discarded(self, child: Child, now: int) -> bool:
        """True if every living peer has released the dead child's rings; late ones are killed."""
        late = [
            other
            for other in self.children.values()
            if other.phase == RUNNING
            and linked(other.peer, child.peer)
            and UNBOUND != self._table.confirmed(other.peer) < child.discard_epoch
        ]
        if late and now >= child.deadline:
            for other in late:
                self._log.event(
                    ERROR,
                    "child-killed",
                    child=str(other.peer),
                    cause=f"kept the rings of dead {child.peer}",
                )
                other.kill()
            child.deadline = now + SECOND
        return not late

    # Turning --------------------------------------------------------------------------------------

    def step(self, now: int) -> int:
        """Do whatever is due. Answers when (ns) to come again at the latest."""
        if self._stage:
            return self._drain_step(now)
        self._judge()
        fence()
        again = now + SECOND
        if self._leave_by:
            again = min(again, self._leave_by)
        for child in self.children.values():
            if child.phase == DISCARDING:
                if self._discarded(child, now):
                    self._memory.clear_rings_of(child.peer)
                    child.phase = WAITING if child.start_at >= 0 else ISOLATED
                else:
                    again = min(again, child.deadline, now + SECOND // 50)
            if child.phase == WAITING:
                if now >= child.start_at:
                    self._start([child], now)
                else:
                    again = min(again, child.start_at)
        if now - self._last_watch >= LOOK_S * SECOND:
            self._watch(now)
        return again

    def _judge(self) -> None:
        """A child that says a peer broke their ring is believed: that peer is replaced."""
        for child in self.children.values():
            accused = self._table.accused(child.peer)
            if accused is None or child.phase != RUNNING:
                continue
            peer, generation = accused
            culprit = self.children[peer]
            if culprit.phase == RUNNING and self._table.generation(peer) == generation:
                culprit.kill()

    def _watch(self, now: int) -> None:
        """Kill ready children whose loops stand still. After a pause of our own nobody is
        blamed."""
        paused = now - self._last_watch > PAUSED_S * SECOND
        self._last_watch = now
        limit = int(self._layout.wedged_seconds * SECOND)
        for child in self.children.values():
            if child.phase != RUNNING:
                continue
            beat = self._table.heartbeat(child.peer)
            if beat != child.beat or paused:
                child.moved_at = now
            if beat != child.beat or paused or self._table.state(child.peer) != READY:
                child.beat, child.beat_at = beat, now
            elif now - child.beat_at > limit:
                self._log.event(
                    ERROR,
                    "child-killed",
                    child=str(child.peer),
                    cause=f"its loop stood still for {limit // SECOND} s",
                )
                child.kill()
                child.beat_at = now

    def still(self, now: int) -> str:
        """Names of the children that have not turned for too long to be replaced still, "" when
        there is none. Whoever lives is looked at, also at its start."""
        limit = int(STILL_S * SECOND)
        return ", ".join(
            str(child.peer)
            for child in self.children.values()
            if child.phase == RUNNING and now - child.moved_at > limit
        )

    # Ending ---------------------------------------------------------------------------------------

    def begin_drain(self, now: int, *, heirs: bool = False) -> bool:
        """Netprocs finish, then ioprocs flush, then control stops. Nobody is started any more.

        A broker of a cluster leaves it first, while all others serve: until then this answers
        False and is to be called again. One that cannot go on hangs up at once. heirs: connections
        are left to who comes."""
        if not self._stage:
            if not self._has_left(now):
                return False
            self._log.event(INFO, "draining")
            if self.fatal and self._table.member:
                self._hang_up()
            for child in self._of(NETPROC) if heirs else ():
                child.send_signal(LEAVE)  # first: who only sees the end hangs up
            self._next_stage(now)
        return True

    def _hang_up(self) -> None:
        """Without control nothing that waits here is answered, and others lead as soon as
        connections to this node are closed, which netprocs would keep open until then."""
        for child in self._of(NETPROC):
            child.kill()

    def _has_left(self, now: int) -> bool:
        control = self.children[Peer(CONTROL, 0)]
        if not self._table.member or self.fatal or control.phase != RUNNING:
            return True
        if not self._leave_by:
            self._leave_by = now + int(self._layout.leave_seconds * SECOND)
            self._log.event(INFO, "leaving")
            self._table.set_leaving(True)
            self.tell_all()
        return now >= self._leave_by

    @property
    def draining(self) -> bool:
        """The orderly end has begun."""
        return self._stage > 0

    def _next_stage(self, now: int) -> None:
        self._stage += 1
        if self._stage > len(DRAIN_ORDER):
            self.drained = True
            return
        layout = self._layout
        seconds = (
            layout.netproc_drain_seconds,
            layout.ioproc_drain_seconds,
            layout.control_drain_seconds,
        )[self._stage - 1]
        self._stage_deadline = now + int(seconds * SECOND)
        self._table.set_drain(self._stage)
        self.tell_all()

    def _drain_step(self, now: int) -> int:
        running: list[Child] = []
        while not running and not self.drained:
            kind = DRAIN_ORDER[self._stage - 1]
            running = [child for child in self._of(kind) if child.phase == RUNNING]
            if not running:
                self._next_stage(now)
        if now >= self._stage_deadline:
            for child in running:
                self._log.event(
                    WARNING, "child-killed", child=str(child.peer), cause="it did not end in time"
                )
                child.kill()
            self._stage_deadline = now + SECOND
        return self._stage_deadline

    def ended_clean(self) -> bool:
        """Control and every ioproc ended by themselves and say that all is flushed, as far as
        anything was begun."""
        return all(
            child.phase == ENDED and child.exit_code in (0, UNBEGUN)
            for child in self._of(IOPROC, CONTROL)
        )

    def unbegun(self) -> bool:
        """True if an ioproc ended before it had checked the previous run's leftovers, or control
        before its cluster had heard that there might be some missing."""
        return any(child.exit_code == UNBEGUN for child in self._of(IOPROC, CONTROL))

    def kill_all(self) -> None:
        """At once, whatever they are doing; returns when all are dead."""
        for child in self.children.values():
            child.kill()
        for child in self.children.values():
            if child.phase == RUNNING:
                child.reap()
                child.phase = ENDED

    def _of(self, *kinds: int) -> Iterator[Child]:
        return (child for child in self.children.values() if child.peer.kind in kinds)


def why_not_begun(*, agreed: bool, checked: bool) -> dict[str, str]:
    """The cause of an end before the start was complete; {} if it was complete. agreed: the
    metadata is. checked: the previous run's leftovers are.
    """
    if not agreed:
        return {"cause": "it had not begun: a majority of controller.quorum.voters is needed"}
    if not checked:
        return {"cause": "it had not begun: the next start checks what this one was to check"}
    return {}
