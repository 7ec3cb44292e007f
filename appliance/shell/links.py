"""A process's rings to and from its peers, and the doorbells beside them.

One turn of a shell: `changed_peers`, `confirm`, `poll`, handle, `flush`. Nothing is published
before `flush`, so many messages cost one counter store and at most one doorbell per peer. A
doorbell rings only for a peer that declared itself asleep.

A ring belongs to one generation of both its processes. When a peer dies, its rings are closed here
and the epoch is confirmed: from then on this process touches their memory no more, until the
successor's row is alive. A broken ring is closed, its writer accused, and the supervisor replaces
that process.
"""

import os
import threading
from typing import Final

from appliance.ring.messages import SENT, Message
from appliance.ring.process_table import (
    ASLEEP,
    DOWN,
    EPOCH,
    HEARTBEAT,
    LONGEST_TURN,
    METADATA_OFFSET,
    NETPROC,
    Peer,
    ProcessTable,
)
from appliance.ring.ring import GENERATIONS, RingBroken, RingReader, RingWriter
from appliance.shell.log import Log
from appliance.shell.seat import Seat

BATCH: Final = 256

_lock = threading.Lock()


def fence() -> None:
    """Stores before it are visible to other processes before any load after it (x86-64: a locked
    instruction)."""
    with _lock:
        pass


class _Link:
    """The two ring ends to one peer and the generation they were opened for (0: closed). asleep:
    its word in the process table. held: what it sends stays in its ring."""

    __slots__ = ("asleep", "doorbell", "generation", "held", "peer", "reader", "writer")

    def __init__(
        self,
        peer: Peer,
        doorbell: int,
        asleep: memoryview,
        writer: RingWriter,
        reader: RingReader,
    ) -> None:
        self.peer = peer
        self.doorbell = doorbell
        self.asleep = asleep
        self.writer = writer
        self.reader = reader
        self.close()

    def close(self) -> None:
        self.generation = 0
        self.held = False
        self.writer.close()
        self.reader.close()


class Links:
    """Every ring of one process. Closed until the first `changed_peers`, which opens those of
    living peers."""

    def __init__(self, seat: Seat, log: Log | None = None) -> None:
        self._table: ProcessTable = seat.processes
        table = seat.processes
        self._epoch_word = table.word(EPOCH)
        self._metadata_word = table.word(METADATA_OFFSET)
        self._heartbeat = table.row_word(seat.me, HEARTBEAT)
        self._longest_turn = table.row_word(seat.me, LONGEST_TURN)
        self._me = seat.me
        self._generation = seat.generation
        self._log = log or Log(str(seat.me))
        self._supervisor = seat.supervisor_doorbell
        self._epoch = 0
        self._confirmed = 0
        self._metadata = 0
        self._links = tuple(
            _Link(
                peer,
                seat.doorbells[peer],
                table.row_word(peer, ASLEEP),
                RingWriter(pair.out, 0, capacity=seat.ring_slots),
                RingReader(
                    pair.into,
                    0,
                    capacity=seat.ring_slots,
                    arena_bytes=len(seat.arenas[peer.index]) if peer.kind == NETPROC else 0,
                    operations=SENT[peer.kind, seat.kind],
                ),
            )
            for peer, pair in seat.rings.items()
        )
        self._by_peer = {link.peer: link for link in self._links}
        self._sleepers = tuple(seat.doorbells.items())
        self._slots = seat.ring_slots
        self._last_said: list[tuple[Peer, list[Message]]] = []

    def writer(self, kind: int, index: int) -> RingWriter:
        """The ring to a peer; the same object for ever. While that peer is down every push answers
        False."""
        return self._by_peer[Peer(kind, index)].writer

    def is_up(self, kind: int, index: int) -> bool:
        """True if the ring to that peer is open: it lives (perhaps still starting)."""
        return self._by_peer[Peer(kind, index)].generation != 0

    def changed_peers(self) -> list[Peer]:
        """Peers that died, or whose place was taken by a successor, since the last call (one word
        read when none did); `is_up` tells which. Call it at the start of a turn.

        What they had asked and been asked is lost: let go of all of it, their arenas' bytes
        included, then call `confirm`."""
        epoch: int = self._epoch_word[0]
        if epoch == self._epoch:
            return []
        if not self._epoch:
            # From now on deaths wait for this process; those before are seen below.
            self._table.confirm(self._me, 1)
            fence()
            epoch = self._epoch_word[0]
        self._epoch = epoch
        return [link.peer for link in self._links if self._renew(link)]

    def take_last_said(self) -> list[tuple[Peer, list[Message]]]:
        """Returns what the peers that `changed_peers` told of had published and this process had
        not read: answers, which count though whoever gave them has died since. Only of a netproc:
        what a dead one asks, nobody waits for."""
        said, self._last_said = self._last_said, []
        return said

    def confirm(self) -> None:
        """Everything of the peers that `changed_peers` told of has been let go: their successors
        may come."""
        if self._confirmed != self._epoch:
            self._confirmed = self._epoch
            self._table.confirm(self._me, self._epoch)
            self._call_supervisor()

    def poll(self) -> list[tuple[Peer, list[Message]]]:
        """Returns the messages of every peer, at most 256 each; none from a peer that is held or
        whose ring is broken."""
        self._metadata = self._metadata_word[0]
        arrived = []
        for link in self._links:
            reader = link.reader
            if link.held or reader.words[0] == reader.tail:
                continue
            try:
                messages = reader.drain(BATCH)
            except RingBroken as broken:
                self._accuse(link, broken)
                continue
            if messages:
                arrived.append((link.peer, messages))
        return arrived

    def flush(self) -> None:
        """Publish what was pushed in this turn and wake those peers that sleep."""
        published = []
        for link in self._links:
            writer = link.writer
            if writer.head == writer.published and not writer.broken:
                continue
            try:
                if writer.publish():
                    published.append(link)
            except RingBroken as broken:
                self._accuse(link, broken)
        if published:
            fence()
            for link in published:
                if link.asleep[0]:
                    os.eventfd_write(link.doorbell, 1)

    def wake_sleepers(self) -> None:
        """Ring every sleeping process (control, after publishing a committed metadata offset)."""
        fence()
        for peer, doorbell in self._sleepers:
            if self._table.asleep(peer):
                os.eventfd_write(doorbell, 1)

    def prepare_sleep(self) -> bool:
        """Declare this process asleep, then look once more: False, and awake again, if something is
        there already.

        Whoever publishes after this rings the doorbell; a timed wake after at most 200 ms is the
        backstop."""
        self._table.set_asleep(self._me, True)
        fence()
        if self.pending():
            self._table.set_asleep(self._me, False)
            return False
        return True

    def pending(self) -> bool:
        """True if a turn would find anything: messages, a changed peer, committed metadata."""
        if self._epoch_word[0] != self._epoch or self._metadata_word[0] != self._metadata:
            return True
        for link in self._links:
            reader = link.reader
            if reader.words[0] != reader.tail and reader.pending() and not link.held:
                return True
        return False

    def hold_messages(self, kind: int, index: int, held: bool) -> None:
        """Take nothing from that peer until it is let go again, or is succeeded: when its ring is
        full it has to wait."""
        self._by_peer[Peer(kind, index)].held = held

    def awake(self) -> None:
        """The sleep is over; the loop turns."""
        self._table.set_asleep(self._me, False)

    def beat(self, took_ns: int = 0) -> bool:
        """Show the supervisor that the loop turns; whether `changed_peers` and `confirm` have
        something to do. took_ns: the turn that is over; the longest one stands in the process
        table."""
        self._heartbeat[0] += 1
        if took_ns > self._longest_turn[0]:
            self._longest_turn[0] = took_ns
        return bool(self._epoch_word[0] != self._confirmed)

    def accuse(self, kind: int, index: int, cause: str) -> None:
        """Closes the rings to a peer that says what no sound process says; the supervisor replaces
        it."""
        link = self._by_peer[Peer(kind, index)]
        if link.reader.is_open:
            self._accuse(link, RingBroken(cause))

    def set_state(self, state: int) -> None:
        """Tell everyone (STARTING,) READY or DRAINING, and the supervisor at once."""
        self._table.set_state(self._me, state)
        self._call_supervisor()

    def _call_supervisor(self) -> None:
        os.eventfd_write(self._supervisor, 1)

    def _renew(self, link: _Link) -> bool:
        """Bring one link in line with its peer's row; whether the peer changed."""
        alive = self._table.state(link.peer) != DOWN
        generation = self._table.generation(link.peer) if alive else 0
        if generation == link.generation:
            return False
        if self._me.kind == NETPROC:
            self._keep_last_said(link)
        link.close()
        if generation:
            link.generation = generation
            shared = (generation + self._generation) % GENERATIONS
            link.writer.reset(shared)
            link.reader.reset(shared)
        return True

    def _keep_last_said(self, link: _Link) -> None:
        """Control ends in the turn in which it answers whoever gave this node other listeners: on a
        busy machine its death is seen together with the answer."""
        try:
            messages = link.reader.drain(self._slots)
        except RingBroken:
            return  # who wrote it is dead already
        if messages:
            self._last_said.append((link.peer, messages))

    def _accuse(self, link: _Link, broken: RingBroken) -> None:
        self._log.event(3, "ring-broken", peer=str(link.peer), cause=str(broken))
        self._table.accuse(self._me, link.peer, link.generation)
        link.writer.reset(0)  # no longer broken: it is said once
        link.writer.close()
        link.reader.close()
        self._call_supervisor()
