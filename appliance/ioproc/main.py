"""Entry of an I/O process: open what is ours, serve it, and leave everything on the disk when
drained.

One turn: changed peers, metadata, messages, `Core.finish`, housekeeping. Partitions are opened on a
thread, which takes as long as their logs are large; messages that arrive meanwhile are held, so a
netproc whose ioproc came back need not ask again.
"""

import os
import select
from collections.abc import Callable
from typing import Final

from appliance.base.clock import OsClock
from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import ReservedDisk
from appliance.base.space import KEEP_FREE_PERCENT, SpaceGuard
from appliance.ioproc.asker import Asker
from appliance.ioproc.cleaner_link import CleanerLink
from appliance.ioproc.cleaning import Cleaning
from appliance.ioproc.coordinating import Coordinating
from appliance.ioproc.core import Core
from appliance.ioproc.home import Home
from appliance.ioproc.housekeeping import Housekeeping
from appliance.ioproc.moving import Moves
from appliance.ioproc.opening import Opener
from appliance.ioproc.partition import Partition
from appliance.ioproc.rows import Rows
from appliance.ioproc.syncing import VISIBLE_MS, Syncing
from appliance.ioproc.trims import Told
from appliance.metadata.changes import TopicRemoved
from appliance.metadata.effective import broker_config
from appliance.metadata.follower import Follower
from appliance.metadata.log_dirs import LogDirs, directory_of, read_log_dirs
from appliance.ring.messages import ASSIGN, Message
from appliance.ring.process_table import CONTROL, DRAINING, NETPROC, READY, Peer
from appliance.shell.flusher import Flusher
from appliance.shell.links import Links
from appliance.shell.log import ERROR, INFO, Log
from appliance.shell.loop import LONGEST_WAIT_MS, STOP, Loop
from appliance.shell.seat import Seat

DRAIN_STAGE: Final = 2
"""The stage of the orderly end in which I/O processes flush (`ProcessTable.drain`)."""

_SAY_NS: Final = 1_000_000_000
_BUSY_MS: Final = 1
_CHORES_MS: Final = 50


class IoProcess:
    """The shell of one ioproc (`loop.Shell`)."""

    def __init__(self, seat: Seat, links: Links, disk: Disk, events: Log) -> None:
        self._seat = seat
        self._links = links
        self._events = events
        self._clock = OsClock()
        self.syncs = Flusher()
        self._follower = Follower(disk, seat.data_dir, seat.partitions)
        self._held: list[tuple[Asker, list[Message]]] = []
        syncing = Syncing(self.syncs, lambda: not links.pending())
        keep = seat.config.int("penstock.disk.free.min.bytes")
        alone = len(seat.log_dirs) == 1  # then nobody asks for ids
        dirs = LogDirs.of(seat.data_dir) if alone else read_log_dirs(disk, seat.log_dirs)
        spaces = [SpaceGuard(keep, KEEP_FREE_PERCENT) for _ in dirs.paths]
        rows = Rows(seat.partitions)
        self.core = Core(rows, syncing, spaces[0], self._log_start, self._offline)
        self.core.spaces = spaces
        for index, arena in enumerate(seat.arenas):
            self.core.askers[index] = Asker(index, arena, links.writer(NETPROC, index))
        self._groups = self.core.groups = Coordinating(
            self.core,
            seat.config,
            {index: links.writer(NETPROC, index) for index in range(seat.netprocs)},
            self._follower.image,
            self._clock.wall_ms,
            lambda: os.urandom(16),
            events,
        )
        self.trims = Flusher(1)
        self._housekeeping = Housekeeping(
            seat.config, disk, dirs, self.core, Flusher(1), self.trims, events
        )
        self.cleaner = Flusher(1)
        self._cleaning = self._cleaning_of(disk, dirs)
        self._opener = Opener(disk, dirs, seat.partitions, clean=seat.clean)
        self.leaving = Flusher(1)
        self._home = Home(
            seat,
            disk,
            dirs,
            self._follower,
            self.core,
            self._housekeeping,
            self._opener,
            self.leaving,
            events,
            self._clock.wall_ms,
        )
        self.copies = Flusher(1)
        self._moves = self._moves_of(disk, dirs)
        self._home.leaving.told = self._moves.give_up
        self.opener = Flusher(1)
        self._opening = False
        self._open = False
        self._applied = 0  # as said in the process table
        self._holding = False  # some netproc has to take answers before it may ask more
        self._began_ns = self._said_ns = self._clock.monotonic_ns()

    def _cleaning_of(self, disk: Disk, dirs: LogDirs) -> Cleaning:
        seat = self._seat
        return Cleaning(
            lambda: broker_config(self._follower.image, seat.config),
            disk,
            dirs,
            self.core,
            self.cleaner,
            CleanerLink(),
            self._housekeeping.remove_later,
            self._events,
            seat.ioprocs,
        )

    def _moves_of(self, disk: Disk, dirs: LogDirs) -> Moves:
        return Moves(
            disk,
            dirs,
            self.core,
            self._housekeeping,
            self.copies,
            self._assign,
            self._assigned(dirs),
            self._copy_limit,
            lambda: os.urandom(16).hex(),
            self._events,
        )

    # The loop's turn ------------------------------------------------------------------------------

    def peers_changed(self, peers: list[Peer]) -> None:
        """Forget what dead netprocs asked for."""
        for peer in peers:
            if peer.kind == NETPROC:
                asker = self.core.askers[peer.index]
                if self._open:  # or nothing was asked of the core yet
                    self.core.drop(asker)
                self._held = [held for held in self._held if held[0] is not asker]

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Requests of a netproc; held back until everything is open."""
        if peer.kind != NETPROC:
            return
        asker = self.core.askers[peer.index]
        if self._open:
            self._follow()  # a netproc may know of a partition that we have not looked at yet
            self.core.handle(asker, messages, self._clock.wall_ms())
        else:
            self._held.append((asker, messages))

    def threads(self) -> tuple[Flusher, ...]:
        """Whose jobs end with an event on their `fd`."""
        return self.syncs, self.copies, self.cleaner, self.leaving, self.trims, self.opener

    def ready(self, mask: int) -> None:
        """A job ended: the turn that follows takes the result."""
        for one in self.threads():
            one.hush()

    def turn(self, now_ns: int) -> int:
        """Everything else; answers how long the loop may wait in ms, or STOP."""
        draining = self._seat.processes.drain >= DRAIN_STAGE
        if not self._open:
            return STOP if draining else self._go_on_opening(now_ns)
        self._follow()
        if self._seat.processes.drain:
            self._groups.drain()
        now_ms = self._clock.wall_ms()
        open_ = self._home.go_on(now_ns, now_ms)
        self._say_applied()
        for name, topic_id in self._home.gone():
            self._groups.topic_deleted(name, topic_id, now_ms)
        rest_ms = self._groups.turn(now_ms)
        self._housekeeping.trims.go_on()
        sent = self.core.finish(now_ns)
        if self._holding or not sent:
            self._hold_who_is_behind()
        idle = self._housekeeping.tick(now_ns, now_ms) and self._moves.tick(now_ns, now_ms)
        if not draining:
            self._cleaning.tick(now_ns, now_ms)
        elif not self._links.pending() and not self._home.leaving.busy:
            return STOP
        if not open_ or self.core.syncing.held_back:
            return 0
        if not sent or not idle:
            return _BUSY_MS
        chores = self.core.syncing.dirty or self._moves.under_way
        if self.core.syncing.unseen:
            rest_ms = min(rest_ms, VISIBLE_MS)
        return min(rest_ms, _CHORES_MS if chores else LONGEST_WAIT_MS)

    def _hold_who_is_behind(self) -> None:
        self._holding = False
        for index, asker in self.core.askers.items():
            self._links.hold(NETPROC, index, asker.behind)
            self._holding = self._holding or asker.behind

    # Metadata and opening -------------------------------------------------------------------------

    def _follow(self) -> None:
        processes = self._seat.processes
        committed = processes.metadata_offset
        before = self._follower.applied
        if committed != before:
            changes = self._follower.catch_up(committed)
            now_ms = self._clock.wall_ms()
            self._groups.follow(self._follower.image)
            self._home.apply(changes, before)
            for change in changes:
                if isinstance(change, TopicRemoved) and not self._home.keeps(change.topic_id):
                    self._groups.topic_deleted(change.name, change.topic_id, now_ms)
            self._say_applied()

    def _say_applied(self) -> None:
        """What was removed but is not gone yet still has its rows."""
        applied = self._home.leaving.replayed(self._follower.applied)
        if applied != self._applied:
            self._applied = applied
            self._seat.processes.set_applied(self._seat.me, applied)

    def _go_on_opening(self, now_ns: int) -> int:
        """Wait for `_open_everything`: a thread has all of this for itself until it ends, so that
        the loop beats and lets go of dead peers, however large a log is."""
        if not self._seat.processes.metadata_offset:
            return _BUSY_MS  # control has not published anything yet
        if not self._opening:
            self._opening = True
            self.opener.submit((), self._open_everything)
        done = self.opener.take()
        if not done:
            self._say_progress(now_ns)
            return LONGEST_WAIT_MS
        if done[0].failure is not None:
            raise done[0].failure
        self._open = True
        self._moves.resume(self._clock.wall_ms())
        self._housekeeping.look_at_space(now_ns)
        took_ms = (self._clock.monotonic_ns() - self._began_ns) // 1_000_000
        if self._home.total:
            self._events.event(INFO, "logs-open", partitions=self._home.total, ms=took_ms)
        self._follow()
        self._links.set_state(READY)
        for asker, messages in self._held:
            self.core.handle(asker, messages, self._clock.wall_ms())
        self._held.clear()
        return 0

    def _open_everything(self) -> None:
        committed = self._seat.processes.metadata_offset
        self._follower.catch_up(committed)
        self._say_applied()
        self._groups.follow(self._follower.image)
        self._home.open_all(self._clock.monotonic_ns(), self._clock.wall_ms())

    def _say_progress(self, now_ns: int) -> None:
        if now_ns - self._said_ns >= _SAY_NS:
            self._said_ns = now_ns
            self._events.event(
                INFO, "opening-logs", opened=self._home.opened, partitions=self._home.total
            )

    # Moves between log folders --------------------------------------------------------------------

    def _assign(self, handle: int, number: int) -> None:
        """Asked again when it was lost: the ring may be full, or control about to come back."""
        self._links.writer(CONTROL, 0).push(ASSIGN, 0, handle, 0, number, 0)

    def _assigned(self, dirs: LogDirs) -> Callable[[Partition], int]:
        node_id = self._seat.config.int("node.id")

        def number(partition: Partition) -> int:
            found = self._follower.image.partition(partition.topic, partition.index)
            return -1 if found is None else dirs.number(directory_of(found, node_id))

        return number

    def _copy_limit(self) -> int:
        config = broker_config(self._follower.image, self._seat.config)
        return config.int("replica.alter.log.dirs.io.max.bytes.per.second")

    # What the core reports ------------------------------------------------------------------------

    def _log_start(self, partition: Partition, told: Told) -> None:
        self._housekeeping.moved_log_start(partition, told)

    def _offline(self, partition: Partition, failure: StorageFailed) -> None:
        name = "partition-offline" if partition.log.failure is not None else "read-failed"
        self._events.event(ERROR, name, partition=partition, cause=failure)

    # The end --------------------------------------------------------------------------------------

    def close(self) -> bool:
        """Everything to the disk. False when something could not be: the next start must check."""
        self._links.set_state(DRAINING)
        if not self._open:
            return False
        self._cleaning.stop()
        self.cleaner.close()
        self.core.settle(self._clock.monotonic_ns())
        self.copies.close()
        self.leaving.close()
        clean = self._close_logs()
        try:
            self._housekeeping.close()
        except StorageFailed as failure:
            self._events.event(ERROR, "checkpoint-failed", cause=failure)
            clean = False
        self.trims.close()
        self.opener.close()
        self._links.flush()
        return clean

    def _close_logs(self) -> bool:
        """Close all logs side by side: each takes a handful of syncs."""
        for partition in self.core.partitions.values():
            self.syncs.submit((partition,), partition.log.close)
        clean = not self.core.refused
        while self.syncs.outstanding():
            self.syncs.wait()
            self._links.beat()
            for done in self.syncs.take():
                partition = done.tag[0]
                if isinstance(done.failure, StorageFailed):
                    self._offline(partition, done.failure)
                elif done.failure is not None:
                    raise done.failure
                clean = clean and partition.broken is None and done.failure is None
        self.syncs.close()
        return clean


def run(seat: Seat) -> int:
    """Serve until the appliance drains; 0 when everything is on the disk, 1 when something is
    not."""
    events = Log(str(seat.me))
    links = Links(seat, events)
    loop = Loop(seat, links)
    process = IoProcess(seat, links, ReservedDisk(OsDisk(), seat.log_dirs), events)
    for one in process.threads():
        loop.register(one.fd, select.EPOLLIN, process)
    loop.run(process)
    return 0 if process.close() else 1
