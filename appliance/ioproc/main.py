"""Entry of an I/O process: open what is ours, serve it, and leave everything on the disk when
drained.

One turn: changed peers, metadata, messages, coordinators, chores when they are due, `Core.finish`.
`assembly.py` says of what it is made, `startup.py` how it begins.
"""

import select
from typing import Final

from appliance.base.clock import clock_here
from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import ReservedDisk
from appliance.ioproc.assembly import Assembly
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.remote.link import RemoteLink
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ioproc.startup import Starting
from appliance.ioproc.turn.message_barrier import MessageBarrier
from appliance.ioproc.workers import Workers
from appliance.metadata.changes import Change
from appliance.peers.link import Link, Watcher
from appliance.ring.messages import ISR_REFUSED, PRODUCER_ID_BLOCK, Message
from appliance.ring.process_table import DRAIN, DRAINING, IOPROC, NETPROC, READY, Peer
from appliance.ring.slots import read_isr_refused
from appliance.shell import sandbox
from appliance.shell.bugs import Bugs
from appliance.shell.denials import tell_denials
from appliance.shell.flusher import Flusher
from appliance.shell.links import Links
from appliance.shell.log import ERROR, Log
from appliance.shell.loop import LONGEST_WAIT_MS, STOP, FileHandler, Loop
from appliance.shell.seat import UNBEGUN, Seat

DRAIN_STAGE: Final = 2
"""The stage of the orderly end in which I/O processes flush (`ProcessTable.drain`)."""

HELD_A_TURN: Final = 1000
"""Messages that were held back and are decided in one turn: of thousands of fetches, a piece."""
_TICK_MS: Final = 2
"""Two clocks that are rounded may come closer and part by less."""
_BUSY_MS: Final = 1


class Stir:
    """A job at leisure ended: the next turn does chores (`loop.FileHandler`)."""

    def __init__(self, thread: Flusher | RemoteLink, served: ServedPartitions) -> None:
        self._worker = thread
        self._served = served

    def ready(self, mask: int) -> None:
        """The bell is taken away, the chores take the result."""
        self._worker.hush()
        self._served.stirred = True


class IoProcess:
    """The shell of one ioproc (`loop.Shell`)."""

    def __init__(self, seat: Seat, links: Links, disk: Disk, events: Log, loop: Watcher) -> None:
        self._me = seat.me
        self._processes = seat.processes
        self._drain = seat.processes.word(DRAIN)
        self._links = links
        self._events = events
        self._clock = clock_here()
        self.workers = Workers()
        parts = Assembly(seat, links, disk, events, self._clock, self.workers, loop).parts()
        self._parts = parts
        self.core = parts.core
        self._served = parts.core.served
        self._replicas = parts.core.questions.replicas
        self._arrivals = parts.arrivals
        self._billing = parts.billing
        self._hosts = parts.hosts
        self._siblings = parts.siblings
        self._own = parts.own
        self._endings = parts.endings
        self._time = parts.time
        self._apart_ms = 0  # the wall clock from the monotonic one, at the last look
        self._following = parts.following
        self._ids = parts.ids
        self._pulling = parts.pulling
        self._leaders = parts.pulling.leaders
        self._brokers = parts.brokers
        self._asked_nodes = parts.brokers.links
        self._chores = parts.chores
        self._starting = Starting(
            parts.home, parts.following, self.workers.opener, events, self._clock
        )
        self._reread: list[Change] = []  # before everything was open
        seat.rereading.then(self._settings_changed)
        self._open = False
        self._level = False  # whether the metadata is replayed as far as it is committed
        self._held: list[tuple[NetprocPeer, list[Message]]] = []  # until all is open and replayed
        self._without_room = 0  # log folders, as said last
        self._loading = 0  # coordinators, as said last
        self._moving = False  # something to another folder, as said last
        self._holding = False  # some netproc has to take answers before it may ask more
        self._now_ms = 0  # of this turn, 0: not looked at yet

    def raise_barriers(self, bugs: Bugs) -> None:
        """From now on an exception costs one answer, or one run of a chore."""
        self._arrivals.barrier = MessageBarrier(self.core, bugs)
        self.core.barrier.bugs = bugs
        self._chores.bugs = self._following.bugs = bugs
        self._parts.housekeeping.trims.bugs = bugs
        self._parts.journals.bugs = bugs

    def on_failure(self, handler: FileHandler, bug: Exception) -> None:
        """An exception of a descriptor's handler costs what it is for: a link is hung up, and
        whoever asked by it hears that it is gone."""
        self.core.barrier.report_bug("a descriptor", bug)
        if isinstance(handler, Link):
            self._chores.guard("hanging up", handler.close)

    @property
    def remote_link(self) -> RemoteLink | None:
        """The way to the remote store, if there is one."""
        return None if self._parts.remote is None else self._parts.remote.link

    @property
    def begun(self) -> bool:
        """True if any log was opened."""
        return self._starting.begun

    # The loop's turn ------------------------------------------------------------------------------

    def peers_changed(self, peers: list[Peer]) -> None:
        """Forget what the dead asked for, and what a dead control was asked."""
        for peer in peers:
            if peer.kind == NETPROC:
                asker = self.core.askers[peer.index]
                if self._open:  # or nothing was asked of the core yet
                    self.core.drop(asker)
            elif peer.kind == IOPROC:
                asker = self._siblings.askers[peer.index]
                self.core.drop_sibling(asker)
                up = self._links.is_up(IOPROC, peer.index)
                self._endings.changed(peer.index, up=up)
            else:
                self._ids.control_died()
                self._replicas.control_died()
                continue
            self._held = [held for held in self._held if held[0] is not asker]

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Requests of a netproc, markers of another ioproc and its answers to ours; held back until
        everything is open, and while more metadata is committed than is replayed: others may know
        of a partition that we have not looked at yet."""
        if peer.kind == NETPROC:
            asker = self.core.askers[peer.index]
        elif peer.kind == IOPROC:
            asker = self._siblings.askers[peer.index]
        else:
            self._told(messages)
            return
        if not self._open:
            self._held.append((asker, messages))
            return
        now_ms = self._now_ms or self._begin_turn()
        if not self._level:
            self._held.append((asker, messages))
        elif self._billing.on:
            self._billing.handle_messages(self._arrivals.handle, asker, messages, now_ms)
        else:
            self._arrivals.handle(asker, messages, now_ms)

    def _settings_changed(self, changes: list[Change]) -> None:
        """In the settings file. A thread has the logs for itself while they are opened."""
        if self._open:
            self._following.reread(changes)
        else:
            self._reread += changes

    def _told(self, messages: list[Message]) -> None:
        """By control: ids for producers, and that the controller refused in-sync replicas."""
        for message in messages:
            if message.op == ISR_REFUSED:
                partition = self.core.partitions.get(message.handle)
                epoch = read_isr_refused(message).partition_epoch
                self._replicas.refused(partition, epoch, self._served.now_ms)
            elif message.op == PRODUCER_ID_BLOCK and self._ids.given(message):
                for host in self._hosts:
                    host.ids_came()

    def _begin_turn(self) -> int:
        """The time in ms. The metadata comes first, then what was held for it."""
        following = self._following
        now_ms = self._now_ms = self._served.now_ms = self._clock.wall_ms()
        now_ns = self._served.began_ns = self._clock.monotonic_ns()
        jumped_ms = now_ms - now_ns // 1_000_000 - self._apart_ms
        if not -_TICK_MS < jumped_ms < _TICK_MS:  # a call less for each turn
            self._apart_ms += jumped_ms
            self._time.read_clocks(now_ns, now_ms)
        self._level = following.committed[0] == following.applied or following.replay_slice()
        if self._held and self._level:
            self._level = self._give_held(now_ms)
        return now_ms

    def _give_held(self, now_ms: int) -> bool:
        """Some of what was held, in its order; whether that was all, or what comes waits, too."""
        given = 0
        held, self._held = self._held, []
        for asker, messages in held:
            if given < HELD_A_TURN:
                given += len(messages)
                self._arrivals.handle(asker, messages, now_ms)
            else:
                self._held.append((asker, messages))
        return not self._held

    def run_once(self, now_ns: int) -> int:
        """Everything else; answers how long the loop may wait in ms, or STOP."""
        drain: int = self._drain[0]
        if not self._open:
            return STOP if drain >= DRAIN_STAGE else self._start(now_ns)
        now_ms = self._now_ms or self._begin_turn()
        self._now_ms = 0
        if drain or self.core.postponed.held:
            self._resume(now_ms, drain)
        level_ms = now_ms - self._time.ahead_ms
        rest_ms = LONGEST_WAIT_MS
        for host in self._hosts:
            if level_ms >= host.due_ms:
                host.run_once(now_ms)
            rest_ms = min(rest_ms, max(0, host.due_ms - level_ms))
        own, endings = self._own, self._endings
        if level_ms >= endings.due_ms or own.writer.head != own.reader.tail:
            self._siblings.run_once(now_ms)
        if self._asked_nodes:
            rest_ms = min(rest_ms, self._brokers.run_once())
        chores, served = self._chores, self._served
        if served.stirred or now_ns >= chores.due_ns or drain:
            served.stirred = not chores.run_slice(now_ns, now_ms, draining=drain >= DRAIN_STAGE)
            self._tell_room()
            self._tell_loading()
            self._tell_moves()
        sent = self.core.finish(now_ns)
        pulls = self._leaders or self._pulling.told
        rest_ms = min(rest_ms, self._pulling.run_once(now_ns, now_ms)) if pulls else rest_ms
        self._links.flush()
        if self._holding or not sent:
            self._hold_who_is_behind()
        if drain >= DRAIN_STAGE and self._all_done():
            return STOP
        syncing = served.syncing
        told_itself = own.writer.head != own.reader.tail or self.core.postponed.held
        if served.stirred or syncing.wanted or told_itself or not self._level:
            return 0
        if not sent:
            return _BUSY_MS
        due_ns = min(chores.due_ns, syncing.due_ns)
        rest_ms = min(rest_ms, max(0, endings.due_ms - level_ms))
        return min(rest_ms, max(_BUSY_MS, (due_ns - now_ns) // 1_000_000))

    def _tell_room(self) -> None:
        low = [number for number, space in enumerate(self._served.spaces) if space.low]
        if len(low) != self._without_room:
            self._without_room = len(low)
            self._processes.set_without_room(self._me, len(low))
            self._links.wake_sleepers()  # control looks at the disks at once

    def _tell_loading(self) -> None:
        loading = sum([len(host.unread) for host in self._hosts])
        if loading != self._loading:
            self._loading = loading
            self._processes.set_loading(self._me, loading)

    def _tell_moves(self) -> None:
        """The node's limit of copying is for all processes that move something."""
        if self._parts.moves.under_way != self._moving:
            self._moving = not self._moving
            self._processes.set_moving(self._me, moving=self._moving)

    def _resume(self, now_ms: int, drain: int) -> None:
        """Handle what earlier turns had no room for; at the end nobody is left waiting."""
        if drain:
            for host in self._hosts:
                host.drain()
        self._arrivals.resume(now_ms)

    def _all_done(self) -> bool:
        late = self._links.pending() or self.core.postponed.held
        return self._level and not late and not self._parts.home.busy

    def _hold_who_is_behind(self) -> None:
        self._holding = False
        for index, asker in self.core.askers.items():
            self._links.hold_messages(NETPROC, index, asker.behind)
            self._holding = self._holding or asker.behind

    # The start ------------------------------------------------------------------------------------

    def _start(self, now_ns: int) -> int:
        if not self._processes.metadata_offset:
            return _BUSY_MS  # control has not published anything yet
        if not self._starting.open_slice(now_ns):
            return LONGEST_WAIT_MS
        self._open = True
        self._parts.moves.resume(self._clock.wall_ms())
        self._parts.housekeeping.look_at_space(now_ns)
        self._begin_turn()
        self._following.reread(self._reread)
        self._now_ms = 0
        self._tell_loading()  # before anybody takes it for ready
        self._links.set_state(READY)
        return 0

    # The end --------------------------------------------------------------------------------------

    def close(self) -> bool:
        """Everything to the disk. False when something could not be: the next start must check."""
        self._links.set_state(DRAINING)
        if not self._open:
            return not self._starting.begun
        self._pulling.close()
        self._brokers.close()
        self._parts.cleaning.stop()
        self.workers.cleaner.close()
        if self._parts.remote is not None:
            self._parts.remote.close()
        self.core.settle_all(self._clock.monotonic_ns())
        self.workers.copies.close()
        self.workers.leaving.close()
        self.workers.returning.close()
        clean = self._close_logs()
        try:
            self._parts.housekeeping.close()
        except StorageFailed as failure:
            self._events.event(ERROR, "checkpoint-failed", cause=failure)
            clean = False
        clean = self._close_journals(clean)
        self.workers.trims.close()
        self.workers.opener.close()
        self.workers.remote.close()
        self._links.flush()
        return clean

    def _close_journals(self, clean: bool) -> bool:
        try:
            self._parts.journals.close(needed=not clean)
        except StorageFailed as failure:
            self._events.event(ERROR, "journal-not-removed", cause=failure)
            clean = False
        self.workers.group_writes.close()
        return clean

    def _close_logs(self) -> bool:
        """Close all logs side by side: each takes a handful of syncs."""
        syncs = self.workers.syncs
        for partition in self.core.partitions.values():
            syncs.submit((partition,), partition.log.close)
        clean = not self._served.refused
        while syncs.outstanding():
            syncs.wait()
            self._links.beat()
            for done in syncs.take_ended():
                partition = done.tag[0]
                if isinstance(done.failure, StorageFailed):
                    self._parts.report(partition, done.failure)
                elif done.failure is not None:
                    raise done.failure
                clean = clean and partition.broken is None and done.failure is None
        syncs.close()
        return clean


def run(seat: Seat) -> int:
    """Serve until the appliance drains; 0 when everything is on the disk, 1 when something is not,
    UNBEGUN when nothing was looked at."""
    events = seat.log()
    sandbox.enter(files=True, programs=True)  # netprocs tell what is missing
    tell_denials(seat.authorizer, events)
    links = Links(seat, events)
    loop = Loop(seat, links)
    process = IoProcess(seat, links, ReservedDisk(OsDisk(), seat.log_dirs), events, loop)
    process.raise_barriers(Bugs(events))
    loop.on_failure = process.on_failure
    for each in process.workers.durable():
        loop.register(each.fd, select.EPOLLIN, each)
    for one in process.workers.at_leisure():
        loop.register(one.fd, select.EPOLLIN, Stir(one, process.core.served))
    if process.remote_link is not None:
        link = process.remote_link
        loop.register(link.fd, select.EPOLLIN, Stir(link, process.core.served))
    loop.run(process)
    if not process.close():
        return 1
    return 0 if process.begun or seat.clean else UNBEGUN
